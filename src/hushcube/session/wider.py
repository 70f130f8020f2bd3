"""A table wider than its question, for later questions that nobody has declared.

A table T that holds the question A serves it as well as A itself, at sqrt(cells(T) / cells(A)) times the rate: summed
cells add their noise up. It gives all spaces inside T the information that lacks on those of A, so that other questions
inside T are answered too. With p the chance that one is asked at all (questions with as many attributes as A, all
choices alike), T is the better, the less it costs for each question that it is expected to answer,

    rate(T) / (1 + p · how many others it answers, that are not answered yet)               [docs/maths.md, 11]

It grows by one attribute at a time, the one that makes this least, and stops where two in a row did not lower it.
"""

from __future__ import annotations

from itertools import combinations
from typing import Final

import numpy as np

from hushcube.designs.request import MAX_TABLE_CELLS
from hushcube.model.arrays import Floats, Marginal
from hushcube.model.noise import laplace_rate
from hushcube.session.knowledge import Knowledge

_MOST_ATTRIBUTES: Final = 10  # of a table
_MOST_ASKED: Final = 4  # attributes of a question that a table is widened for
_PATIENCE: Final = 2
_MET: Final = 1 + 1e-9  # a target is met within rounding


def widest(
    known: Knowledge, question: Marginal, t: float, kappa: float | None, plain: float, chance: float
) -> tuple[Marginal, float] | None:
    """The table with its rate that costs least for each expected answer; None where that is the plain step."""
    k, varying = len(question), [i for i, n in enumerate(known.sizes) if n > 1]
    if kappa is None or chance <= 0 or not 1 <= k <= _MOST_ASKED or not set(question) <= set(varying):
        return None
    best, found, table, answers = plain, None, question, 1.0
    failed = 0
    while failed < _PATIENCE and len(table) < min(_MOST_ATTRIBUTES, len(varying)):
        choices = []
        for i in (i for i in varying if i not in table and known.cells((*table, i)) <= MAX_TABLE_CELLS):
            others = [tuple(sorted((*part, i))) for part in combinations(table, k - 1)]
            more = answers + chance * _answered(known, others, t, kappa)
            rate = laplace_rate(1 / (kappa * known.cells((*table, i))))
            choices.append((rate / more, rate, more, i))
        if not choices:
            break
        price, rate, answers, i = min(choices)
        table = tuple(sorted((*table, i)))
        failed += 1
        if price < best:
            best, found, failed = price, (table, rate), 0
    return found


def _answered(known: Knowledge, questions: list[Marginal], t: float, kappa: float) -> int:
    """How many questions of one number of attributes meet the target with so much more on all spaces, and not yet."""
    spaces = [known.spaces(question) for question in questions]
    information = np.array([each.information for each in spaces])
    dimensions = np.array([each.dimensions for each in spaces])
    target = t * np.array([each.asked for each in spaces]) ** 2 * _MET
    return int(((_sums(dimensions, information) > target) & (_sums(dimensions, information + kappa) <= target)).sum())


def _sums(dimensions: Floats, information: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray((dimensions / information).sum(axis=1))
