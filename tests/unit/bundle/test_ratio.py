"""Intervals of averages: Fieller's equation at both ends, none where the count is noise, none beyond the bounds."""

import numpy as np
import pytest

from hushcube import Attribute, Schema, plan
from hushcube.bundle.ratios import ratio_interval
from hushcube.bundle.release import Release
from hushcube.model.measure import Measure
from hushcube.model.noise import Measurement
from hushcube.planning.plan import COUNT

WAGE = Measure(name="wage", bounds=(0, 100), center="middle")


def test_both_ends_solve_the_equation():
    rng = np.random.default_rng(2)
    S, C, m_S, m_C = rng.normal(0, 50, 500), rng.normal(10, 10, 500), rng.uniform(0, 20, 500), rng.uniform(0, 20, 500)
    ratio, low, high = ratio_interval(S, C, m_S, m_C)
    known = ~np.isnan(ratio)
    assert (known == (m_C < C)).all() and 50 < known.sum() < 450
    assert (np.isnan(low) == ~known).all() and (np.isnan(high) == ~known).all()
    for end in (low, high):
        assert ((S - end * C)[known] ** 2) == pytest.approx((m_S**2 + end**2 * m_C**2)[known])
    assert ((low <= ratio) & (ratio <= high))[known].all()


def released(counts, sums):
    """A cube whose noisy numbers are given."""
    schema = Schema((Attribute(name="a", codes=len(counts)),), measures=(WAGE,))
    cube = plan(schema, "a", measures="avg(wage)", neighbours="add-remove", rho=1, strategy="identity")
    given = {COUNT: counts, "wage": sums}
    measured = {
        name: Measurement(design.digest, [np.array([given[name]], dtype=np.int64)], private=False)
        for name, design in cube.designs.items()
    }
    return Release.of(cube, measured)


def test_an_estimate_beyond_a_bound_keeps_an_interval_that_reaches_inwards():
    # sums of (wage - 50): -50 a head is the lower bound; the second cell's lies far below, the third's far above
    average = released([1000, 1000, 1000], [-50_000, -60_000, 60_000]).table("a", "avg(wage)")
    assert average.values.tolist() == [0, 0, 100]
    assert average.low[:2].tolist() == [0, 0] and average.high[2] == 100
    assert average.high[1] == pytest.approx(average.high[0]) and average.high[0] > 0
    assert 100 - average.low[2] == pytest.approx(average.high[0])


def test_inside_the_bounds_nothing_is_moved():
    found = released([1000], [-20_000])
    count, total = found.parts["count"].table("a"), found.parts["wage"].table("a")
    expected = ratio_interval(total.values, count.values, total.margins, count.margins)
    average = found.table("a", "avg(wage)")
    for shown, each in zip((average.values, average.low, average.high), expected, strict=True):
        assert shown == pytest.approx(50 + each)


def test_a_public_count_of_nobody_has_no_average():
    assert np.isnan(ratio_interval(*(np.array([x]) for x in (3.0, 0.0, 4.0, 0.0)))).all()
