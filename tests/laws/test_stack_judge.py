"""Dense linear algebra judges stacks: least squares over the rows of all layers at once, on every small domain."""

import math
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import nested
from helpers import MemoryEngine, Silence, all_tables, hand_plan, make_plan, make_request, make_schema, random_codes
from hushcube.designs import StackedDesign
from hushcube.errors import PlanError
from hushcube.lattice.basis import BASES
from hushcube.model.noise import Measurement
from hushcube.model.workload import Workload
from hushcube.private.measure import measure
from hushcube.private.noise import SeededEntropy
from ranged import ordered_schema
from stacks import DenseStack, hand_layer, random_layers, random_stack

SEEDS = st.integers(0, 2**32)


def measured_apart(layers, workload, rng):
    """A measurement of each layer: any integers, but public answers are true ones."""
    dense = DenseStack(StackedDesign.of(layers, workload))
    arrays = iter(dense.measurement(dense.numbers(rng)).values)
    return [Measurement(one.digest, tuple(islice(arrays, len(one.shapes))), private=False) for one in layers]


def alike(first, second):
    """Whether two designs, each with a measurement, have the same tables and the same errors."""
    (one, own), (other, given) = first, second
    tables = all_tables(other, other.answers(given))
    for A, table in all_tables(one, one.answers(own)).items():
        np.testing.assert_allclose(table, tables[A], rtol=0, atol=1e-8)
        expected = other.errors.cell_variance_table(A)
        np.testing.assert_allclose(one.errors.cell_variance_table(A), expected, rtol=1e-9, atol=1e-12)


@settings(max_examples=25)
@given(SEEDS)
def test_a_stack_is_dense_generalised_least_squares(seed):
    """Tables, variances of cells and of weighted sums."""
    stack, rng = random_stack(seed), np.random.default_rng(seed)
    dense = DenseStack(stack)
    numbers = dense.numbers(rng)
    for A, table in all_tables(stack, stack.answers(dense.measurement(numbers))).items():
        told, covariance = f"{stack!r} {A}", dense.covariance(A)
        np.testing.assert_allclose(table.ravel(), dense.recovery(A) @ numbers, rtol=0, atol=1e-7, err_msg=told)
        cells = np.broadcast_to(stack.errors.cell_variance_table(A), table.shape).ravel()
        np.testing.assert_allclose(cells, np.diag(covariance), rtol=1e-7, atol=1e-11, err_msg=told)
        for exact in (True, False):
            mean = np.diag(dense.covariance(A, exact=exact)).mean()
            found = stack.errors.cell_variances(exact=exact)[stack.request.marginals.ids([A])[0]]
            assert found == pytest.approx(mean, rel=1e-7, abs=1e-11), told
        weights = np.asarray(rng.normal(size=table.shape))
        expected = weights.ravel() @ covariance @ weights.ravel()
        assert stack.errors.sum_variance(A, weights) == pytest.approx(expected, rel=1e-7, abs=1e-10), told


def test_the_random_stacks_have_what_is_hard():
    """Tiny uneven noise beside tables, public totals, several bases, and the same sets in several layers."""
    stacks = [random_stack(seed) for seed in range(40)]
    assert any(not stack.errors.cells_are_alike and len(stack.pools) > 1 for stack in stacks)
    assert any(stack.publishes_total for stack in stacks)
    assert any(len(stack.pools) == 1 and len(stack.measured) < stack.groups for stack in stacks)


@settings(max_examples=8)
@given(SEEDS)
def test_neither_the_order_nor_the_grouping_of_layers_matters(seed):
    rng = np.random.default_rng(seed)
    layers, workload = random_layers(rng)
    parts = measured_apart(layers, workload, rng)
    whole = StackedDesign.join(layers, parts, workload)
    order = rng.permutation(len(layers))
    alike(StackedDesign.join([layers[i] for i in order], [parts[i] for i in order], workload), whole)
    first = StackedDesign.join(layers[:1], parts[:1], workload)  # which sees everything
    of_stacks = StackedDesign.join([first[0], *layers[1:]], [first[1], *parts[1:]], workload)
    alike(of_stacks, whole)
    assert of_stacks[0].digest == whole[0].digest


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize(
    ("law", "strategy"),
    [
        ({"epsilon": 1}, "workload"),
        ({"epsilon": 1}, "fourier"),
        ({"rho": "1/2"}, "residual"),
        ({"rho": 20}, "residual"),
    ],
    ids=str,
)
def test_a_stack_of_one_layer_is_that_layer(law, strategy, neighbours):
    design = make_plan(make_request((2, 3, 4), "cube", neighbours=neighbours, **law), strategy)
    own = measure(design, MemoryEngine(random_codes((2, 3, 4), 100)), entropy=SeededEntropy(3))
    stack, joined = StackedDesign.join([design], [own], design.workload)
    alike((stack, joined), (design, own))
    assert stack.privacy == design.privacy
    assert stack.person_cost == design.person_cost
    # the design knows the law of its total, a single integer, and takes its quantile
    noisy = [A for A in design.request.marginals if A]
    ids = design.request.marginals.ids(noisy)
    np.testing.assert_allclose(stack.errors.margins[ids], design.errors.margins[ids], rtol=1e-9)


@settings(max_examples=12)
@given(SEEDS)
def test_a_budget_that_is_divided_among_layers_has_the_precision_of_the_whole(seed):
    """Gaussian noise of budgets b and c says as much as one of b + c: precisions are 2b and 2c."""
    rng = np.random.default_rng(seed)
    workload = Workload.parse("cube", make_schema((2, 3, 4)))
    basis = ["marginal", "helmert"][rng.integers(2)]
    budgets = {marginal: rng.uniform(1e-3, 1e-2) for marginal in workload.marginals}
    parts = {marginal: own * rng.uniform(0.01, 0.99) for marginal, own in budgets.items()}
    rest = {marginal: own - parts[marginal] for marginal, own in budgets.items()}
    divided = StackedDesign.of([hand_layer(workload, basis, each, pure=False) for each in (parts, rest)], workload)
    whole = StackedDesign.of([hand_layer(workload, basis, budgets, pure=False)], workload)
    for exact in (True, False):
        found, expected = (stack.errors.cell_variances(exact=exact) for stack in (divided, whole))
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert abs(divided.privacy.rho - whole.privacy.rho) <= Fraction(2, 10**15)


def test_the_mean_of_independent_laplace_layers_has_a_smaller_kurtosis():
    """Four equal layers: each cell is a mean of four draws, whose excess kurtosis is a quarter of one draw's."""
    request = make_request((2,), "a0", epsilon=1)
    layers = [hand_plan(request, BASES["marginal"], [(0,)], [0.25])] * 4
    stack, alone = StackedDesign.of(layers, request.workload), StackedDesign.of(layers[:1], request.workload)
    ratio = stack.errors.margins[0] / np.sqrt(stack.errors.exact_cell_variances[0])
    assert ratio < alone.errors.margins[0] / np.sqrt(alone.errors.exact_cell_variances[0])
    assert 1.96 < ratio < 2.1


@pytest.mark.parametrize("rho", [0.01, 5.0])
def test_prefixes_and_ranges_have_the_variances_of_their_sums(rho):
    """Cell by cell, also where coefficients have uneven variances: every answer is a weighted sum of cells."""
    workload = Workload.parse("prefix(a0)*a1,ranges(a0)", ordered_schema((5, 2)))
    budgets = dict.fromkeys(((), (0,), (1,), (0, 1)), rho)
    layers = [hand_layer(workload, basis, budgets, pure=False) for basis in ("helmert", "marginal", "helmert")]
    stack = StackedDesign.of(layers, workload)
    assert stack.errors.cells_are_alike == (rho < 1)
    for form in workload.forms:
        units = np.eye(math.prod(form.carrier_shape)).reshape(-1, *form.carrier_shape)
        rows = np.stack([form.evaluate(unit).ravel() for unit in units], axis=1)
        expected = [stack.errors.sum_variance(form.marginal, row.reshape(form.carrier_shape)) for row in rows]
        np.testing.assert_allclose(stack.errors.form_variances(form, exact=True).ravel(), expected, rtol=1e-9)
        assert stack.errors.form_total(form, exact=True) == pytest.approx(sum(expected), rel=1e-9)


# -------------------------------------------------------------------------------------------------------- nested levels


WORKLOAD = Workload.parse("s@l2,s@l1*u,s*t@l1,t,u,0-way", nested.SCHEMA)


def nested_layers(rng, neighbours):
    """Random tables at levels; the first layer has one that holds all."""
    schema, pure = WORKLOAD.schema, bool(rng.integers(2))
    places = [(None, *chain) for chain in schema.chains]
    public = {(): math.inf} if neighbours == "replace-one" else {}
    layers = []
    for number in range(rng.integers(1, 4)):
        tables = {tuple(sorted(i for own in places if (i := own[rng.integers(len(own))]) is not None)) for _ in "abc"}
        tables |= {tuple(own[-1] for own in places)} if number == 0 else set()
        budgets = {m: float(rng.uniform(0.01, 0.5)) for m in tables if m or not public}
        layers.append(hand_layer(WORKLOAD, "marginal", public | budgets, pure=pure, neighbours=neighbours))
    return layers


@settings(max_examples=6)
@given(SEEDS, st.sampled_from(["add-remove", "replace-one"]))
def test_layers_at_nested_levels_are_dense_least_squares(seed, neighbours):
    """What is public is, for the dense solution, as good as exact."""
    rng = np.random.default_rng(seed)
    stack = StackedDesign.of(nested_layers(rng, neighbours), WORKLOAD)
    x = rng.integers(0, 9, math.prod(nested.finest_sizes(stack.schema)))
    rows, variances, arrays = [], [], []
    for layer in stack.designs:
        for batch in layer.measured.batches:
            own = np.stack([nested.marginal_rows(stack.schema, tuple(row)) for row in batch.rows.tolist()])
            noisy = np.isfinite(layer.budgets[batch.ids])
            exact = own @ x
            arrays.append((exact + rng.integers(-20, 20, exact.shape) * noisy[:, None]).astype(np.int64))
            noise = np.where(noisy, stack.law.variance(np.where(noisy, layer.budgets[batch.ids], 1.0)), 1e-10)
            variances.append(np.repeat(noise, exact.shape[1]))
            rows.append(own.reshape(-1, len(x)))
    S, v, z = np.concatenate(rows), np.concatenate(variances), np.concatenate([each.ravel() for each in arrays])
    solution = np.linalg.pinv(S / np.sqrt(v)[:, None], rcond=1e-13) / np.sqrt(v)
    shaped = tuple(own.reshape(shape) for own, shape in zip(arrays, stack.shapes, strict=True))
    for A, table in all_tables(stack, stack.answers(Measurement(stack.digest, shaped, private=False))).items():
        R = nested.marginal_rows(stack.schema, A) @ solution
        np.testing.assert_allclose(table.ravel(), R @ z, rtol=0, atol=1e-5)
        found = np.broadcast_to(stack.errors.cell_variance_table(A), table.shape).ravel()
        np.testing.assert_allclose(found, np.diag((R * v) @ R.T), rtol=1e-6, atol=1e-8)


def test_layers_that_know_some_levels_are_moved_to_a_schema_of_all_of_them():
    """A table of bands and one of values, each planned where the other level is unknown, agree without noise."""
    people = nested.random_people(WORKLOAD.schema, 200)
    designs, parts = [], []
    for words in ("s@l1*u", "s*t", "t@l1*u", "s@l2"):
        design = make_plan(nested.nested_request(words, epsilon=1), "workload")
        seen = [WORKLOAD.schema.names.index(name) for name in design.schema.names if name in WORKLOAD.schema.names]
        places = [design.schema.names.index(WORKLOAD.schema.names[i]) for i in seen]
        codes = np.zeros((200, len(design.schema)), np.int64)
        codes[:, places] = people[:, seen]
        designs.append(design)
        parts.append(measure(design, MemoryEngine(codes), noise=Silence()))
    workload = Workload.parse("s@l2*u,s@l1*u,s*t@l1,t,0-way", nested.SCHEMA)
    with pytest.raises(PlanError, match="s@l2"):
        StackedDesign.join(designs, parts, Workload.parse("s@l1*u,s*t@l1,t", nested.SCHEMA))
    stack, joined = StackedDesign.join(designs[:3], parts[:3], Workload.parse("s@l1*u,s*t@l1,t,0-way", nested.SCHEMA))
    for A, table in all_tables(stack, stack.answers(joined)).items():
        columns = people[:, [WORKLOAD.schema.names.index(stack.schema.names[i]) for i in A]]
        expected = np.zeros(table.shape)
        for cell in columns.tolist():
            expected[tuple(cell)] += 1
        np.testing.assert_allclose(table, expected, atol=1e-8)
    with pytest.raises(PlanError, match="too little"):  # s@l2*u needs s*u, or finer
        StackedDesign.join(designs[1:], parts[1:], workload)


def test_residual_spaces_are_not_combined_at_nested_levels():
    designs = [make_plan(nested.nested_request(words, rho=1), "residual") for words in ("s@l1*u", "s*u")]
    with pytest.raises(PlanError, match="several levels"):
        StackedDesign.of(designs, Workload.parse("s@l1*u,s*u", nested.SCHEMA))
