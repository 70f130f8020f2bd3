"""Predicted against measured errors of stacks, drawn from the exact samplers layer by layer."""

from dataclasses import replace

import numpy as np
import pytest

from helpers import Counts, all_tables, exact_table, make_plan, make_request, make_schema, random_codes
from hushcube.designs import StackedDesign
from hushcube.model.workload import Workload
from hushcube.private.blocks import EXACT, drawn, transformed
from hushcube.private.measure import draw
from hushcube.private.noise import SeededEntropy
from stacks import DenseStack

SIZES = (2, 3)
RUNS = 4_000
WORKLOAD = Workload.parse("cube", make_schema(SIZES))
COUNTS = Counts(WORKLOAD.schema, random_codes(SIZES, 80))
BOUND = 5 * np.sqrt(5 / RUNS)


def layers(law):
    """An early layer of one table, one more of the same, and a late one of everything."""
    early = make_plan(make_request(SIZES, "a0*a1", **law), "workload")
    late = make_plan(make_request(SIZES, "cube", **law), "residual" if "rho" in law else "fourier")
    return [early, early, late]


def runs(stack):
    """What is measured, (RUNS, numbers), block by block with independent draws for every run."""
    found, entropy = [], SeededEntropy(11)
    for block, exact in transformed(stack, COUNTS):
        noise = drawn(stack, replace(block, budgets=np.tile(block.budgets, RUNS)), entropy, EXACT)
        found.append((exact + noise.reshape(RUNS, *exact.shape)).reshape(RUNS, -1))
    return np.concatenate(found, axis=1)


def tables(stack, numbers):
    """Every table of a measurement, in a line."""
    measurement = DenseStack(stack).measurement(numbers)
    return np.concatenate([table.ravel() for table in all_tables(stack, stack.answers(measurement)).values()])


@pytest.mark.parametrize("law", [{"epsilon": 1}, {"rho": 2}], ids=str)
def test_errors_are_those_that_a_stack_predicts(law):
    """Squared errors of all cells, and how many 95% intervals cover. Answers are linear: units give their matrix.

    The mean of RUNS squares of noise with an excess kurtosis of at most 3 has a relative deviation of at most
    sqrt(5 / RUNS). Five of them raise a false alarm with a probability below 1e-6 for each of 12 cells, and are less
    than 30%: a scale that is wrong by as much is found, and so are the errors of the last layer alone.
    """
    stack, asked = StackedDesign.of(layers(law), WORKLOAD), make_request(SIZES, "cube", **law).marginals
    measured = runs(stack)
    R = np.stack([tables(stack, unit) for unit in np.eye(measured.shape[1])], axis=1)
    np.testing.assert_allclose(measured[0] @ R.T, tables(stack, measured[0]), atol=1e-9)
    truth = np.concatenate([exact_table(stack.schema, COUNTS.codes, A).ravel() for A in asked])
    off, late = measured @ R.T - truth, StackedDesign.of(layers(law)[-1:], WORKLOAD)
    predicted, of_last = (
        np.concatenate(
            [np.broadcast_to(each.errors.cell_variance_table(A), stack.schema.shape(A)).ravel() for A in asked]
        )
        for each in (stack, late)
    )
    squares = np.mean(off**2, axis=0)
    assert BOUND < 0.3
    assert np.abs(squares / predicted - 1).max() < BOUND
    assert np.abs(squares / of_last - 1).min() > BOUND
    margins = np.repeat(stack.errors.margins, asked.cells.astype(int))
    assert (np.abs(off) <= margins).mean(axis=0).min() > 0.93


def test_a_stack_is_drawn_as_its_layers_are():
    """The same entropy gives the same integers: layer after layer, in the order of their blocks."""
    designs = layers({"rho": 2})
    entropy = SeededEntropy(5)
    apart = [draw(design, COUNTS, entropy=entropy)[1] for design in designs]
    stack, joined = StackedDesign.join(designs, apart, WORKLOAD)
    _, together = draw(stack, COUNTS, entropy=SeededEntropy(5))
    for one, other in zip(joined.values, together.values, strict=True):
        assert np.array_equal(one, other)
