"""Trees against the matrices of their definition: node sums, the projections between levels, and phantom leaves."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from helpers import helmert_rows
from hushcube.lattice import trees
from hushcube.lattice.trees import Tree
from ranged import folded, node_sums, projections


@st.composite
def some_trees(draw):
    fan_outs = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    return Tree(draw(st.integers(1, math.prod(fan_outs))), fan_outs)


def spans(tree):
    """Leaves below a node of each level, counted from the leaves up."""
    below = [1]
    for fan_out in reversed(tree.fan_outs):
        below.insert(0, below[0] * fan_out)
    return below


def dense_rows(tree):
    """The sum, then Helmert's rows among the children of every node, level by level."""
    blocks = [node_sums(tree, 0)]
    for level, fan_out in enumerate(tree.fan_outs, start=1):
        blocks.append(np.kron(np.eye(len(node_sums(tree, level - 1))), helmert_rows(fan_out)) @ node_sums(tree, level))
    return np.concatenate(blocks)


def intervals(n):
    starts, last = np.triu_indices(n)
    return starts, last + 1


@given(some_trees())
def test_nodes_and_levels_follow_from_the_fan_outs(tree):
    assert tree.depth == len(tree.fan_outs)
    assert tree.nodes == tuple(len(node_sums(tree, level)) for level in range(tree.depth + 1))
    assert tree.spans.tolist() == spans(tree)
    assert tree.leaves == spans(tree)[0] >= tree.size
    numbers = np.arange(tree.leaves)
    found = [numbers[tree.block(level)] for level in range(tree.depth + 1)]
    assert np.concatenate(found).tolist() == numbers.tolist(), "the blocks stand one after the other"
    assert tree.levels.tolist() == [level for level, block in enumerate(found) for _ in block]


@given(some_trees())
def test_rows_are_orthogonal_and_span_the_spaces_between_the_levels(tree):
    H = dense_rows(tree)
    np.testing.assert_array_equal(tree.forward(np.eye(tree.leaves), 0), H)
    np.testing.assert_array_equal(H @ H.T, np.diag(tree.norms))
    for level, P in enumerate(projections(tree)):
        block = H[tree.block(level)]
        np.testing.assert_allclose(block.T @ (block / tree.norms[tree.block(level)][:, None]), P, atol=1e-12)


@given(some_trees(), st.integers(0, 1), st.integers(0, 2**32 - 1))
def test_inverse_undoes_forward_along_any_axis_and_gives_phantoms_to_the_last_cell(tree, axis, seed):
    random = np.random.default_rng(seed)
    shape = (tree.size, 3) if axis == 0 else (3, tree.size)
    counts = random.integers(0, 99, shape)
    padded = tree.pad(counts, axis)
    assert padded.shape[axis] == tree.leaves and padded.sum() == counts.sum()
    np.testing.assert_allclose(tree.inverse(tree.forward(padded.astype(float), axis), axis), counts, atol=1e-9)
    coefficients = random.normal(size=padded.shape)
    cells = np.moveaxis(folded(tree) @ np.linalg.solve(dense_rows(tree), np.moveaxis(coefficients, axis, 0)), 0, axis)
    np.testing.assert_allclose(tree.inverse(coefficients, axis), cells, atol=1e-9)
    total = np.moveaxis(coefficients, axis, 0)[0]
    np.testing.assert_allclose(tree.inverse(coefficients, axis).sum(axis=axis), total, atol=1e-9)


@given(some_trees())
def test_weights_of_leaves_are_the_adjoint_of_giving_phantoms_away(tree):
    np.testing.assert_array_equal(tree.spread(np.eye(tree.size), 1), folded(tree))


@pytest.mark.slow
@given(some_trees())
def test_energies_are_those_of_dense_projections(tree):
    starts, ends = intervals(tree.size)
    q = np.stack([folded(tree)[a:b].sum(axis=0) for a, b in zip(starts, ends, strict=True)])
    expected = np.stack([((q @ P) ** 2).sum(axis=1) for P in projections(tree)], axis=1)
    np.testing.assert_allclose(tree.energies(starts, ends), expected, atol=1e-9)
    np.testing.assert_allclose(tree.energies(starts, ends).sum(axis=1), (q**2).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(tree.cell_energies, expected[ends - starts == 1].sum(axis=0), atol=1e-9)
    assert (tree.energies(np.array([0]), np.array([tree.size]))[0, 1:] == 0).all(), "all cells are all leaves, exactly"


@given(some_trees(), st.integers(1, 7), st.integers(0, 2**32 - 1))
def test_weighing_is_energies_times_weights_a_chunk_at_a_time(tree, chunk, seed):
    starts, ends = intervals(tree.size)
    v = np.random.default_rng(seed).uniform(0.1, 2, (tree.depth + 1, 2, 3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees, "_CHUNK", chunk)
        found = tree.weigh(v, starts, ends)
    expected = np.einsum("lab,ql->abq", v, tree.energies(starts, ends))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@given(st.integers(1, 5000), st.integers(1, 13))
def test_fan_outs_of_a_depth_are_even_and_just_enough(size, depth):
    tree = Tree.of_depth(size, depth)
    assert tree.depth == depth and tree.leaves >= size
    assert list(tree.fan_outs) == sorted(tree.fan_outs)
    assert max(tree.fan_outs) - min(tree.fan_outs) <= 1
    if tree.fan_outs[-1] > 1:  # one child fewer anywhere would not do
        fewer = sorted((*tree.fan_outs[:-1], tree.fan_outs[-1] - 1))
        assert math.prod(fewer) < size


@given(st.integers(1, 10**6), st.integers(2, 20))
def test_a_given_fan_out_holds_below_the_root(size, fan_out):
    tree = Tree.with_fan_out(size, fan_out)
    assert set(tree.fan_outs[1:]) <= {fan_out} and tree.fan_outs[0] <= fan_out
    below_the_root = fan_out ** (tree.depth - 1)
    assert size <= tree.leaves < size + below_the_root or size == 1
    assert tree.depth == 1 or below_the_root < size, "no level too many"


@pytest.mark.parametrize("power", range(1, 20))
def test_sizes_that_are_powers_have_no_phantoms(power):
    assert Tree.of_depth(2**power, power) == Tree.with_fan_out(2**power, 2) == Tree(2**power, (2,) * power)
    assert Tree.of_depth(10 ** (power % 6 + 1), power % 6 + 1).fan_outs == (10,) * (power % 6 + 1)


@pytest.mark.parametrize(("size", "fan_outs"), [(5, (2, 2)), (3, (2, 0)), (1, (-1, -1)), (2, ()), (4, (4, 0))])
def test_a_tree_without_a_leaf_for_each_cell_is_refused(size, fan_outs):
    with pytest.raises(ValueError, match="leaf for each cell"):
        Tree(size, fan_outs)
