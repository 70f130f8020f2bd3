"""Dense least squares judges a session: what is known after any steps, and that no step is dearer than needed."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import given, settings, strategies as st

from helpers import NEIGHBOURS, all_subsets, make_schema, marginal_rows, set_rows
from hushcube.lattice import helmert
from hushcube.model.noise import Measurement, laplace_variance
from hushcube.model.privacy import Privacy
from hushcube.session.cube import chooser_for
from hushcube.session.knowledge import Knowledge
from hushcube.session.policy import Outlook, Policy

SIZES = [(2, 3), (2, 2, 2), (3, 1, 2), (4,), (2, 3, 2)]
LAWS = [{"rho": 1}, {"epsilon": 1}]


@st.composite
def sessions(draw):
    """A schema, an account and some questions, each with the variance that it asks for."""
    sizes = draw(st.sampled_from(SIZES))
    schema = make_schema(sizes)
    account = Privacy.of(**draw(st.sampled_from(LAWS)), neighbours=draw(st.sampled_from(NEIGHBOURS)))
    policy = Policy(ahead=draw(st.booleans()), expected=draw(st.sampled_from([(), ("a0",), ("cube",)])))
    questions = st.tuples(st.sampled_from(all_subsets(range(len(sizes)))), st.floats(4, 1e4))
    return (
        schema,
        chooser_for(sizes, account, Outlook(policy, schema)),
        draw(st.lists(questions, min_size=1, max_size=5)),
    )


def rows_and_variances(design):
    """The dense rows that a step measures, on the full domain, and the variance of each."""
    sizes = design.schema.sizes
    for marginal, budget in zip(design.measured, design.budgets.tolist(), strict=True):
        rows = set_rows(design.basis.name, sizes, marginal)
        if math.isinf(budget):
            yield rows, np.full(len(rows), 1e-7)  # public: as good as known
        elif design.basis.name == "helmert":
            yield rows, helmert.residual_norms([sizes[i] for i in marginal]).ravel() / (2 * budget)
        else:
            yield rows, np.full(len(rows), float(laplace_variance(np.array(budget))))


def asked(chooser, known, question, t):
    """The step that a session takes, or None where enough is known."""
    if known.variance(question) <= t * (1 + 1e-9):
        return None
    return chooser.for_variance(known, question, t, Fraction(1))


@settings(max_examples=25)
@given(sessions(), st.integers(0, 2**32))
def test_answers_and_errors_are_those_of_dense_least_squares(session, seed):
    schema, chooser, questions = session
    known, rng = Knowledge(schema.sizes), np.random.default_rng(seed)
    x = rng.integers(0, 50, math.prod(schema.sizes)).astype(float)
    S, v, y = [], [], []
    for question, t in questions:
        step = asked(chooser, known, question, t)
        if step is None:
            continue
        design = step.design(schema, chooser.account)
        values = []
        numbers = {}
        for (rows, variances), marginal in zip(rows_and_variances(design), design.measured, strict=True):
            public = variances.max(initial=0) < 1e-6
            noisy = np.rint(rows @ x + (0 if public else rng.normal(0, np.sqrt(variances))))
            numbers[marginal] = noisy
            S.append(rows), v.append(variances), y.append(noisy)
        for batch, shape in zip(design.measured.batches, design.shapes, strict=True):
            values.append(
                np.array([numbers[tuple(row)] for row in batch.rows.tolist()]).reshape(shape).astype(np.int64)
            )
        known.learn(design, Measurement(design.digest, tuple(values), private=False))
        assert known.variance(question) <= t * (1 + 1e-9)
    if not S:
        return
    root = 1 / np.sqrt(np.concatenate(v))
    inverse = np.linalg.pinv(np.concatenate(S) * root[:, None], rcond=1e-11)
    estimate, covariance = inverse @ (root * np.concatenate(y)), inverse @ inverse.T
    for A in {question for question, _ in questions}:
        Q = marginal_rows(schema.sizes, A)
        table = known.table(A)
        np.testing.assert_allclose(table.ravel(), Q @ estimate, rtol=1e-5, atol=1e-5 * (1 + np.abs(table).max()))
        variances = np.einsum("ij,jk,ik->i", Q, covariance, Q)
        np.testing.assert_allclose(variances, known.variance(A), rtol=1e-4, atol=1e-6)


@settings(max_examples=25)
@given(sessions(), st.integers(0, 2**32))
def test_no_other_way_to_meet_a_target_is_cheaper(session, seed):
    """Moving information from one space to others, so that the variance stays, costs more."""
    schema, chooser, questions = session
    chooser = chooser_for(
        schema.sizes, Privacy.of(rho=1, neighbours="add-remove"), Outlook(Policy(ahead=False), schema)
    )
    known, rng = Knowledge(schema.sizes), np.random.default_rng(seed)
    for question, t in questions:
        step = asked(chooser, known, question, t)
        if step is None:
            continue
        spaces = known.spaces(question)
        added = np.array([step.information(schema.sizes)[B] for B in spaces.marginals])
        price = float(spaces.dimensions @ added) / 2
        assert price <= chooser.alone(t) * (1 + 1e-5)
        assert step.price(schema.sizes, chooser.account) >= Fraction(price * (1 - 1e-12))
        for _ in range(20):
            other = added * np.exp(rng.normal(0, 0.3, len(added)))
            other *= _scale(spaces, other, t)
            assert float(spaces.dimensions @ other) / 2 >= price - 1e-5 * chooser.alone(t)
        known.add(step.information(schema.sizes))


def _scale(spaces, added, t):
    """What multiplies the added information so that the target is met."""
    low, high = 0.0, 1.0
    while spaces.variance(added * high) > t:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if spaces.variance(added * middle) > t else (low, middle)
    return high


@settings(max_examples=25)
@given(sessions(), st.fractions(Fraction(1, 1000), Fraction(1, 20)))
def test_a_price_is_kept_and_used(session, price):
    schema, chooser, questions = session
    known = Knowledge(schema.sizes)
    for question, _ in questions:
        before = known.variance(question)
        step = chooser.for_price(known, question, price)
        design = step.design(schema, chooser.account)
        charged = design.privacy.epsilon or design.privacy.rho
        assert charged == step.price(schema.sizes, chooser.account) <= price
        assert charged > price * Fraction(999, 1000) or chooser.account.total_is_public
        known.add(step.information(schema.sizes))
        assert known.variance(question) < before or before == 0
