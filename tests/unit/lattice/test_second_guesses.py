"""Guesses by an earlier edition: the margins are those of now, the interactions those of the edition."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from hushcube.lattice import helmert
from hushcube.lattice.coefficients import Coefficients
from hushcube.lattice.entropy import Noisy
from hushcube.lattice.family import Family
from hushcube.lattice.guesses import fit_by_orders, guesses, nearer, order
from hushcube.lattice.proportional import proportional
from hushcube.lattice.second_guesses import SHARE, Earlier, Second, instead, spread


def tables_of(full, family):
    """All tables of a family, an array for each batch."""
    others = range(full.ndim)
    return [
        np.stack([full.sum(axis=tuple(i for i in others if i not in row)) for row in batch.rows.tolist()])
        for batch in family.batches
    ]


def earlier(full, *tables):
    family = Family.of(tables, full.shape)
    return Earlier.of(family, tables_of(full, family))


def exactly(full, family):
    """Coefficients without noise."""
    spaces, blocks = family.closure, []
    for batch, own in zip(spaces.batches, tables_of(full, spaces), strict=True):
        blocks.append(helmert.residual(own, range(1, own.ndim)) if batch.shape else own)
    return Coefficients(spaces, tuple(blocks))


def made_up(sizes, seed, many=1000.0):
    full = np.random.default_rng(seed).gamma(2.0, 1.0, sizes)
    return full * (many / full.sum())


@given(sizes=st.lists(st.integers(2, 4), min_size=2, max_size=3).map(tuple), seed=st.integers(0, 99))
def test_second_guesses_have_the_margins_of_now(sizes, seed):
    now, before = made_up(sizes, seed), made_up(sizes, seed + 1000, 300.0)
    every = tuple(range(len(sizes)))
    family, smaller = Family.of([every], sizes), exactly(now, Family.of([every], sizes))
    first = guesses(family, smaller, 1000.0)
    second = earlier(before, every).second(family, first, smaller)
    assert second.has.all()
    for axis in every:
        assert np.abs(second.guess[0].sum(axis=1 + axis) - now.sum(axis=axis)).sum() < 1e-3 * 1000


def test_the_interaction_is_that_of_the_edition():
    """Odds ratios are what no factor for a row or a column can change."""
    start, margins = np.array([[[8.0, 1.0], [2.0, 5.0]]]), [np.array([[30.0, 70.0]]), np.array([[45.0, 55.0]])]
    x = proportional((2, 2), margins, start)[0]
    assert x[0, 0] * x[1, 1] / (x[0, 1] * x[1, 0]) == pytest.approx(20.0)
    assert x.sum(axis=0) == pytest.approx([30, 70], rel=1e-3)


def test_an_edition_that_is_right_guesses_what_is_there():
    now = made_up((3, 4, 2), 1)
    family = Family.of([(0, 1, 2)], now.shape)
    first = guesses(family, exactly(now, family), 1000.0)
    second = earlier(now / 3, (0, 1, 2)).second(family, first, exactly(now, family))
    off = [np.abs(guess[0][0] - now).sum() for guess in (first, second.guess)]
    assert off[1] < 2 * SHARE * off[0]


def test_one_way_tables_have_the_shares_of_the_edition():
    now, before = made_up((4,), 1), made_up((4,), 2, 50.0)
    family = Family.of([(0,)], (4,))
    second = earlier(before, (0,)).second(family, guesses(family, exactly(now, family), 1000.0), exactly(now, family))
    expected = (1 - SHARE) * before / 50 * 1000 + SHARE * 250
    assert second.guess[0][0] == pytest.approx(expected)


def test_what_the_edition_lacks_is_guessed_as_ever():
    now = made_up((3, 4, 2), 1)
    pairs = order(Family.of([(0, 1, 2)], now.shape), 2)
    first = guesses(pairs, exactly(now, pairs), 1000.0)
    second = earlier(made_up((3, 4, 2), 2), (0, 1), (2,)).second(pairs, first, exactly(now, pairs))
    known = [tuple(row) == (0, 1) for row in pairs.levels[2].tolist()]
    assert second.has.tolist() == known
    for batch, one, other in zip(pairs.batches, first, second.guess, strict=True):
        assert (one == other).all(axis=(1, 2)).tolist() == [not second.has[i] for i in batch.ids]


def test_tables_of_nobody_are_even():
    found = earlier(np.zeros((2, 3)), (0, 1)).shares(np.array([[0, 1]], np.int32), (2, 3))
    assert found == pytest.approx(np.full((1, 2, 3), 1 / 6))


def test_the_nearer_guess_is_taken():
    now, before = made_up((3, 4, 2), 1), made_up((3, 4, 2), 2)
    pairs = order(Family.of([(0, 1, 2)], now.shape), 2)
    first = guesses(pairs, exactly(now, pairs), 1000.0)
    misfits = np.array([0.1, 0.2, 0.3])
    for edition, better in ((now, True), (before, False)):
        second = earlier(edition, (0, 1, 2)).second(pairs, first, exactly(now, pairs))
        noisy = Noisy(exactly(now, pairs), np.ones(len(pairs.closure)))
        if better:
            assert nearer(pairs, first, second, None, noisy).all(), "by what was measured"
        looked = Second(second.guess, second.has, np.array([0.05, 0.25, 0.3]))
        assert nearer(pairs, first, looked, misfits).tolist() == [True, False, False], "by the looks"
        taken = instead(pairs, first, second.guess, np.array([True, False, True]))
        for batch, got, one, other in zip(pairs.batches, taken, first, second.guess, strict=True):
            for at, i in enumerate(batch.ids.tolist()):
                assert (got[at] == (one if i == 1 else other)[at]).all()


def test_deviations_of_samples_are_spread_by_roots():
    q = np.array([[[100.0, 25.0], [0.0, 4.0]]])
    assert spread(q)[0] == pytest.approx(129 * np.array([[10, 5], [0, 2]]) / 17)


@pytest.mark.parametrize("tables", [[(0, 1), (1, 2), (0, 2)], [(0, 1, 2)]])
def test_fits_are_nearer_with_an_edition_and_no_worse_with_a_wrong_one(tables):
    """Noise about as large as cells, 20 draws; an edition that is wrong everywhere may cost a tenth of the error."""
    sizes, rng = (4, 5, 3), np.random.default_rng(3)
    truth = made_up(sizes, 1) ** 2
    truth *= 3000 / truth.sum()
    wrong = truth[::-1, ::-1, ::-1]
    family = Family.of(tables, sizes)
    error = {"none": 0.0, "same": 0.0, "wrong": 0.0}
    editions = {"none": None, "same": earlier(truth, *tables), "wrong": earlier(wrong, *tables)}
    for _ in range(20):
        exact = exactly(truth, family)
        blocks = []
        for batch, own in zip(exact.spaces.batches, exact.blocks, strict=True):
            h = helmert.residual_norms(batch.shape) if batch.shape else 1.0
            blocks.append(own + rng.normal(0, 1, own.shape) * 30 * np.sqrt(h))
        noisy = Noisy(Coefficients(exact.spaces, tuple(blocks)), np.full(len(exact.spaces), 900.0))
        for name, edition in editions.items():
            found = fit_by_orders(family, noisy, lambda _: True, earlier=edition).tables
            for batch, x in zip(family.batches, tables_of(truth, family), strict=True):
                error[name] += float(np.abs(found.tables(batch.rows, batch.shape) - x).sum())
    assert error["same"] < 0.7 * error["none"]
    assert error["wrong"] < 1.1 * error["none"]
