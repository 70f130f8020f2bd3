"""Brute force judges covariances: every pair of cells by polarisation of the variance of a sum, for every design."""

import itertools
import os

import numpy as np
import pytest

import hushcube as hc
import nested
from helpers import LAWS, NEIGHBOURS, every_plan, label, make_plan, make_request
from hushcube.designs.derived import RepeatedDesign
from hushcube.designs.matrix.wide import WideMatrixDesign
from hushcube.designs.stacked.design import StackedDesign
from hushcube.errors import QueryError
from hushcube.model.queries import SparseRows
from hushcube.strategies import read_strategy
from ranged import every_variant, ordered_schema, ranged_request
from stacks import hand_layer, random_stack

CASES = int(os.environ.get("HUSHCUBE_COVARIANCE_CASES", "60"))
PURE, ZCDP, TINY, _ = LAWS


def lattices():
    """Laplace and Gaussian noise, all bases and recoveries; tiny Gaussian noise has uneven coefficients."""
    for law, neighbours in itertools.product((PURE, ZCDP, TINY), NEIGHBOURS):
        request = make_request((3, 2, 3), "a0*a1,a0*a2,a1,0-way,a0*a1*a2", neighbours=neighbours, **law)
        names = ("workload", "fourier", "identity", "residual") if law == PURE else ("workload", "fourier", "residual")
        ways = ("gls", "ols", "none", "answers") if law == PURE else ("gls", "none")
        yield from every_plan(request, names, ways)


def trees():
    """Nodes and wavelets; one axis has a category beside its values, and leaves beyond."""
    schema = ordered_schema((5, 2, 2), missing=(2,))
    for law in (PURE, TINY):
        request = ranged_request(schema, "prefix(a0)*a1,ranges(a2)*a1,a0*a2", **law)
        yield from every_variant(request, ["wavelet", "hierarchy"], ["optimal"], ["gls", "ols"])


def matrices():
    """Rows over all cells, and over classes of cells."""
    S = np.concatenate([np.eye(12), np.random.default_rng(5).integers(-1, 3, (4, 12))])
    S_wide = np.kron(np.eye(3), np.ones(4))
    for law, way in itertools.product((PURE, ZCDP), ("gls", "ols", "none")):
        request = make_request((3, 4), "a0*a1,a1" if way != "none" else "a0*a1", **law)
        yield read_strategy(hc.Matrix(rows=(None, S))).plan(request, "uniform", way)
        wide = make_request((3, 4), "a0", **law)
        small = read_strategy(hc.Matrix(rows=(None, S_wide))).plan(wide, "uniform", way)
        decision = (small.strategy, small.budget_rule, small.recovery, small.proof, small.budgets)
        yield WideMatrixDesign(wide, *decision, (0, 1), SparseRows.of(S_wide), small.group_of)


def levels():
    """Tables at nested levels, some of which are not measured."""
    for law, way in itertools.product((PURE, ZCDP), ("gls", "ols", "none")):
        yield make_plan(nested.nested_request(**law), "levels", "optimal", way)
    words = nested.Workload.parse("s@l2,s@l1*u,s*t@l1,t,u,0-way", nested.SCHEMA)
    tables = [words.schema.marginal(names) for names in (["s", "t"], ["s", "t", "u"], ["s@l2"], ["t@l1", "u"])]
    budgets = [{table: 0.01 * (1 + at + 2 * layer) for at, table in enumerate(tables)} for layer in range(2)]
    yield StackedDesign.of([hand_layer(words, "marginal", own, pure=True) for own in budgets], words)


def others():
    """What rests on other designs."""
    request = make_request((3, 2), "a0*a1,a0,0-way", **PURE)
    base = make_plan(request, "workload")
    samples = tuple(np.repeat(range(base.groups), 2).tolist())
    halves = np.repeat(base.budgets, 2) / 2
    decision = (request, "by hand", "given", "gls", "direct", halves)
    yield RepeatedDesign(*decision, type(base), {"basis": base.basis, "measured": base.measured}, samples)
    yield from (random_stack(seed) for seed in range(8))


KINDS = {
    "lattice": (lattices, {"LatticeDesign"}),
    "tree": (trees, {"TreeDesign"}),
    "matrix": (matrices, {"MatrixDesign", "WideMatrixDesign"}),
    "levels": (levels, {"LevelDesign", "StackedDesign"}),
    "others": (others, {"RepeatedDesign", "StackedDesign"}),
}


@pytest.fixture(scope="module", params=KINDS)
def designs(request):
    make, kinds = KINDS[request.param]
    made = list(make())
    assert {type(design).__name__ for design in made} == kinds
    return [(design, A) for design in made for A in tables(design)]


def tables(design):
    return [A for A in design.workload.published if 1 <= len(A) <= 3]


def brute_force(design, A):
    """Cov(x, z) = (Var(x + z) - Var(x - z)) / 4, pair by pair."""
    n, variance = design.schema.cells(A), design.errors.sum_variance
    cells, result = np.eye(n).reshape(-1, *design.schema.shape(A)), np.zeros((n, n))
    for x, z in itertools.combinations_with_replacement(range(n), 2):
        found = variance(A, cells[x] + cells[z]) - (variance(A, cells[x] - cells[z]) if x != z else 0.0)
        result[x, z] = result[z, x] = found / 4
    return result


def dense(along, shape):
    """One matrix for the products of sums along all axes."""
    result = np.ones((1, 1))
    for rows, n in zip(along, shape, strict=True):
        result = np.kron(result, np.eye(n) if rows is None else rows)
    return result


def random_axes(rng, shape):
    """Sums along each axis, or a total of weights for all of its cells."""
    rows, totals = [], []
    for n in shape:
        kind = rng.integers(3)
        rows.append(rng.integers(-1, 3, (rng.integers(1, 4), n)).astype(float) if kind == 0 else None)
        totals.append(rng.integers(-1, 3, n).astype(float) if kind == 1 else None)
    return rows, totals


def test_covariances_of_sums_are_those_of_brute_force(designs):
    known = {}
    rng = np.random.default_rng(1)
    for _ in range(CASES // len(KINDS)):
        at = int(rng.integers(len(designs)))
        design, A = designs[at]
        if at not in known:
            known[at] = brute_force(design, A)
        rows, totals, shape = *random_axes(rng, design.schema.shape(A)), design.schema.shape(A)
        first = dense(rows, shape)
        own = [np.eye(n) if r is None else r for r, n in zip(rows, shape, strict=True)]
        partner = dense([o if t is None else np.tile(t, (len(o), 1)) for o, t in zip(own, totals, strict=True)], shape)
        expected = np.einsum("qi,ij,qj->q", first, known[at], partner)
        found = design.errors.covariances(A, rows, totals)
        assert found.shape == tuple(map(len, own))
        scale = np.abs(known[at]).max()
        np.testing.assert_allclose(found.ravel(), expected, atol=1e-8 * scale, err_msg=f"{label(design)} {A}")
        a, b = rng.normal(size=(2, *shape))
        expected = float(a.ravel() @ known[at] @ b.ravel())
        for tiny in (1, 1e-6):
            assert design.errors.sum_covariance(A, a, tiny * b) == pytest.approx(
                tiny * expected, abs=1e-7 * tiny * scale
            )


def test_answers_without_exact_covariances_say_so():
    design = make_plan(make_request((4, 5), "a0*a1", epsilon=1), "sketch", "uniform", "none")
    for asked in (
        lambda: design.errors.covariances((0, 1), [None] * 2, [None] * 2),
        lambda: design.errors.sum_covariance((0, 1), np.ones((4, 5)), np.ones((4, 5))),
    ):
        with pytest.raises(QueryError, match="without exact covariances"):
            asked()
