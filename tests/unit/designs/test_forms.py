"""Predicted errors of range tables and queries, by every strategy, against the dense covariance of the recovery."""

import math
import tracemalloc

import numpy as np
import pytest

from helpers import LAWS, NEIGHBOURS, all_subsets, kron, label
from hushcube.designs import LatticeDesign
from hushcube.strategies import REGISTRY
from ranged import dense_of, every_variant, form_rows, ordered_schema, random_queries, ranged_request, strategies

SCHEMAS = {"5x2": ordered_schema((5, 2), missing=(0,)), "3x2x2": ordered_schema((3, 2, 2)), "7": ordered_schema((7,))}
WORDS = {
    "5x2": "prefix(a0)*a1,ranges(a0)=0.5,a1=3",
    "3x2x2": "ranges(a0)*prefix(a2)=2,a0*a1,0-way,queries=0.25",
    "7": "prefix(a0)",
}
QUERIES = {"3x2x2": random_queries(SCHEMAS["3x2x2"], (0, 1))}


def make(domain, **privacy):
    return ranged_request(SCHEMAS[domain], WORDS[domain], queries=QUERIES.get(domain), **privacy)


cases = pytest.mark.parametrize(
    ("domain", "law", "neighbours"),
    [
        (d, law, n)
        for d, laws in {"5x2": LAWS, "3x2x2": LAWS[::2], "7": LAWS[2:]}.items()
        for law in laws
        for n in NEIGHBOURS
    ],
    ids=str,
)


def covariances(plan, *, exact):
    """For each form the variances of its answers; for each marginal those of its cells."""
    dense = dense_of(plan)
    tables = {A: dense.covariance(A, exact=exact) for A in plan.request.marginals}
    cells = {A: np.diag(tables[A]) for A in plan.workload.marginals}
    rows = {form: form_rows(form) for form in plan.workload.forms}
    answers = {form: ((Q @ tables[form.marginal]) * Q).sum(axis=1) for form, Q in rows.items()}
    return cells, answers


@pytest.mark.slow
@cases
def test_predictions_are_those_of_the_dense_covariance(domain, law, neighbours):
    request = make(domain, neighbours=neighbours, **law)
    assert {"identity", "workload", "residual", "wavelet", "hierarchy"} <= set(strategies(request))
    for plan in every_variant(request):
        if dense_of(plan) is None:
            continue
        for exact in (True, False):
            check(plan, *covariances(plan, exact=exact), exact=exact)


def check(plan, cells, answers, *, exact):
    message = f"{label(plan)} exact={exact}"
    close = {"rtol": 1e-7, "atol": 1e-9, "err_msg": message}
    for form, expected in answers.items():
        found = plan.errors.form_variances(form, exact=exact)
        assert found.shape == form.shape
        np.testing.assert_allclose(found.ravel(), expected, **close)
        assert plan.errors.form_total(form, exact=exact) == pytest.approx(expected.sum(), rel=1e-7, abs=1e-8), message
    # a table's cells count with their mean, where they differ
    tables = {A: variances.mean() for A, variances in cells.items()}
    weights = dict(zip(plan.workload.marginals, plan.workload.weights, strict=True))
    weights |= dict(zip(plan.workload.forms, plan.workload.form_weights, strict=True))
    sums = {A: v.sum() for A, v in (cells | answers).items()}
    assert plan.errors.total_variance(exact=exact) == pytest.approx(math.fsum(sums.values()), rel=1e-7), message
    if exact:
        expected = math.fsum(weights[key] * value for key, value in sums.items())
        assert plan.errors.weighted_variance() == pytest.approx(expected, rel=1e-7), message
    worst = tables | {form: v.max() for form, v in answers.items()}
    for weighted in (True, False):
        expected = max(value * (weights[key] if weighted else 1) for key, value in worst.items())
        found = plan.errors.max_variance(exact=exact, weighted=weighted)
        assert found == pytest.approx(expected, rel=1e-7), message


def test_tiny_noise_is_uneven_and_among_the_cases():
    plans = [p for d in WORDS for p in every_variant(make(d, rho=20), ["residual"], ["optimal"], ["gls"])]
    assert any(isinstance(plan, LatticeDesign) and not plan.errors.cells_are_alike for plan in plans)


# ------------------------------------------------------------------------------------------------------ the objective


@pytest.mark.parametrize("domain", WORDS)
def test_energies_count_the_squares_of_all_rows(domain):
    """What noise of variance 1 on every cell of one marginal adds to the weighted sum of squared errors."""
    request = make(domain, epsilon=1)
    expected = dict.fromkeys(request.marginals, 0.0)
    for A, weight in zip(request.workload.marginals, request.workload.weights, strict=True):
        expected[A] += weight * request.schema.cells(A)
    for form, weight in request.weighted_forms:
        expected[form.marginal] += weight * (form_rows(form) ** 2).sum()
    np.testing.assert_allclose(request.energies, list(expected.values()), rtol=1e-12)


@pytest.mark.parametrize("domain", WORDS)
def test_space_weights_give_the_objective_of_any_variances(domain):
    """Cov(A) = sum_B cells(B) / cells(A) v_B P_B: the weighted sum of squared errors is sum_B k_B cells(B) v_B."""
    request = make(domain, epsilon=1)
    sizes = request.schema.sizes
    v = dict(zip(request.spaces, np.random.default_rng(4).uniform(0.5, 2, len(request.spaces)), strict=True))

    def cells(A):
        return math.prod(sizes[i] for i in A)

    def covariance(A):
        result = np.zeros((cells(A),) * 2)
        for B in all_subsets(A):
            centred = [np.eye(sizes[i]) - 1 / sizes[i] if i in B else np.full((sizes[i],) * 2, 1 / sizes[i]) for i in A]
            result += cells(B) / cells(A) * v[B] * kron(centred)
        return result

    objective = sum(
        weight * np.trace(covariance(A))
        for A, weight in zip(request.workload.marginals, request.workload.weights, strict=True)
    )
    for form, weight in request.weighted_forms:
        Q = form_rows(form)
        objective += weight * ((Q @ covariance(form.marginal)) * Q).sum()
    found = sum(k * cells(B) * v[B] for B, k in zip(request.spaces, request.space_weights, strict=True))
    assert found == pytest.approx(objective, rel=1e-10)


@pytest.mark.parametrize("words", ["a0,a1", "a0*a1,prefix(a0)"])
def test_carriers_that_are_not_asked_for_weigh_nothing_themselves(words):
    schema = ordered_schema((4, 2))
    request = ranged_request(schema, f"{words},ranges(a0)*a1=3", epsilon=1)
    asked = dict(zip(request.marginals, request.weights, strict=True))
    assert asked[0, 1] == ("a0*a1" in words)
    assert set(asked) == {*request.workload.marginals, (0, 1), *((form.marginal) for form in request.workload.forms)}


# --------------------------------------------------------------------------------------------------------- the margins


@pytest.mark.parametrize(
    "law", [{"epsilon": e} for e in ("0.05", "0.3", 1, 2, 3, 5, 8, 12)] + [{"rho": r} for r in (1, 5)]
)
def test_margins_of_ranges_of_counts_cover_by_the_exact_law(law):
    """The law of a sum of m noisy counts, convolved; where a margin falls between two integers costs half a percent."""
    request = ranged_request(ordered_schema((24,)), "prefix(a0)", **law)
    (plan,) = every_variant(request, ["identity"], ["optimal"], ["gls"])
    (form,) = plan.workload.forms
    widths = plan.errors.any_margin(np.sqrt(plan.errors.form_variances(form, exact=True)))
    budget = float(plan.budgets[0])
    k = np.arange(-1500, 1501)
    one = np.exp(-budget * np.abs(k)) if plan.law.name == "laplace" else np.exp(-(k**2) * budget)
    spectrum = np.fft.fft(np.fft.ifftshift(one / one.sum()))
    for m, width in enumerate(widths.tolist(), start=1):
        total = np.fft.fftshift(np.fft.ifft(spectrum**m).real)
        covered = total[np.abs(k) <= width].sum()
        assert covered >= 0.945, f"{m} counts, {width}"
        assert covered <= 0.97 or total[np.abs(k) <= width - 1].sum() < 0.975, "and not needlessly more"


@pytest.mark.parametrize("rho", ["1/2", 20])
def test_prefixes_of_many_values_take_no_square_of_memory(rho):
    """20,000 values: a matrix of them would take 3.2 GB."""
    request = ranged_request(ordered_schema((20_000,)), ["prefix(a0)"], rho=rho)
    for name in ("identity", "residual", "wavelet"):
        tracemalloc.start()
        plan = REGISTRY[name].plan(request, "optimal", "gls")
        assert math.isfinite(plan.errors.total_variance(exact=True) + plan.errors.max_variance())
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 100e6
