"""Recovery with weights of one's own: the paper's half weights, exact errors, nothing biased."""

import json
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import hushcube as hc
from helpers import MemoryEngine, exact_table, random_codes
from hushcube.bundle.verify import verify
from hushcube.cli import run
from hushcube.designs.weights import Weights
from hushcube.errors import BadInput, NotApplicable
from hushcube.planning.plan import Plan
from hushcube.private.measure import measure
from hushcube.private.noise import SeededEntropy

BITS = hc.Schema([hc.Attribute("a", codes=2), hc.Attribute("b", codes=2)])
HALVES = "a: a=1/2, a*b=1/2; a*b: a*b=1, a=1, a*b>a=-1"
SIZES = (2, 3, 4)
SCHEMA = hc.Schema([hc.Attribute(name, codes=n, ordered=True) for name, n in zip("abc", SIZES, strict=True)])
TABLES = "a=1,a*b=2,b*c=3,a*b*c=2"
OWN = {
    "a": {"a": "1/4", "a*b": "1/2", "a*b*c": "1/4"},
    "a*b": {"a*b": "3/4", "a*b*c": "1/4", "a": "1/2", "a*b>a": "-1/2"},
    "b*c": {"b*c": "1/3", "a*b*c": "2/3", "a*b": 1, "b*c>b": -1},
    "0-way": {"b*c": "0.5", "a": "0.5"},
}
ASKED = {"epsilon": 1, "neighbours": "add-remove"}


def planned(words="a,a*b,b*c,0-way,c", recovery=OWN, tables=TABLES, schema=SCHEMA, **given):
    return hc.plan(schema, words, measure_tables=tables, recovery=recovery, **{**ASKED, **given})


def total(plan):
    return plan.count.errors.total_variance(exact=False)


def test_the_half_weights_of_the_introduction():
    """34.6 is 34.6275: A and AB each the mean of two estimates.                        [docs/maths.md, 9: vector 1]"""
    plan = planned("a,a*b", HALVES, "a=4,a*b=5", BITS)
    assert total(plan) == pytest.approx(34.6275, rel=1e-12)
    A, AB = 2 * (9 / 4) ** 2, 2 * (9 / 5) ** 2
    assert plan.count.errors.cell_variances(exact=False) == pytest.approx([(A + 2 * AB) / 4, (A + 2 * AB) / 4])
    assert total(planned("a,a*b", "gls", "a=4,a*b=5", BITS)) == pytest.approx(30.012631578947367, rel=1e-9)


def test_a_cell_is_the_mean_of_itself_and_of_the_margin_less_its_sibling():
    plan = planned("a,a*b", HALVES, "a=4,a*b=5", BITS).count
    measured = measure(plan, MemoryEngine(random_codes((2, 2), 50)), entropy=SeededEntropy(1))
    z, answers = dict(zip(plan.measured, (v[0] for v in measured.values), strict=True)), plan.answers(measured)
    A, AB = z[0,], z[0, 1]
    found = answers.tables(np.array([[0, 1]], np.int32), (2, 2))[0]
    assert found == pytest.approx((AB + (A[:, None] - AB[:, ::-1])) / 2)
    assert answers.tables(np.array([[0]], np.int32), (2,))[0] == pytest.approx((A + AB.sum(axis=1)) / 2)


def dense(plan, A):
    """R of one answer, by the meaning of the words: what each measured cell adds to each cell of the answer."""
    design, schema = plan.count, plan.schema
    rules = {tuple(sorted(schema.position(n) for n in t.split("*") if n != "0-way")): r for t, r in OWN.items()}
    smallest = min((m for m in design.measured if set(A) <= set(m)), key=schema.cells)
    terms = rules.get(A, {schema.describe(smallest): 1})
    columns = {cell: at for at, cell in enumerate((m, c) for m in design.measured for c in np.ndindex(schema.shape(m)))}
    R = np.zeros((schema.cells(A), len(columns)))
    for (M, cell), at in columns.items():
        for word, weight in terms.items():
            body, _, target = word.partition(">")
            if tuple(schema.position(n) for n in body.split("*")) != M:
                continue
            kept = [schema.position(n) for n in target.split("*")] if target else [i for i in A if i in M]
            spread = [i for i in A if i not in kept]
            for line, answer in enumerate(np.ndindex(schema.shape(A))):
                if all(answer[A.index(i)] == cell[M.index(i)] for i in kept):
                    R[line, at] += eval(str(weight)) / schema.cells(tuple(spread))
    return R, [m for m, _ in columns]


def indicator(schema, A):
    """The cells of a table, as sums of the cells of the full one."""
    full, cells = (np.array(list(product(*map(range, shape)))) for shape in (SIZES, schema.shape(A)))
    return (full[None][:, :, list(A)] == cells[:, None]).all(axis=2) * 1.0


@pytest.mark.parametrize("law", [{"epsilon": 1}, {"rho": "1/2"}, {"epsilon": 1, "delta": "1e-6"}], ids=str)
def test_errors_are_those_of_the_dense_matrix(law):
    """Also for sums of cells, where terms share noise; and the answers have no bias."""
    plan = planned(words="a,a*b,b*c,0-way,c,prefix(c)*b", **{"epsilon": None, **law})
    design, errors = plan.count, plan.count.errors
    rng = np.random.default_rng(0)
    for exact in (True, False):
        of_set = dict(zip(design.measured, errors.set_variances(exact=exact), strict=True))
        for at, A in enumerate(design.request.marginals):
            R, owners = dense(plan, A)
            covariance = R * np.array([of_set[m] for m in owners]) @ R.T
            assert errors.cell_variances(exact=exact)[at] == pytest.approx(np.diag(covariance))
            if exact:
                q = rng.normal(size=len(R))
                predicted = errors.sum_variance(A, q.reshape(plan.schema.shape(A)))
                assert predicted == pytest.approx(q @ covariance @ q)
            S = np.concatenate([indicator(plan.schema, m) for m in design.measured])
            assert pytest.approx(indicator(plan.schema, A)) == R @ S
        [form] = design.workload.forms
        R, owners = dense(plan, form.marginal)
        covariance = R * np.array([of_set[m] for m in owners]) @ R.T
        rows = (
            np.array([[(b, c2) == (b2, min(c2, c)) for b2, c2 in np.ndindex(3, 4)] for b, c in np.ndindex(3, 4)]) * 1.0
        )
        assert errors.form_variances(form, exact=exact).ravel() == pytest.approx(np.diag(rows @ covariance @ rows.T))


@pytest.mark.slow
def test_simulated_releases_have_the_predicted_variances():
    """Of 1,500 runs, within 4.5 deviations of the mean (a false alarm in 1e5), less than half of the variance."""
    plan = planned().count
    codes = random_codes(SIZES, 300)
    engine, schema = MemoryEngine(codes), plan.schema
    truth = {A: exact_table(schema, codes, A) for A in plan.request.marginals}
    squares = {A: [] for A in truth}
    for seed in range(1500):
        answers = plan.answers(measure(plan, engine, entropy=SeededEntropy(seed)))
        for A, seen in squares.items():
            found = answers.tables(np.array([A], np.int32).reshape(1, len(A)), schema.shape(A))[0]
            seen.append(((found - truth[A]) ** 2).mean())
    for (A, seen), predicted in zip(squares.items(), plan.errors.cell_variances(exact=True), strict=True):
        spread = np.std(seen) / np.sqrt(len(seen))
        assert abs(np.mean(seen) - predicted) < 4.5 * spread and 4.5 * spread < 0.5 * predicted, A


def test_optimal_budgets_are_those_of_the_given_recovery():
    """(1)-(3) for a given R: no shares nearby are better, for the total and for the maximum."""
    for objective in ("total", "max"):
        best = planned(tables=["a", "a*b", "b*c", "a*b*c"], objective=objective, epsilon="0.01")
        measure_of = (lambda p: p.count.errors.max_variance()) if objective == "max" else total
        shares = best.count.budgets / best.count.budgets.sum()
        for factors in product((0.95, 1.05), repeat=4):
            moved = dict(zip(("a", "a*b", "b*c", "a*b*c"), (shares * factors).tolist(), strict=True))
            other = planned(tables=moved, objective=objective, epsilon="0.01")
            assert measure_of(best) <= measure_of(other) * (1 + 1e-5)


def test_other_strategies_take_weights_of_their_tables():
    plan = hc.plan(BITS, "a,a*b", strategy="workload", recovery=HALVES, **ASKED)
    assert total(plan) < total(hc.plan(BITS, "a,a*b", strategy="workload", budgets="uniform", recovery=HALVES, **ASKED))
    with pytest.raises(NotApplicable, match="are for measured tables"):
        hc.plan(BITS, "a,a*b", strategy="residual", recovery=HALVES, **ASKED)
    with pytest.raises(NotApplicable, match="a is measured, and has a weight in no answer"):
        planned("a,a*b", "a: a*b=1; a*b: a*b=1", "a,a*b", BITS)


def test_a_public_total():
    plan = planned(neighbours="replace-one", recovery={"a": OWN["a"]}).count
    assert plan.errors.cell_variances(exact=True)[0] == 0


def test_a_release_with_weights(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan = planned("a,a*b", HALVES, "a=4,a*b=5", BITS)
    assert Plan.from_json(plan.to_json()).digest == plan.digest
    assert json.loads(plan.to_json())["parts"]["count"]["recovery"] == Weights.read(HALVES).to_dict()
    rows = {"a": [0, 1, 1] * 100, "b": [1, 0, 1] * 100}
    hc.release(plan, pa.table(rows), out="published")
    assert verify(tmp_path / "published").holds
    assert "need not agree with each other" in (tmp_path / "published" / "PRIVACY.md").read_text()
    assert not plan.count.is_consistent
    assert hc.recover("published", "nonnegative").table("a*b", face="nonnegative").values.min() >= 0
    assert verify(tmp_path / "published").holds


@pytest.mark.parametrize(
    ("recovery", "message"),
    [
        ("a: a=1/2, a*b=1/3", "the weights of a sum to 5/6, and the answer would be biased"),
        ("a*b: a*b=1, a=1", "the weights of a*b, of tables with a, sum to 2, and the answer would be biased"),
        ("a*b: a=1", "the weights of a*b sum to 0"),
        ("a: b=1", "a is given a weight of b, which is not measured"),
        ("b: a*b=1", "b is given weights, but not asked for"),
        ("a: a*b>b=1", "a*b>b cannot be a part of a: b is not inside both tables"),
        ("a: 2-way=x", "'x' is not a finite number"),
        ("1-way: a=1", "1-way is not one table"),
        ("a: a", "'a: a' cannot be read"),
        ("a: ", "'a:' cannot be read"),
        ({}, "gives no table its weights"),
        ({"a": 1}, "gives no table its weights"),
    ],
)
def test_bad_weights(recovery, message):
    with pytest.raises(BadInput, match="recovery: ") as problem:
        planned("a,a*b", recovery, "a,a*b", BITS, budgets="uniform")
    assert message in str(problem.value)


def test_the_command_line(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bits.yaml").write_text(BITS.to_yaml())
    words = ["plan", "--schema", "bits.yaml", "--workload", "a,a*b", "--epsilon", "1", "--neighbours", "add-remove"]
    assert not run([*words, "--measure-tables", "a=4,a*b=5", "--recovery", HALVES, "--json"])
    document = json.loads(capfd.readouterr().out)
    assert document["plans"][0]["total_variance"] == pytest.approx(34.6275)
    assert document["chosen"]["recovery"] == Weights.read(HALVES).to_dict()
    assert not run([*words, "--measure-tables", "a=4,a*b=5", "--recovery", HALVES])
    assert "given, given, weights" in " ".join(capfd.readouterr().out.split())
    assert run([*words, "--measure-tables", "a=4,a*b=5", "--recovery", "a: a=2", "--out", "plan.json"]) == 2
    assert "--recovery: the weights of a sum to 2" in capfd.readouterr().err
    assert not (tmp_path / "plan.json").exists()
