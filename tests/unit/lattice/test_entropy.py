"""Tables with an opinion: a general solver on dense matrices is the judge."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import minimize

from hushcube.lattice import helmert
from hushcube.lattice.coefficients import Coefficients, Projection
from hushcube.lattice.entropy import Noisy, entropic
from hushcube.lattice.family import Family
from hushcube.lattice.guesses import Guessed, deviations, fit_by_orders, guesses, largest, loosened, order, own_misfits
from hushcube.lattice.proportional import proportional


def goes_on(_share):
    return True


def problem(sizes, tables, seed, noise):
    """Noisy coefficients of made-up people, a guess of each table, and how firm it is."""
    rng = np.random.default_rng(seed)
    full = rng.gamma(0.5, 40.0, sizes)
    family = Family.of(tables, sizes)
    spaces = family.closure
    variances = noise * rng.uniform(0.5, 2.0, len(spaces))
    blocks = []
    for batch in spaces.batches:
        own = []
        for row, at in zip(batch.rows.tolist(), batch.ids.tolist(), strict=True):
            table = full.sum(axis=tuple(i for i in range(len(sizes)) if i not in row))
            shaken = helmert.residual(table, range(table.ndim)) if row else table
            deviation = np.sqrt(variances[at] * helmert.residual_norms(table.shape))
            own.append(shaken + rng.normal(0, 1, shaken.shape) * deviation)
        blocks.append(np.array(own))
    cells = sum(len(batch.ids) * batch.cells for batch in family.batches)
    guess = (
        rng.uniform(0.5, 2.0, cells)
        * full.sum()
        / np.concatenate([np.full(len(b.ids) * b.cells, b.cells) for b in family.batches])
    )
    return full, family, Noisy(Coefficients(spaces, tuple(blocks)), variances), guess, rng.uniform(0.01, 0.3, cells)


def objective(to, noisy, guess, stiffness, t):
    spaces = noisy.spaces
    norms = np.concatenate([np.tile(helmert.residual_norms(b.shape).ravel(), len(b.ids)) for b in spaces.batches])
    y = to.spread(t)
    if (y <= 0).any():
        return np.inf
    likelihood = ((t - to.join(noisy.coefficients.blocks)) ** 2 / (norms * to.each(noisy.variances))).sum() / 2
    return likelihood + float(stiffness @ (y * np.log(y / guess) - y + guess))


@pytest.mark.parametrize("tables", [[(0, 1), (1, 2)], [(0, 1), (0, 2), (1, 2)], [(0, 1), (2,)]])
def test_the_minimum_is_that_of_a_general_solver(tables):
    _, family, noisy, guess, stiffness = problem((2, 3, 2), tables, 1, 25.0)
    fit = entropic(family, noisy, guess, stiffness, goes_on)
    to = Projection(family, np.ones(len(family)), family.closure)
    found = to.join(fit.coefficients.blocks)
    value = objective(to, noisy, guess, stiffness, found)
    even = to.nearest(np.concatenate([np.full(len(b.ids) * b.cells, 300.0 / b.cells) for b in family.batches]))
    judge = minimize(
        lambda t: min(objective(to, noisy, guess, stiffness, t), 1e12), even, method="Nelder-Mead",
        options={"maxiter": 60_000, "maxfev": 60_000, "xatol": 1e-7, "fatol": 1e-10, "adaptive": True},
    )  # fmt: skip
    assert value <= judge.fun * (1 + 1e-6) + 1e-6
    assert fit.lower <= value + 1e-9, "what is called a lower bound is none"
    assert fit.lower <= judge.fun + 1e-6


@given(seed=st.integers(0, 10_000), noise=st.sampled_from([1.0, 100.0, 10_000.0]))
def test_the_certificate_bounds_the_distance(seed, noise):
    _, family, noisy, guess, stiffness = problem((2, 3, 2), [(0, 1), (1, 2)], seed, noise)
    fit = entropic(family, noisy, guess, stiffness, goes_on)
    rough = entropic(family, noisy, guess, stiffness, lambda _share: False)  # stopped at the first look
    tables = [np.maximum(rough.coefficients.tables(b.rows, b.shape), 1e-9) for b in family.batches]
    to = fit.problem.to
    near = to.nearest(to.join(tables))
    if to.spread(near).min() < 0:
        return  # not consistent without negative cells: nothing is promised
    t = to.join(fit.coefficients.blocks)
    apart = ((near - t) ** 2 / (fit.problem.h * fit.problem.v)).sum()
    left = rough.share_of_noise(list(to.split(to.spread(near))))
    assert apart <= left**2 * to.length * (1 + 1e-3) + 1e-3


def test_without_noise_the_tables_are_the_measured_ones():
    full, family, noisy, guess, stiffness = problem((2, 3, 4), [(0, 1), (0, 2), (1, 2)], 3, 1e-8)
    fit = entropic(family, noisy, guess, stiffness, goes_on)
    for batch in family.batches:
        for row, table in zip(batch.rows.tolist(), fit.coefficients.tables(batch.rows, batch.shape), strict=True):
            assert table == pytest.approx(full.sum(axis=tuple({0, 1, 2} - set(row))), rel=1e-3, abs=0.05)


def test_with_much_noise_the_tables_are_the_guess():
    _, family, noisy, _, _ = problem((3, 4), [(0, 1)], 4, 1e12)
    guess = np.outer([1.0, 2.0, 3.0], [4.0, 3.0, 2.0, 1.0]).ravel()
    fit = entropic(family, noisy, guess, np.ones(12), goes_on)
    assert fit.coefficients.tables(np.array([[0, 1]], np.int32), (3, 4)).ravel() == pytest.approx(guess, rel=1e-3)


def test_exact_coefficients_stay_exact():
    _, family, noisy, guess, stiffness = problem((2, 3, 2), [(0, 1), (1, 2)], 5, 50.0)
    exact = Noisy(noisy.coefficients, np.where(np.arange(len(noisy.spaces)) == 0, 0.0, noisy.variances))
    fit = entropic(family, exact, guess, stiffness, goes_on)
    total = float(noisy.coefficients.blocks[0].reshape(-1)[0])
    assert float(fit.coefficients.blocks[0].reshape(-1)[0]) == pytest.approx(total, rel=1e-5)


class Summed:
    """The margins of one full table."""

    def __init__(self, full):
        self.full = full

    def tables(self, rows, shape):
        out = [tuple(set(range(self.full.ndim)) - set(row)) for row in rows.tolist()]
        return np.stack([self.full.sum(axis=axes) for axes in out]).reshape(len(rows), *shape)


def test_two_attributes_are_guessed_to_be_independent():
    full = np.random.default_rng(1).gamma(1.0, 10.0, (3, 4, 2))
    [guess] = guesses(Family.of([(0, 1)], full.shape), Summed(full), full.sum())
    expected = np.outer(full.sum(axis=(1, 2)), full.sum(axis=(0, 2))) / full.sum()
    assert guess[0] == pytest.approx(expected)


def test_three_attributes_are_guessed_without_an_interaction_of_all_three():
    full = np.random.default_rng(2).gamma(1.0, 10.0, (3, 4, 2))
    [guess] = guesses(Family.of([(0, 1, 2)], full.shape), Summed(full), full.sum())
    for axis in range(3):
        assert guess[0].sum(axis=axis) == pytest.approx(full.sum(axis=axis), rel=1e-3)
    odds = np.log(guess[0][:-1] / guess[0][1:])
    twice = odds[:, :-1] - odds[:, 1:]
    assert twice[:, :, 0] - twice[:, :, 1] == pytest.approx(np.zeros((2, 3)), abs=1e-6)


def test_proportional_fitting_bears_empty_margins():
    empty = proportional((2, 2, 2), [np.zeros((1, 2, 2))] * 3)
    assert (empty == 0).all()


@pytest.mark.parametrize("noise", [0.0, 4.0])
def test_deviations_are_what_is_left_when_the_noise_is_taken_away(noise):
    rng = np.random.default_rng(3)
    family = Family.of([(0, 1)], (20, 30))
    q = rng.gamma(2.0, 50.0, (1, 20, 30))
    x = q * (1 + 0.3 * rng.normal(size=q.shape))
    z = helmert.residual(x + rng.normal(0, np.sqrt(noise), x.shape), (1, 2))
    spaces = family.closure
    found = Coefficients.zeros(spaces)
    found.blocks[-1][...] = z
    d = deviations(family, (q,), Noisy(found, np.full(len(spaces), max(noise, 1e-9))))
    assert d[0] == pytest.approx(0.3, rel=0.15)


def test_a_table_near_its_guess_by_chance_has_the_deviation_of_the_others_too():
    family = Family.of([(0, 1), (0, 2), (1, 2)], (2, 2, 4))
    guess = tuple(np.full((len(b.ids), *b.shape), 100.0) for b in family.batches)
    far = Coefficients.zeros(family.closure)
    for batch, block in zip(far.spaces.batches, far.blocks, strict=True):
        if len(batch.shape) == 2:
            block[...] = 30.0
            block[[row.tolist() == [0, 1] for row in batch.rows]] = 0.0  # its one number is that of the guess
    noisy = Noisy(far, np.full(len(far.spaces), 1e-9))
    d = dict(zip(family, deviations(family, guess, noisy), strict=True))
    m, energy = {(0, 1): 1, (0, 2): 3, (1, 2): 3}, 900 * sum(1 / helmert.residual_norms((2, 4)).ravel())
    own = {(0, 1): 0.0, (0, 2): energy / (8 * 100.0**2), (1, 2): energy / (8 * 100.0**2)}
    usual = sum(m[t] * own[t] for t in own) / 7
    for table, found in d.items():
        assert found**2 == pytest.approx((m[table] * own[table] + 2 * usual) / (m[table] + 2))
    assert d[0, 1] > d[0, 2] / 2


def test_what_margins_leave_of_deviations_is_that_of_a_normal_law_on_the_residual_space():
    """The covariance D - D A' (A D A')^-1 A D of cells whose margins A are fixed, written out."""
    shares = [np.array([0.7, 0.2, 0.1]), np.array([0.9, 0.1]), np.array([0.4, 0.3, 0.2, 0.1])]
    q = 1000 * np.einsum("i,j,k->ijk", *shares)
    cells, m = q.size, 2 * 1 * 3
    margins = np.concatenate(
        [np.stack([c.sum(axis=axis).ravel() for c in np.eye(cells).reshape(-1, *q.shape)], axis=1) for axis in range(3)]
    )
    d = np.diag(q.ravel() ** 2)
    left = d - d @ margins.T @ np.linalg.pinv(margins @ d @ margins.T) @ margins @ d
    squares = cells / m * np.trace(left) / (q**2).sum()
    absolute = np.sqrt(cells / m) * np.sqrt(np.maximum(np.diag(left), 0)).sum() / q.sum()

    family = Family.of([(0, 1, 2)], q.shape)
    misfit = deviations(family, (q[None],), Noisy(Coefficients.zeros(family.closure), np.ones(8)), np.array([0.2]))
    assert misfit[0] == pytest.approx(0.2 / np.sqrt(absolute), rel=1e-9)
    x = q + 10 * np.random.default_rng(1).normal(size=q.shape)
    noisy = Coefficients.zeros(family.closure)
    noisy.blocks[-1][...] = helmert.residual(x[None], (1, 2, 3))
    apart = helmert.residual((x - q)[None], (1, 2, 3)) / np.sqrt(helmert.residual_norms(q.shape))
    own = deviations(family, (q[None],), Noisy(noisy, np.full(8, 1e-9)))
    assert own[0] == pytest.approx(np.sqrt((apart**2).sum() / (np.sqrt(squares) * (q**2).sum())), rel=1e-6)


@pytest.mark.parametrize(("away", "expected"), [(0.0, 1.0), (10.0, 51.0), (1e6, 1e4 + 1)])
def test_guesses_are_believed_less_where_few_numbers_stand_out_of_their_noise(away, expected):
    """Pairs of two values: one number each, `away` from its guess in squares of its noise and one more."""
    family = Family.of([(0, 1)], (2, 2))
    q = np.full((1, 2, 2), 25.0)
    noisy = Coefficients.zeros(family.closure)
    noisy.blocks[-1][...] = np.sqrt((away**2 + 1) * helmert.residual_norms((2, 2)) * 4.0)
    assert loosened(family, (q,), Noisy(noisy, np.full(4, 4.0)))[0] ** 2 == pytest.approx(expected)
    assert loosened(family, (q,), Noisy(noisy, np.zeros(4)))[0] ** 2 == pytest.approx(1e4 + 1)


def test_what_is_left_of_a_set_is_what_its_best_estimate_is_off_by():
    """Deviations are normal, and so is the noise: what is left of both is simulated."""
    rng = np.random.default_rng(5)
    family = Family.of([(0, 1)], (4, 5))
    q = rng.gamma(1.0, 50.0, (1, 4, 5))
    noisy = Noisy(Coefficients.zeros(family.closure), np.full(4, 300.0))
    found = Guessed(family, (q,), np.array([0.4])).left(noisy, float(q.sum()))
    noise, tau = 300.0 * (3 / 4) * (4 / 5), 0.4 * q * np.sqrt(np.pi / 2)
    x = rng.normal(0, 1, (20_000, 4, 5)) * tau
    estimate = (x + rng.normal(0, np.sqrt(noise), x.shape)) * tau**2 / (tau**2 + noise)
    assert found[0] == pytest.approx(np.abs(x - estimate).sum(axis=(1, 2)).mean() / q.sum(), rel=0.01)


@pytest.mark.parametrize(("noise", "least", "most"), [(1e-9, 0.999, 1.0), (20.0, 0.72, 0.98), (1e6, 0.699, 0.701)])
def test_a_misfit_is_a_tables_own_but_for_the_noise_of_smaller_tables(noise, least, most):
    full = np.random.default_rng(8).gamma(1.0, 20.0, (3, 4, 5))
    tables = Family.of([(0, 1, 2)], full.shape)
    spaces = tables.closure
    blocks = [helmert.residual(own, range(1, own.ndim)) if own.ndim > 1 else own
              for own in (Summed(full).tables(b.rows, b.shape) for b in spaces.batches)]  # fmt: skip
    noisy = Noisy(Coefficients(spaces, tuple(blocks)), np.full(len(spaces), noise))
    before = fit_by_orders(Family.of([(0, 1), (0, 2), (1, 2)], full.shape), noisy, goes_on)
    (own,) = own_misfits(order(tables, 3), np.array([0.2]), noisy, before)
    assert least * 0.2 <= own <= most * 0.2


def test_a_value_with_everybody_leaves_no_nan():
    family = Family.of([(0, 1)], (2, 2))
    q = np.array([[[1e6, 1e-12], [1e-12, 1e-30]]])
    assert np.isfinite(deviations(family, (q,), Noisy(Coefficients.zeros(family.closure), np.ones(4)))).all()


def test_the_number_of_people_stays_where_it_was_measured():
    """Sparse tables with much noise: without negative cells they would rather have more people, all of them."""
    rng = np.random.default_rng(6)
    full = np.zeros((30, 30, 30))
    full[:2, :2, :2] = 500.0
    tables = Family.of([(0, 1), (0, 2), (1, 2)], full.shape)
    spaces = tables.closure
    blocks = []
    for batch in spaces.batches:
        own = Summed(full).tables(batch.rows, batch.shape)
        own = own + rng.normal(0, 100.0, own.shape)
        blocks.append(helmert.residual(own, range(1, own.ndim)) if batch.shape else own)
    found = fit_by_orders(tables, Noisy(Coefficients(spaces, tuple(blocks)), np.full(len(spaces), 1e4)), goes_on)
    total = float(np.asarray(blocks[0]).ravel()[0])
    assert float(np.asarray(found.tables.blocks[0]).ravel()[0]) == pytest.approx(total, rel=2e-3)


def test_fits_by_orders_cover_tables_of_different_sizes():
    full = np.random.default_rng(4).gamma(1.0, 20.0, (2, 3, 2, 3))
    tables = Family.of([(0, 1, 2), (2, 3)], full.shape)
    assert list(largest(tables, 2)) == [(0, 1), (0, 2), (1, 2), (2, 3)]
    assert list(largest(tables, 3)) == [(2, 3), (0, 1, 2)]
    assert list(order(tables, 1)) == [(0,), (1,), (2,), (3,)]
    spaces = tables.closure
    blocks = []
    for batch in spaces.batches:
        own = Summed(full).tables(batch.rows, batch.shape)
        blocks.append(helmert.residual(own, range(1, own.ndim)) if batch.shape else own)
    noisy = Noisy(Coefficients(spaces, tuple(blocks)), np.full(len(spaces), 1e-6))
    found = fit_by_orders(tables, noisy, goes_on)
    for batch in tables.batches:
        expected = Summed(full).tables(batch.rows, batch.shape)
        assert found.tables.tables(batch.rows, batch.shape) == pytest.approx(expected, rel=0.02, abs=0.5)
