"""From what a cube knows to an offer, and to an answer."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import numpy as np

from hushcube.bundle.published_table import Table
from hushcube.designs.errors import COVERAGE
from hushcube.errors import SessionError
from hushcube.ledger.account import Account, currency_of
from hushcube.model.arrays import Floats
from hushcube.model.noise import LAPLACE, law_of, standard_margin
from hushcube.model.privacy import SMALLEST_BUDGET, Privacy
from hushcube.session.answer import Answer, Offer
from hushcube.session.cube import Cube, Proposal, in_words
from hushcube.session.policy import Policy
from hushcube.session.question import Question
from hushcube.session.target import Target

_MET: Final = 1 + 1e-9  # a target is met within rounding


def make_offer(
    cube: Cube, asked: Question, target: Target, account: Account, policy: Policy
) -> tuple[Offer, Proposal | None]:
    """What a target costs, and the step for it; no step where none is needed, or none reaches it."""
    known, allowed = cube.worst(asked.marginal), policy.allowed(account.total, account.left)
    proposal, variance, could = None, known, known
    if target.price is not None:
        proposal = cube.for_price(asked.marginal, target.price)
    elif known > target.variance * _MET:
        left = policy.left(account.total, account.left)
        proposal, variance = cube.for_variance(asked.marginal, target.variance, left, allowed), math.inf
    if proposal is not None:
        variance = could = proposal.variance
    if math.isinf(variance) or (proposal is not None and proposal.price > allowed):
        could = cube.for_price(asked.marginal, allowed).variance if allowed >= SMALLEST_BUDGET else known
    offer = Offer(
        question=asked.word,
        version=cube.version,
        currency=account.currency,
        price=Fraction(0) if proposal is None else proposal.price,
        std_error=math.sqrt(variance),
        known=math.sqrt(known),
        allowed=allowed,
        could=math.sqrt(could),
        measures="" if proposal is None else in_words(cube.schema, proposal.step),
    )
    return offer, proposal


def make_answer(cube: Cube, asked: Question, charged: Fraction) -> Answer:
    """The table of a question with its errors, its axes in the order asked for."""
    variances = cube.variances(asked.marginal)
    if variances is None:
        raise SessionError("question", "cannot be answered from what is known", "ask it with a target")
    errors = np.sqrt(variances)
    table = Table.of(cube.schema, asked.marginal, cube.table(asked.marginal), errors, margins(cube.account, errors))
    return Answer(
        question=asked.word,
        table=table.ordered(asked.names),
        version=cube.version,
        charged=charged,
        currency=currency_of(cube.account),
    )


def margins(account: Privacy, errors: Floats) -> Floats:
    """Half-widths of 95% intervals; under Laplace noise safe for every combination.          [designs/errors.py]"""
    law = law_of(account)
    return errors * standard_margin(law.tail_kurtosis, COVERAGE) + 0.5 * (law is LAPLACE) * (errors > 0)
