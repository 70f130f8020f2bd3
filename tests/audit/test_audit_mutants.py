"""Every planted bug still applies to the source; some are planted here, all of them by `make audit`."""

import pytest

from audit.mutant_list import MUTANTS
from audit.mutants import ROOT, passes, problem, verdict

QUICK = [mutant for mutant in MUTANTS if mutant.test.startswith(("tests/unit/", "tests/audit/test_audit_entropy"))]


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_it_can_be_planted_and_names_a_test(mutant):
    assert problem(mutant) is None
    path, *_ = mutant.test.split("::")
    assert (ROOT / path).is_file()


def test_there_are_at_least_thirty_with_names_of_their_own():
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 30


@pytest.mark.parametrize("mutant", QUICK[-1:], ids=[mutant.name for mutant in QUICK[-1:]])
def test_it_is_caught(mutant):
    assert verdict(mutant) == "caught"
    assert passes(mutant.test)
