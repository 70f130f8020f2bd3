"""The strategy `matrix` over large tables, whose cells fall into few classes under sparse rows."""

import resource

import numpy as np
import pytest
from scipy import sparse

import hushcube as hc
from helpers import make_schema
from hushcube.bundle.part import FormsFromCells
from hushcube.costs.row_cost import cost_of_rows
from hushcube.designs import MatrixDesign, WideMatrixDesign
from hushcube.designs.matrix.classes import classes_of
from hushcube.errors import BadInput, NotApplicable
from hushcube.model.privacy import Privacy
from hushcube.model.queries import SparseRows
from hushcube.planning.plan import Plan
from hushcube.private.measure import measure
from hushcube.private.noise import SeededEntropy
from hushcube.strategies import matrix as strategy
from hushcube.strategies.strategy import objective_value

LAWS = [{"epsilon": 1}, {"rho": "1/2"}, {"epsilon": 1, "delta": "1e-6"}]


def sparse_rows(width, rows, length, seed=0, largest=1):
    rng = np.random.default_rng(seed)
    found = sparse.lil_matrix((rows, width))
    for i in range(rows):
        cells = rng.choice(width, length, replace=False)
        found[i, cells] = rng.integers(1, largest + 1, length)
    return found.tocsr()


class CellCounts:
    """Exact counts of the cells of one table, given as they are."""

    sums = {}  # noqa: RUF012 - of no measures
    dropped = bad = 0

    def __init__(self, x):
        self.x, self.rows = x, int(x.sum())

    def count(self, schema, wanted, *, measures=(), progress=None):
        return self

    def tables(self, marginals):
        return self.x[None]


def test_a_million_cells_and_200_sparse_rows():
    """Errors as predicted, in little memory: a dense matrix of the rows alone would take 1.6 GB."""
    sizes = (100, 100, 100)
    S = sparse_rows(10**6, 200, 20)
    schema = make_schema(sizes)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    plan = hc.plan(
        schema, [], queries=(None, S), strategy=hc.Matrix(rows=(None, S)), epsilon=1, neighbours="add-remove"
    )
    assert isinstance(plan.count, WideMatrixDesign) and plan.details["classes"] < 4096
    assert Plan.from_json(plan.to_json()).digest == plan.digest
    x = np.zeros(10**6, np.int64)
    cells = np.unique(S.indices)
    x[cells] = np.random.default_rng(1).integers(0, 50, len(cells))
    [form], truth, squares = plan.workload.forms, S @ x, []
    for seed in range(60):
        measured = measure(plan.count, CellCounts(x.reshape(sizes)), entropy=SeededEntropy(seed))
        squares.append(((plan.count.answers(measured).form(form) - truth) ** 2).mean())
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    predicted = plan.count.errors.form_variances(form, exact=True).mean()
    spread = np.std(squares) / np.sqrt(len(squares))
    assert abs(np.mean(squares) - predicted) < 4.5 * spread < 0.3 * predicted  # a false alarm in 1e5
    assert used < 600_000  # kilobytes


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("recovery", ["gls", "ols", "none"])
def test_it_is_the_small_design_where_both_can_be_made(law, neighbours, recovery, monkeypatch):
    """One decision, over all cells and over their classes: errors, answers and costs are equal."""
    schema = make_schema((6, 5, 4))
    groups = np.arange(120).reshape(6, 5, 4)
    S = np.zeros((9, 120))
    for i in range(6):
        S[i, groups[i].ravel()] = 1  # the table of a0
    S[6, groups[:3].ravel()], S[7, groups[0].ravel()], S[7, groups[1].ravel()] = 2, -1, 2
    S[8] = S[0] + S[1]
    Q = np.stack([S[6] * 3, S[8], -S[7]])
    given = {"neighbours": neighbours, "recovery": recovery, "strategy": hc.Matrix(rows=(None, S)), **law}
    words = ["a0=2"] if neighbours == "replace-one" and recovery != "none" else ["a0"]
    planned = hc.plan(schema, words, queries=(None, Q), **given).count
    with monkeypatch.context() as few:
        few.setattr(strategy, "MAX_CELLS", 100)
        wide = hc.plan(schema, words, queries=(None, Q), **given).count
    assert type(planned) is MatrixDesign and type(wide) is WideMatrixDesign and len(wide.classes) <= 7
    assert objective_value(wide) <= objective_value(planned) * (1 + 1e-6)
    decision = (wide.strategy, wide.budget_rule, wide.recovery, wide.proof, wide.budgets)
    small = MatrixDesign(wide.request, *decision, wide.marginal, wide.rows, wide.group_of)
    both, [form] = (small, wide), wide.workload.forms
    for exact in (True, False):
        one, other = (np.nan_to_num(p.errors.cell_variances(exact=exact), nan=-1.0) for p in both)
        assert one == pytest.approx(other, abs=1e-9)
        one, other = (p.errors.form_variances(form, exact=exact) for p in both)
        assert one == pytest.approx(other, abs=1e-9)
    q = np.random.default_rng(0).normal(size=6)
    assert small.errors.sum_variance((0,), q) == pytest.approx(wide.errors.sum_variance((0,), q), abs=1e-9)
    assert small.errors.cell_variance_table(()) == pytest.approx(wide.errors.cell_variance_table(()), abs=1e-9)
    assert wide.row_cost(wide.budgets) == small.row_cost(wide.budgets)
    x = np.random.default_rng(2).integers(0, 9, (6, 5, 4))
    measured = measure(wide, CellCounts(x), entropy=SeededEntropy(5))
    rows = np.array([[0]], np.int32)
    one, other = (p.make_answers(measured) for p in both)
    assert one.tables(rows, (6,)) == pytest.approx(other.tables(rows, (6,)), abs=1e-7)
    assert FormsFromCells(one).form(form) == pytest.approx(other.form(form), abs=1e-7)
    loud = 30 * wide.errors.max_variance() ** 0.5 + 1e-6
    assert np.abs(other.form(form) - Q @ x.ravel()).max() < loud
    assert np.abs(other.tables(rows, (6,))[0] - x.sum(axis=(1, 2))).max() < loud


def test_classes_are_the_distinct_columns():
    rng = np.random.default_rng(3)
    for _ in range(50):
        S = rng.integers(-1, 2, (3, 40)) * rng.integers(0, 2, (3, 1))
        if not S.any():
            continue
        rows = SparseRows.of(S)
        found = classes_of(rows)
        assert len(found) == len({tuple(column) for column in S.T.tolist()})
        assert (found.rows.dense()[:, found.of_cell] == S).all()
        assert (found.expand(found.rows).dense() == S).all()
        for privacy in (Privacy.of(epsilon=1, neighbours=n) for n in ("add-remove", "replace-one")):
            budgets = rng.random(3)
            assert cost_of_rows(found.rows, np.arange(3), budgets, privacy) <= cost_of_rows(
                rows, np.arange(3), budgets, privacy
            )


def test_what_the_rows_cannot_answer_is_refused():
    S = sparse_rows(10_000, 5, 30)
    given = {"strategy": hc.Matrix(rows=(None, S)), "epsilon": 1, "neighbours": "add-remove"}
    with pytest.raises(BadInput, match="matrix: a0 lies outside its row space: it weighs cells differently"):
        hc.plan(make_schema((100, 100)), "a0", **given)
    with pytest.raises(BadInput, match="lies outside its row space"):
        hc.plan(make_schema((100, 100)), [], queries=(None, S[:1] + S[1:2] * 0 + sparse_rows(10_000, 1, 3, 9)), **given)
    with pytest.raises(NotApplicable, match="without recovery every answer must be a multiple"):
        hc.plan(make_schema((100, 100)), [], queries=(None, S[:1] + S[1:2]), recovery="none", **given)


def test_too_many_distinct_columns():
    S = sparse.identity(5_000, format="csr")
    with pytest.raises(NotApplicable, match="5,000 distinct columns, more than 4,096"):
        hc.plan(make_schema((50, 100)), "a0", strategy=hc.Matrix(rows=(None, S)), epsilon=1, neighbours="add-remove")


def test_a_release_is_verified_and_has_no_other_face(tmp_path):
    rows = np.zeros((4, 5_000))
    for i in range(4):
        rows[i, i * 1_000 : (i + 1) * 1_000] = 1
    schema = make_schema((5, 1000))
    plan = hc.plan(
        schema, [], queries=(None, rows), strategy=hc.Matrix(rows=(None, rows)), rho=1, neighbours="add-remove"
    )
    people = __import__("pyarrow").table({"a0": [0, 1, 2] * 50, "a1": [7, 900, 3] * 50})
    published = hc.release(plan, people, out=tmp_path / "published")
    assert hc.verify(tmp_path / "published").holds
    assert np.abs(published["queries"].values - [50, 50, 50, 0]).max() < 30
    with pytest.raises(NotApplicable, match="knows no cells"):
        hc.recover(tmp_path / "published", "nonnegative")
