"""How many questions of a stream are answered before the account is empty, each with the same standard error.

    (a) alone       each question is measured by itself, again if it is asked again: the sessions of today's libraries
    (b) a or b      Ding et al. 2011, 7.4: what was measured is answered again; what can be computed from a measured
                    table is, if its magnified error is small enough (a); everything else is measured (b)
    (c) beforehand  the most that anybody can answer who knows the whole stream                             [offline.py]
    plain           a session that measures as little as each question needs
    session         a session that looks ahead, as sessions do

No data is needed: charges and variances follow from what is measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from benchmarks.online.offline import least_rho
from hushcube.model.arrays import Marginal
from hushcube.model.attribute import Attribute
from hushcube.model.privacy import Privacy
from hushcube.model.schema import Schema
from hushcube.planning.pricing import total
from hushcube.session.cube import chooser_for
from hushcube.session.knowledge import Knowledge
from hushcube.session.policy import Outlook, Policy

_ROUNDING = 1 + 1e-9


def one_by_one(
    sizes: Sequence[int], stream: Sequence[Marginal], variance: float, account: Privacy, *, ahead: bool = True
) -> int:
    """What a session answers."""
    sizes = tuple(sizes)
    schema = Schema(tuple(Attribute(name=f"a{i}", codes=n) for i, n in enumerate(sizes)))
    chooser, known = chooser_for(sizes, account, Outlook(Policy(ahead=ahead), schema)), Knowledge(sizes)
    left = total(account)
    for answered, question in enumerate(stream):
        if known.variance(question) > variance * _ROUNDING:
            step = chooser.for_variance(known, question, variance, left)
            price = None if step is None else step.price(sizes, account)
            if step is None or price is None or price > left:
                return answered
            left -= price
            known.add(step.information(sizes))
    return len(stream)


def alone(sizes: Sequence[int], variance: float, account: Privacy) -> int:
    """(a): every question pays for its own table."""
    policy = Outlook(Policy(ahead=False), Schema((Attribute(name="a", codes=2),)))
    price = chooser_for(tuple(sizes), account, policy).alone(variance)
    return math.floor(total(account) / Fraction(price) * Fraction(_ROUNDING))


def a_or_b(sizes: Sequence[int], stream: Sequence[Marginal], variance: float, account: Privacy) -> int:
    """(b): choice a where it is as precise as asked, otherwise choice b."""
    measured, most = set[Marginal](), alone(sizes, variance, account)
    for answered, question in enumerate(stream):
        cells = math.prod(sizes[i] for i in question)
        sources = (math.prod(sizes[i] for i in C) for C in measured if set(question) <= set(C))
        if min(sources, default=math.inf) / cells > _ROUNDING:
            if len(measured) == most:
                return answered
            measured.add(question)
    return len(stream)


def beforehand(sizes: Sequence[int], stream: Sequence[Marginal], variance: float, rho: float, at_least: int = 0) -> int:
    """(c): the longest beginning of the stream whose least rho is within the account; `at_least` is known to be."""
    low, high = at_least, len(stream) + 1
    while high - low > 1:
        middle = (low + high) // 2
        fits = least_rho(sizes, dict.fromkeys(stream[:middle], variance)).rho <= rho * _ROUNDING
        low, high = (middle, high) if fits else (low, middle)
    return low
