"""What every face promises, whatever was measured."""

import numpy as np
import pytest

from helpers import all_tables
from hushcube.designs import SketchDesign


def check_promise(plan, face, people):
    """All tables add up; signs and whole numbers as promised; a total that is declared or measured exactly is kept."""
    tables = all_tables(plan, face.tables)
    value = face.value
    whole = value.kind == "integral"
    totals = [float(table.sum()) for table in tables.values()]
    largest = max(float(np.abs(table).sum()) for table in tables.values())
    assert np.isfinite(largest)
    slack = 0 if whole else 1e-6 * (1 + largest)
    assert max(totals) - min(totals) <= slack
    for A, a in tables.items():
        for B, b in tables.items():
            if set(B) < set(A):
                summed = a.sum(axis=tuple(axis for axis, i in enumerate(A) if i not in B))
                assert np.abs(summed - b).max(initial=0) <= slack
    if value.kind != "consistent":
        assert min(float(table.min()) for table in tables.values()) >= 0
    if whole:
        assert all((table == np.rint(table)).all() for table in tables.values())
        assert len(face.people) == totals[0]
    if value.rows is not None:
        assert totals[0] == value.rows
        return
    facts = () if value.facts is None else value.facts.facts
    declared = [fact.count for fact in facts if not fact.marginal]
    measured = plan.privacy.total_is_public and not isinstance(plan, SketchDesign)  # which measures buckets alone
    assert plan.publishes_total == measured
    if measured:
        declared.append(people)
    for known in declared:
        assert totals[0] == pytest.approx(known, rel=1e-7, abs=1e-6)
