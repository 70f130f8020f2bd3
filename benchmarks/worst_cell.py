"""The relative error of the worst cell: what iReduct comes to when it picks for it, printed as tables.

    python -m benchmarks.worst_cell [--runs N] [--quick] [--generated N] [--pair]

`dwork` is even noise, `average` iReduct for the average error, `printed` the paper's rule for the worst cell (the table
with the largest lambda / max(min y, delta) next; no caution), and `worst` ours [private/adaptive/picking.py]. Each
figure is a mean over runs of the largest relative error of any cell, and in brackets the median; the last column says
how the mean of `worst` compares with the better of `dwork` and `average`, with the standard error of that ratio. The
last table has these ratios alone. Data sets called `generated` took no part in the choice of the rule. With `--pair`
only two data sets are measured that no private method can tell apart. The truth is known here: nothing of this is
private.
"""

from __future__ import annotations

import argparse
from contextlib import contextmanager
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.datasets import shared

from hushcube import Attribute, Schema, plan
from hushcube.experiments.truth import HeldTables
from hushcube.private.adaptive import ireduct
from hushcube.private.adaptive.picking import Seen
from hushcube.private.measure import draw
from hushcube.private.noise import SeededEntropy
from hushcube.strategies.adaptive import IReduct

DELTA = 10
EPSILONS = ("0.02", "0.2", "1")
SHARED = {"Adult": "adult8.parquet", "NLTCS": "nltcs.parquet", "ACS": "acs2018_census9.parquet"}
CALLS = {4: 2.5, 9: 3.0, 41: 2.0, 3: 5.0, 25: 3.0, 2: 1.0, 60: 2.0, 12: 3.0, 6: 4.0}
"""Sizes of nine attributes of calls to a fire department, and how steeply their values fall off, by Zipf's law."""


def codes_of(file):
    table = pq.read_table(shared(file))
    encoded = [table.column(name).combine_chunks().dictionary_encode() for name in table.column_names[:9]]
    return np.stack([np.asarray(column.indices.fill_null(len(column.dictionary))) for column in encoded], axis=1)


def made_up(people, shapes, seed):
    rng = np.random.default_rng(seed)
    columns = []
    for size, fall in shapes:
        weights = rng.permutation((np.arange(size) + 1.0) ** -fall)
        columns.append(rng.choice(size, people, p=weights / weights.sum()))
    return np.stack(columns, axis=1)


def generated(number):
    """Attributes of all kinds: few values or many, falling off by a power, exponentially, or at random."""
    rng = np.random.default_rng([number, 9])
    people, columns = int(10 ** rng.uniform(3.5, 5.5)), []
    for _ in range(rng.integers(3, 11)):
        size = int(rng.integers(2, rng.choice([3, 12, 60])))
        places = np.arange(size)
        weights = (
            (places + 1.0) ** -rng.uniform(0, 4),
            np.exp(-places * rng.uniform(0, 1.5)),
            rng.dirichlet(np.full(size, rng.choice([0.1, 0.5, 1.0, 5.0]))) + 1e-12,
        )[rng.integers(3)]
        columns.append(rng.choice(size, people, p=weights / weights.sum()))
    return np.stack(columns, axis=1)


def datasets(quick, more):
    """Name, codes and the attributes of a table; those that are not there are left out."""
    calls = made_up(305_119, CALLS.items(), 1)
    yield "calls", calls, 1
    if quick:
        return
    yield "calls, reversed", calls[:, ::-1], 1
    rng = np.random.default_rng(5)
    for number in range(4):
        shapes = [(int(rng.integers(2, 80)), rng.uniform(0, 4)) for _ in range(rng.integers(3, 12))]
        yield f"made up {number}", made_up(int(10 ** rng.uniform(3.7, 5.5)), shapes, number), 1
    for name, file in SHARED.items():
        try:
            codes = codes_of(file)
        except pytest.skip.Exception as reason:
            print(f"{name} is left out: {reason}")
            continue
        yield name, codes, 1
        if name != "ACS":
            yield f"{name}, 2-way", codes, 2
    for number in range(more):
        codes = generated(number)
        is_small = codes.shape[1] < 6 and number % 3 == 0
        yield f"generated {number}" + (", 2-way" if is_small else ""), codes, 2 if is_small else 1


def counted(codes, order):
    schema = Schema(tuple(Attribute(name=f"a{i}", codes=int(n)) for i, n in enumerate(codes.max(axis=0) + 1)), "data")
    tables = {}
    for marginal in combinations(range(codes.shape[1]), order):
        shape = schema.shape(marginal)
        places = np.ravel_multi_index(tuple(codes[:, i] for i in marginal), shape)
        tables[marginal] = np.bincount(places, minlength=int(np.prod(shape))).reshape(shape)
    return schema, HeldTables(len(codes), tables), tables


@contextmanager
def printed_rule():
    """Section 4.3 as it stands."""

    def for_average(path, grid, *_):
        return grid.scales[:-1] / np.maximum(Seen(path, grid, DELTA).least, DELTA)[:-1]

    ours, ireduct.for_average = ireduct.for_average, for_average
    try:
        yield
    finally:
        ireduct.for_average = ours


def worst_errors(schema, counts, tables, order, epsilon, strategy, runs):
    asked = {"epsilon": epsilon, "neighbours": "add-remove", "recovery": "none", "budgets": "uniform"}
    design = plan(schema, f"{order}-way", strategy=strategy, **asked).count
    found = []
    for run in range(runs):
        made, measurement = draw(design, counts, entropy=SeededEntropy(run))
        answers = made.answers(measurement)
        errors = []
        for marginal, truth in tables.items():
            noisy = answers.tables(np.array([marginal], np.int32), truth.shape)[0]
            errors.append((np.abs(noisy - truth) / np.maximum(truth, DELTA)).max())
        found.append(max(errors))
    return np.array(found)


def pair():
    """Two data sets of two attributes that differ in 390 people, and in which of the tables has a count of 10.

    All but one of the counts of the first table are small, and all but one of the second table's are large.
    """
    people = 10**8
    for few, other in ((10, 400), (400, 10)):
        small = np.array([few, *[400] * 18])
        large = np.full(18, people // 19)
        tables = {
            (0,): np.append(small, people - small.sum()),
            (1,): np.append(large, [people - large.sum() - other, other]),
        }
        schema = Schema(tuple(Attribute(name=f"a{i}", codes=20) for i in range(2)), "pair")
        yield schema, HeldTables(people, tables), tables


class Found(NamedTuple):
    """The worst errors of all runs, by method."""

    errors: dict[str, np.ndarray]

    @classmethod
    def of(cls, case, order, epsilon, runs):
        average, worst = (IReduct(sanity_bound=DELTA, pick=pick) for pick in ("average", "worst"))
        found = {"dwork": worst_errors(*case, order, epsilon, "dwork", runs)}
        found["average"] = worst_errors(*case, order, epsilon, average, runs)
        with printed_rule():
            found["printed"] = worst_errors(*case, order, epsilon, average, runs)
        found["worst"] = worst_errors(*case, order, epsilon, worst, runs)
        return cls(found)

    def ratio(self):
        """That of `worst` to the better of `dwork` and `average`, and its standard error; draws are paired by seed."""
        better = min((self.errors["dwork"], self.errors["average"]), key=np.mean)
        ratio = self.errors["worst"].mean() / better.mean()
        rest = self.errors["worst"] - ratio * better
        return ratio, rest.std(ddof=1) / np.sqrt(len(better)) / better.mean()

    def cells(self):
        means = [f"{errors.mean():.3g} ({np.median(errors):.3g})" for errors in self.errors.values()]
        return [*means, "{:.2f} ± {:.2f}".format(*self.ratio())]


def print_ratios(ratios):
    """A line for each data set, one for those that are generated, and what all cases come to."""
    print("\n| data | " + " | ".join(EPSILONS) + " |\n|---|" + "---|" * len(EPSILONS))
    names = list(dict.fromkeys(name for name, _ in ratios))
    new = [name for name in names if name.startswith("generated")]
    for name in names:
        if name not in new:
            print(f"| {name} | " + " | ".join("{:.2f} ± {:.2f}".format(*ratios[name, e]) for e in EPSILONS) + " |")
    if new:
        columns = [[ratios[name, epsilon] for name in new] for epsilon in EPSILONS]
        cells = ("{:.2f}, {:.2f} ± {:.2f}".format(geometric_mean(own), *max(own)) for own in columns)
        print(f"| {len(new)} generated: geometric mean, largest | " + " | ".join(cells) + " |")
    above = [(ratio, error) for ratio, error in ratios.values() if ratio > 1]
    sure = sum(ratio > 1 + 2 * error for ratio, error in above)
    print(
        f"\n{len(ratios)} cases: geometric mean {geometric_mean(ratios.values()):.2f}, above 1 in {len(above)}, ",
        end="",
    )
    print(f"by more than two standard errors in {sure}")


def geometric_mean(ratios):
    return float(np.exp(np.mean([np.log(ratio) for ratio, _ in ratios])))


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--runs", type=int, default=40)
    options.add_argument("--quick", action="store_true", help="the made-up calls only")
    options.add_argument("--generated", type=int, default=24, help="how many generated data sets")
    options.add_argument("--pair", action="store_true", help="two data sets that cannot be told apart, and no others")
    given = options.parse_args()
    print("| data | epsilon | dwork | average | printed | worst | worst / the better |\n|---|---|---|---|---|---|---|")
    if given.pair:
        for name, case in zip(("one", "other"), pair(), strict=True):
            print(f"| {name} | 0.0001 | {' | '.join(Found.of(case, 1, '0.0001', given.runs).cells())} |", flush=True)
        return
    ratios = {}
    for name, codes, order in datasets(given.quick, given.generated):
        case = counted(codes, order)
        runs = given.runs if order == 1 else max(3, given.runs // 2)
        for epsilon in EPSILONS:
            found = Found.of(case, order, epsilon, runs)
            ratios[name, epsilon] = found.ratio()
            print(f"| {name} | {epsilon} | {' | '.join(found.cells())} |", flush=True)
    print_ratios(ratios)


if __name__ == "__main__":
    main()
