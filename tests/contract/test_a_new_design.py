"""A new kind of design needs only its own module: what is measured as blocks, what it costs, its errors and answers."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import pytest

from helpers import Counts, MemoryEngine, Silence, exact_table, make_request, random_codes
from hushcube.designs.block import Block
from hushcube.designs.design import Design
from hushcube.designs.errors import Errors
from hushcube.errors import BudgetExceeded, BundleError
from hushcube.model.arrays import position_rows
from hushcube.model.noise import Measurement
from hushcube.private.measure import draw, measure
from hushcube.private.noise import SeededEntropy

SIZES, CODES = (3, 4), random_codes((3, 4), 60)


# ------------------------------------------------------------------------------------------------ the whole of the toy


class RunningSums:
    """Each number adds up the cells from the first one on; its inverse are differences."""

    def apply(self, tables):
        return tables.reshape(len(tables), -1).cumsum(axis=1)


class RunningErrors(Errors):
    """A sum of cells is a sum of differences: weights of neighbours subtract, and independent noise adds up."""

    def _variance(self, weights, *, exact):
        factors = weights.ravel() - np.append(weights.ravel()[1:], 0.0)
        return float((factors**2).sum() * self.drawn_variances(exact=exact)[0])

    def _indicators(self, marginal):
        whole = self.design.schema.shape(self.design.marginal)
        for cell in np.ndindex(self.design.schema.shape(marginal)):
            weights = np.zeros(whole)
            at = dict(zip(marginal, cell, strict=True))
            weights[tuple(at.get(i, slice(None)) for i in self.design.marginal)] = 1.0
            yield weights

    def cell_variances(self, *, exact):
        asked = self.design.request.marginals
        return np.array([np.mean([self._variance(w, exact=exact) for w in self._indicators(m)]) for m in asked])

    def form_variances(self, form, *, exact):
        raise NotImplementedError

    def sum_variance(self, marginal, weights):
        lifted = sum(w * u for w, u in zip(weights.ravel(), self._indicators(marginal), strict=True))
        return self._variance(lifted, exact=True)

    def cell_variance_table(self, marginal):
        shape = self.design.schema.shape(marginal)
        return np.array([self._variance(w, exact=True) for w in self._indicators(marginal)]).reshape(shape)


class RunningAnswers:
    """Differences of what was measured, summed to any marginal."""

    def __init__(self, design, numbers):
        self._marginal = design.marginal
        self._table = np.diff(numbers, prepend=0).reshape(design.schema.shape(design.marginal)).astype(float)

    def tables(self, rows, shape):
        axes = [tuple(a for a, i in enumerate(self._marginal) if i not in row) for row in rows.tolist()]
        return np.stack([self._table.sum(axis=each) for each in axes]).reshape(len(rows), *shape)


@dataclass(frozen=True, eq=False)
class RunningDesign(Design):
    """Running sums of one table: a row of data moves at most all of them by one."""

    marginal: tuple[int, ...]
    groups = 1
    in_words = "running sums"

    @property
    def _cells(self):
        return self.schema.cells(self.marginal)

    @property
    def shapes(self):
        return [(1, self._cells)]

    def blocks(self):
        yield Block(position_rows(self.marginal), RunningSums(), np.zeros(1, np.int64), self.budgets, self._cells)

    def row_cost(self, budgets):
        return Fraction(float(budgets[0])) * self._cells

    def proof_variance(self):
        return np.zeros(1)

    def is_answerable(self):
        return all(set(m) <= set(self.marginal) for m in self.request.marginals)

    @cached_property
    def errors(self):
        return RunningErrors(self)

    def make_answers(self, measurement):
        return RunningAnswers(self, measurement.values[0][0])

    def specification(self):
        return {"design": "running", "marginal": list(self.marginal)}

    @classmethod
    def from_specification(cls, raw, schema):
        return {"marginal": tuple(raw["marginal"])}


# ---------------------------------------------------------------------------------------------- and what it is part of


def running(law, budget=1 / 16):
    request = make_request(SIZES, "cube", **law)
    return RunningDesign(request, "running", "uniform", "none", "direct", np.array([budget]), (0, 1))


@pytest.mark.parametrize("law", [{"epsilon": 1}, {"rho": 1}], ids=str)
def test_without_noise_its_answers_are_exact(law):
    design, drawn = running(law), Silence()
    answers = design.answers(measure(design, MemoryEngine(CODES), noise=drawn))
    for marginal in [(), (0,), (1,), (0, 1)]:
        shape = design.schema.shape(marginal)
        found = answers.tables(position_rows(marginal), shape)[0]
        assert np.array_equal(found, exact_table(design.schema, CODES, marginal))
    assert drawn.parameters == [design.law.parameter(Fraction(1, 16))] * 12


@pytest.mark.parametrize("law", [{"epsilon": 1}, {"rho": 1}], ids=str)
def test_its_errors_are_those_that_it_predicts(law):
    """The mean of 4,000 squared errors is within six of its standard deviations: false alarm below 1e-8 a cell."""
    design, counts = running(law), Counts(make_request(SIZES, **law).schema, CODES)
    truth = exact_table(design.schema, CODES, (0,))
    runs, squares = 4_000, []
    entropy = SeededEntropy(7)

    for _ in range(runs):
        answers = design.answers(draw(design, counts, entropy=entropy)[1])
        squares.append((answers.tables(position_rows((0,)), (3,))[0] - truth) ** 2)
    expected = design.errors.cell_variance_table((0,))
    assert np.abs(np.mean(squares, axis=0) / expected - 1).max() < 6 * np.sqrt(5 / runs)
    assert design.errors.cell_variances(exact=True)[design.request.marginals.ids([(0,)])[0]] == expected.mean()
    assert design.errors.sum_variance((0,), np.array([1.0, 0.0, 0.0])) == expected[0]
    assert design.errors.total_variance(exact=True) > 0 and (design.errors.margins > 0).all()


def test_what_holds_for_every_design_holds_for_it():
    """Its cost is checked, its digest binds its measurements, and the tables to count follow from its blocks."""
    design = running({"epsilon": 1})
    assert [level.tolist() for level in design.counted] == [[], [], [[0, 1]]]
    assert [sets.tolist() for sets in design.sets_of_arrays] == [[0]]
    with pytest.raises(BudgetExceeded):
        running({"epsilon": 1}, budget=1 / 8)
    with pytest.raises(BundleError, match="another plan"):
        design.answers(Measurement("other", (np.zeros((1, 12), np.int64),), private=False))


@pytest.mark.parametrize("left_out", ["blocks", "errors", "make_answers", "row_cost", "specification"])
def test_a_design_that_leaves_something_out_cannot_be_made(left_out):
    missing = type("Missing", (RunningDesign,), {left_out: getattr(Design, left_out)})
    with pytest.raises(TypeError, match=left_out):
        missing(make_request(SIZES, epsilon=1), "running", "uniform", "none", "direct", np.ones(1), (0, 1))
