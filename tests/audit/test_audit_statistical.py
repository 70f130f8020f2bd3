"""Lower bounds on epsilon in their short form; false alarms are those that docs/audit.md states."""

import pytest

from audit.statistical import cases, lower_bound, weaker_noise

CASES = list(cases())


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_bound_is_close_below_the_claim_and_too_little_noise_is_caught(case):
    found, _ = lower_bound(case, "short")
    assert 0.9 * case.guarantee <= found <= case.guarantee
    with weaker_noise():
        assert lower_bound(case, "short")[0] > case.guarantee
