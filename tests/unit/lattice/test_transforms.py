"""Helmert and Hadamard transforms against explicit matrices, and their inverses."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from helpers import AXIS_ROWS, hadamard_rows, helmert_rows, kron
from hushcube.lattice import hadamard, helmert
from hushcube.lattice.basis import BASES

SHAPES = [(7,), (2, 3), (3, 1, 4), (2, 2, 2, 2), (1,), ()]
integers = hnp.array_shapes(max_dims=4, max_side=6).flatmap(
    lambda shape: hnp.arrays(np.int64, shape, elements=st.integers(-(2**40), 2**40))
)


def full_helmert(n):
    return np.concatenate([np.ones((1, n)), helmert_rows(n)])


def full_hadamard(n):
    codes = 1 << (n - 1).bit_length()
    return np.concatenate([np.ones((1, codes)), hadamard_rows(codes)])


def table(shape, seed=0):
    return np.asarray(np.random.default_rng(seed).integers(-100, 100, shape))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_helmert_forward_is_the_matrix(shape):
    x = table(shape)
    dense = (kron([full_helmert(n) for n in shape]) @ x.ravel()).reshape(shape)
    assert np.array_equal(helmert.forward(x, range(len(shape))), dense)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_helmert_residual_is_the_matrix_without_the_sums(shape):
    x = table(shape)
    dense = kron([helmert_rows(n) for n in shape]) @ x.ravel()
    assert np.array_equal(helmert.residual(x, range(len(shape))).ravel(), dense)


@pytest.mark.parametrize("n", range(1, 9))
def test_helmert_rows_are_orthogonal_with_the_stated_norms(n):
    rows = full_helmert(n)
    assert np.array_equal(rows @ rows.T, np.diag(helmert.norms(n)))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_residual_norms_are_those_of_the_product_rows(shape):
    rows = kron([helmert_rows(n) for n in shape])
    assert np.array_equal(helmert.residual_norms(shape).ravel(), (rows**2).sum(axis=1))


@given(integers)
def test_helmert_inverse_undoes_forward(x):
    axes = range(x.ndim)
    back = helmert.inverse(helmert.forward(x, axes).astype(np.float64), axes)
    assert np.abs(back - x).max(initial=0) <= 1e-9 * max(1, np.abs(x).max(initial=0))


@given(integers)
def test_transforms_are_exact_on_integers(x):
    """Numbers whose float products would be rounded: compared with Python integers."""
    rows = full_helmert(x.shape[0]).astype(int)
    exact = [
        [sum(int(r) * int(v) for r, v in zip(row, column, strict=True)) for row in rows]
        for column in x.reshape(x.shape[0], -1).T
    ]
    found = helmert.forward(x, [0])
    assert found.dtype == np.int64
    assert np.array_equal(found.reshape(x.shape[0], -1).T, exact)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_variances_of_cells_from_independent_coefficients(shape):
    variances = np.random.default_rng(1).uniform(0.1, 2, shape)
    inverse = np.linalg.inv(kron([full_helmert(n) for n in shape]))
    dense = (inverse**2 @ np.ravel(variances)).reshape(shape)
    np.testing.assert_allclose(helmert.inverse_variances(np.asarray(variances), range(len(shape))), dense, rtol=1e-12)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_hadamard_transform_is_the_matrix_with_phantom_zeros(shape):
    x = table(shape)
    padded = hadamard.pad(x, range(len(shape)))
    dense = kron([full_hadamard(n) for n in shape]) @ padded.ravel()
    assert np.array_equal(hadamard.transform(padded, range(len(shape))).ravel(), dense)
    real = tuple(slice(0, n) for n in shape)
    assert np.array_equal(padded[real], x)
    assert padded.sum() == x.sum()


@given(st.integers(0, 4).flatmap(lambda k: hnp.arrays(np.int64, (2**k, 3), elements=st.integers(-(2**50), 2**50))))
def test_hadamard_transform_is_its_own_inverse_up_to_the_size(x):
    assert np.array_equal(hadamard.transform(hadamard.transform(x, [0]), [0]), len(x) * x)


@pytest.mark.parametrize("shape", [s for s in SHAPES if s], ids=str)
def test_hadamard_adjoint_is_the_transposed_residual(shape):
    rows = kron([hadamard_rows(n) for n in shape])
    x = table(shape)
    assert np.array_equal(hadamard.residual(x, range(len(shape))).ravel(), rows @ x.ravel())
    c = table(tuple(len(hadamard_rows(n)) for n in shape), seed=2)
    assert np.array_equal(hadamard.adjoint(c, shape, range(len(shape))).ravel(), rows.T @ c.ravel())


@pytest.mark.parametrize(("name", "shape"), list(product(BASES, [s for s in SHAPES if s])), ids=str)
def test_forward_of_a_basis_is_its_integer_rows(name, shape):
    x = table((2, *shape))  # a batch of two tables
    rows = kron([AXIS_ROWS[name](n) for n in shape])
    found = BASES[name].forward(x, range(1, len(shape) + 1))
    assert found.shape == (2, *map(BASES[name].rows, shape))
    assert np.array_equal(found.reshape(2, -1), x.reshape(2, -1) @ rows.T)


@pytest.mark.parametrize(("name", "n"), list(product(BASES, range(1, 10))))
def test_numbers_of_a_basis_follow_from_its_rows(name, n):
    """The table in lattice/basis.py: eigenvalues, column norms, inner products."""
    basis = BASES[name]
    rows = AXIS_ROWS[name](n)
    real = rows / (n if name == "centred" else 1)
    noise = np.sqrt((rows**2).sum(axis=1, keepdims=True)) if name == "helmert" else 1.0
    gram = (real / noise).T @ (real / noise)
    assert basis.rows(n) == len(rows)
    assert basis.stretch(n) == (n if name == "centred" else 1)
    np.testing.assert_allclose(gram @ np.ones(n), basis.outside(n) * np.ones(n), atol=1e-12)
    centred = np.eye(n) - 1 / n
    if n > 1:
        np.testing.assert_allclose(gram @ centred, basis.inside(n) * centred, atol=1e-12)
        assert gram[0, 1] == pytest.approx(float(basis.column_product(n)), abs=1e-12)
    np.testing.assert_allclose(np.diag(gram), float(basis.l2_column(n)), atol=1e-12)
    if basis.l1_column is not None:
        np.testing.assert_allclose(np.abs(real).sum(axis=0), float(basis.l1_column(n)), atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 70])
def test_variances_of_intervals_are_those_of_dense_weights(n):
    """Of every interval, along either axis of a table of independent coefficients."""
    rng = np.random.default_rng(n)
    starts, last = np.triu_indices(n)
    cells = np.arange(n)
    sums = ((cells >= starts[:, None]) & (cells <= last[:, None])).astype(float)
    weights = sums @ helmert.inverse(np.eye(n), [1]).T
    variances = rng.random((n, 4))
    expected = weights**2 @ variances
    found = helmert.interval_variances(variances, 0, starts, last + 1)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    np.testing.assert_allclose(helmert.interval_variances(variances.T, 1, starts, last + 1), expected.T, rtol=1e-10)
