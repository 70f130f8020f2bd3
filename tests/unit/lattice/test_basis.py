"""The four bases: each row of the table in lattice/basis.py, on one axis and on two."""

import numpy as np
import pytest

from hushcube.lattice.basis import BASES


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("shape", [(2,), (3,), (5,), (3, 4)], ids=str)
def test_the_adjoint_of_what_is_measured_has_the_eigenvalues_of_the_table(name, shape):
    """Centred along some axes and constant along the others, a table comes back times `inside` and `outside`."""
    basis = BASES[name]
    for pattern in np.ndindex((2,) * len(shape)):
        table, expected = np.ones((1, *shape), np.int64), 1
        for axis, (n, centred) in enumerate(zip(shape, pattern, strict=True), start=1):
            along = np.arange(n) * 2 - (n - 1) if centred else np.ones(n, int)
            table = table * along.reshape([-1 if a == axis else 1 for a in range(len(shape) + 1)])
            expected *= basis.inside(n) if centred else basis.outside(n)
        numbers = basis.forward(table, range(1, len(shape) + 1))
        assert numbers.shape == (1, *map(basis.rows, shape))
        back = basis.adjoint(numbers.astype(float), shape)
        np.testing.assert_allclose(back, expected * table, atol=1e-9)


@pytest.mark.parametrize("name", BASES)
def test_one_row_of_data_moves_as_many_numbers_as_are_touched(name):
    basis = BASES[name]
    for n in (2, 3, 5, 8):
        moved = basis.forward(np.eye(n, dtype=np.int64), [1])
        assert max(np.count_nonzero(moved, axis=1)) <= basis.touched(n)
        least, most = basis.extreme_norms(n)
        norms = np.ones(1, int) if basis.row_norms is None else basis.row_norms((n,))
        assert norms.min() == least and norms.max() == most
