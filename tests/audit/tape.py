"""Noisy answers of adaptive methods, recorded on one table and played back on another.

A neighbour's table would need other noise for the same answers. With the answers frozen every decision and every
parameter must be the same, for it may depend on nothing else; and the loss of the run is what all answers together
cost, at the rates with which they were really drawn.
"""

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from audit.tags import Violation
from hushcube.private.adaptive import paths, resampling, run
from hushcube.private.adaptive.paths import NoisePaths, Path

PEOPLE_NOISE = 7
"""In the noisy number of people, where a rule asks for one."""


@dataclass
class Step:
    """Exact answers that met noise: what came out, and the rates that were asked of the sampler meanwhile."""

    answers: np.ndarray
    rate: object
    truth: np.ndarray
    drawn: list[Fraction] = field(default_factory=list)


class Tape:
    """Keeps noisy answers with their rates, and plays them back in the same order, at the same rates only."""

    def __init__(self):
        self.steps, self.truths, self.next = [], [], None
        self.rows = 100
        """People in the table at hand."""
        self._drawn = None

    def replay(self, rows=None):
        """From the beginning, on another table."""
        self.next, self.truths = 0, []
        self.rows = self.rows if rows is None else rows

    def noisy(self, truth, rate, draw):
        """What is published in place of exact answers."""
        self.truths.append(np.array(truth))
        if self.next is None:
            self._drawn = []
            answers = np.array(draw())
            self.steps.append(Step(answers, rate, np.array(truth), self._drawn))
            self._drawn = None
            return answers.copy()
        if self.next >= len(self.steps) or rate != self.steps[self.next].rate:
            raise Violation("a decision changed though no noisy answer did")
        step = self.steps[self.next]
        if step.answers.shape != np.shape(truth):
            raise Violation("another number of answers is asked for")
        self.next += 1
        return step.answers.copy()

    def watch(self, sampler):
        """The sampler, with its rates written down."""

        def drawn(rates, columns, entropy):
            if self._drawn is not None:
                self._drawn += rates
            return sampler(rates, columns, entropy)

        return drawn


def record(monkeypatch):
    """Take over every place at which an adaptive method adds noise to exact answers."""
    tape = Tape()
    draws, noisy = NoisePaths.draw, resampling._noisy
    for module in (paths, resampling):
        monkeypatch.setattr(module, "discrete_laplace", tape.watch(module.discrete_laplace))

    def path(self, truth, entropy):
        found = []
        levels = range(len(self._rates))

        def dense():
            found.append(draws(self, truth, entropy))
            return np.stack([found[0].at(level) for level in levels])

        values = tape.noisy(np.broadcast_to(truth, (len(levels), len(truth))), tuple(self._rates.tolist()), dense)
        at, cells = np.nonzero(values[1:] != values[:-1])
        return Path(values[0], at + 1, cells, values[at, cells], values[at + 1, cells])

    def another_sample(truth, rate, entropy):
        return tape.noisy(truth, rate, lambda: noisy(truth, rate, entropy))

    def count_people(rates, columns, entropy):
        """The noise that makes the noisy number of people what it was."""
        total = np.full((1, 1), tape.rows)
        return tape.noisy(total, rates[0], lambda: tape._drawn.append(rates[0]) or total + PEOPLE_NOISE) - total

    monkeypatch.setattr(NoisePaths, "draw", path)
    monkeypatch.setattr(resampling, "_noisy", another_sample)
    monkeypatch.setattr(run, "discrete_laplace", count_people)
    return tape


def loss(tape, made, free):
    """What the answers on the tape cost, between the table recorded and the one replayed last.

    Independent answers cost what they were drawn with. A path of refined answers costs what its last one does; `made`
    is the plan that states these rates, `free` the groups that were refined.
    """
    total = Fraction(0)
    moved, final = [], []
    for step, truth in zip(tape.steps, tape.truths, strict=True):
        shift = np.abs(step.truth - truth)
        if isinstance(step.rate, tuple):
            if step.drawn != [Fraction(step.rate[-1])]:
                raise Violation("a path starts from other noise than its finest")
            moved += shift[0].tolist()
            final.append(step.rate)
        elif step.drawn != [Fraction(step.rate)]:
            raise Violation("noise of another rate is drawn")
        else:
            total += Fraction(step.rate) * int(shift.sum())
    if moved:
        rates = [
            rate
            for rate, size in zip(made.budgets[free].tolist(), _sizes(made, free), strict=True)
            for _ in range(size)
        ]
        if not all(any(rate in grid for grid in final) for rate in rates):
            raise Violation("the stated rates are not those of the paths")
        total += sum((Fraction(rate) * by for rate, by in zip(rates, moved, strict=True)), Fraction(0))
    return total


def _sizes(made, free):
    """How many answers each refined group has."""
    if not hasattr(made, "measured"):  # the rows of a matrix
        return [1] * int(free.sum())
    cells = [int(np.prod([made.schema.sizes[i] for i in marginal], dtype=np.int64)) for marginal in made.measured]
    return [size for size, is_free in zip(cells, free.tolist(), strict=True) if is_free]
