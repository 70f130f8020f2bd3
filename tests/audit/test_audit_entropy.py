"""The noise of a release cannot be foreseen: two releases of the same plan on the same data differ."""

from helpers import MemoryEngine, every_plan, make_request
from hushcube.private.measure import measure


def test_two_releases_differ():
    """100 draws of scale 6 agree with a chance far below 1e-50."""
    plan = next(every_plan(make_request((10, 10), "2-way", epsilon="0.17"), ["identity"], ["gls"]))
    one, two = (measure(plan, MemoryEngine([(0, 0)])) for _ in range(2))
    assert one.private and two.private
    assert any((a != b).any() for a, b in zip(one.values, two.values, strict=True))
