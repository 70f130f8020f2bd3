"""What plans and runs cost, in fractions: all databases of a few rows, and random runs of the adaptive methods.

The tests of tests/privacy run the short form of both, and say what is attacked.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest

from audit.adaptive import METHODS
from audit.progress import tell
from helpers import (
    NEIGHBOURS,
    Counts,
    MemoryEngine,
    Silence,
    adaptive,
    every_plan,
    label,
    make_request,
    make_schema,
    random_codes,
)
from hushcube.costs import calibrate
from hushcube.designs import MatrixDesign, RepeatedDesign
from hushcube.designs.request import Request
from hushcube.errors import BadInput
from hushcube.model.privacy import Privacy
from hushcube.model.queries import query_table
from hushcube.model.workload import Workload
from hushcube.private.measure import draw, measure
from hushcube.private.noise import SeededEntropy

ATTACKED = """\
Plans of every strategy on domains of up to twelve cells, and runs of the adaptive methods on random tables, workloads,
rules and budgets."""
HOW = """\
Every database of up to two rows is measured, and every neighbour of it, by samplers that write down their laws: the
worst loss must be what the plan says, and all of what the guarantee allows. Runs of the adaptive methods are taken
apart into samples, whose rates are added up as fractions: the sum must be what the run says, and no more than
epsilon."""


@dataclass(frozen=True)
class Scale:
    """How much is tried."""

    configurations: int  # random ones, of all adaptive methods together
    rows: int  # of the databases of domains with more cells than FEW_CELLS


SCALES = {"short": Scale(1500, 1), "long": Scale(10_000, 2)}
FEW_CELLS = 6
DOMAINS = [(2, 3), (12,), (2, 1, 3), (3, 4), (2, 2, 3), (5, 2), (1,), (1, 1, 2)]
PRIVACY = [{"epsilon": 1}, {"epsilon": "0.1"}, {"rho": "1/2"}, {"rho": 20}]
ROUND_UP = 1 + Fraction(1, 2**40)  # how far above the truth a replace-one cost may be stated

# ---------------------------------------------------------------------------------------- databases of a few rows


def databases(sizes, most):
    cells = list(product(*map(range, sizes)))
    return [rows for k in range(most + 1) for rows in combinations_with_replacement(cells, k)]


def neighbours_of(rows, sizes, relation):
    cells = list(product(*map(range, sizes)))
    if relation == "add-remove":
        return [tuple(sorted((*rows, cell))) for cell in cells]
    return [tuple(sorted((*rows[:i], cell, *rows[i + 1 :]))) for i in range(len(rows)) for cell in cells]


def exact_numbers(plan, rows, drawn):
    values = measure(plan, MemoryEngine(rows, len(plan.schema)), noise=drawn).values
    return np.concatenate([v.ravel() for v in values])


def worst_loss(plan, drawn, most=2):
    """The largest privacy loss (epsilon, or rho) of databases of at most so many rows, as a Fraction."""
    sizes, relation = plan.schema.sizes, plan.privacy.neighbours
    noisy = np.concatenate(
        [
            np.repeat(np.isfinite(plan.budgets[b.ids]), int(np.prod([plan.basis.rows(n) for n in b.shape], dtype=int)))
            for b in plan.measured.batches
        ]
    )
    numbers = {}
    for rows in databases(sizes, most + (relation == "add-remove")):
        drawn.parameters.clear()
        numbers[tuple(sorted(rows))] = exact_numbers(plan, rows, drawn)
        laws = list(drawn.parameters)
        assert laws == numbers.setdefault("laws", laws), "the noise depends on the data"
    laws = numbers.pop("laws")
    assert len(laws) == noisy.sum()
    changes = {
        tuple(np.abs(numbers[rows] - numbers[other]).tolist())
        for rows in databases(sizes, most)
        for other in neighbours_of(rows, sizes, relation)
    }
    worst = Fraction(0)
    for change in changes:
        change = np.array(change)
        assert not change[~noisy].any(), "an answer without noise changes"
        worst = max(worst, loss(plan.law.name, laws, change[noisy].tolist()))
    return worst


def loss(law, laws, change):
    if law == "laplace":
        return sum((rate * c for rate, c in zip(laws, change, strict=True) if c), Fraction(0))
    return sum((c * c / (2 * variance) for variance, c in zip(laws, change, strict=True) if c), Fraction(0))


def claimed(plan):
    return plan.row_cost(plan.budgets)


def worst_cases():
    """Sizes, guarantees and neighbour relations; on more cells, fewer guarantees."""
    for sizes in DOMAINS:
        few = math.prod(sizes) <= FEW_CELLS
        yield from product([sizes], PRIVACY if few else PRIVACY[::2], NEIGHBOURS)


def check_worst_cases(sizes, privacy, neighbours, scale):
    """Equality throughout: no stated bound is loose on domains this small, and nothing of the guarantee is wasted.

    Returns how many plans there are.
    """
    most = 2 if math.prod(sizes) <= FEW_CELLS else SCALES[scale].rows
    request = make_request(sizes, "cube", neighbours=neighbours, **privacy)
    allowed = calibrate.row_budget(request.privacy, "direct")
    plans = list(every_plan(request, recoveries=["gls"]))
    for plan in plans:
        worst = worst_loss(plan, Silence(), most)
        assert worst <= claimed(plan) <= allowed, label(plan)
        if neighbours == "add-remove":
            assert claimed(plan) == worst, label(plan)
        else:
            assert claimed(plan) <= worst * ROUND_UP**2, label(plan)
        nothing_changes = neighbours == "replace-one" and all(n == 1 for n in sizes)
        assert nothing_changes or worst >= allowed * (1 - Fraction(1, 10**9)), label(plan)
    return len(plans)


# --------------------------------------------------------------------------------- random runs of adaptive methods


@cache
def workload(sizes, words, queries=None):
    schema = make_schema(sizes)
    return Workload.parse(words, schema, None if queries is None else query_table(schema, None, queries))


def make_plan(sizes, words, strategy, rule, *, queries=None, neighbours="add-remove", budgets="uniform", **privacy):
    asked = workload(sizes, words, None if queries is None else tuple(map(tuple, queries)))
    request = Request(asked, Privacy.of(neighbours=neighbours, **privacy))
    chosen = adaptive(strategy, **rule)
    assert chosen.accepts(request) is None
    return chosen.plan(request, budgets, "none")


def counts_of(plan, codes):
    return Counts(plan.schema, codes)


def exact_cost(made):
    """What all samples cost a row of data, from the definition, in fractions."""
    under = made.underlying if isinstance(made, RepeatedDesign) else made
    owners = made.sample_of if isinstance(made, RepeatedDesign) else range(len(made.budgets))
    totals = [Fraction(0)] * (max(owners) + 1)
    for owner, rate in zip(owners, made.budgets.tolist(), strict=True):
        if math.isfinite(rate):
            totals[owner] += Fraction(rate)
    comes_and_goes = made.privacy.neighbours == "add-remove" or made.privacy.rows_per_person > 1
    is_replaced = made.privacy.neighbours == "replace-one"
    if not isinstance(under, MatrixDesign):
        varying = [any(made.schema.sizes[i] > 1 for i in marginal) for marginal in under.measured]
        moved = sum((t for t, varies in zip(totals, varying, strict=True) if varies), Fraction(0))
        return max(sum(totals) if comes_and_goes else Fraction(0), 2 * moved if is_replaced else Fraction(0))
    S = under.rows.dense().astype(int)
    columns = [[int(x) for x in column] for column in S.T]
    moves = columns if comes_and_goes else []
    if is_replaced:
        pairs = combinations(columns, 2)
        moves = [*moves, *([a - b for a, b in zip(one, two, strict=True)] for one, two in pairs)]
    return max((sum(t * abs(x) for t, x in zip(totals, move, strict=True)) for move in moves), default=Fraction(0))


def is_public(made):
    """Groups that no replacement moves, and that alone may be published exactly."""
    under = made.underlying if isinstance(made, RepeatedDesign) else made
    if made.privacy.neighbours == "add-remove" or made.privacy.rows_per_person > 1:
        return [False] * under.groups
    if isinstance(under, MatrixDesign):
        return [len(set(row)) == 1 for row in under.rows.dense().tolist()]
    return [all(made.schema.sizes[i] == 1 for i in marginal) for marginal in under.measured]


def random_configuration(rng):
    """A small table, a workload, a budget and a rule of any kind; some do not fit and must be refused."""

    def one(*choices):
        return choices[rng.integers(len(choices))]

    sizes = one((2,), (3,), (2, 2), (1, 2), (3, 2))
    neighbours, queries = one(*NEIGHBOURS), None
    words = one("1-way", "0-way,1-way") if len(sizes) == 1 else one("1-way", "2-way", "a0,a0*a1=2", "0-way,2-way")
    if rng.random() < 0.25:
        queries = rng.integers(-1, 3, (rng.integers(1, 4), math.prod(sizes)))
        queries[:, 0] = 1
        words, queries = "queries", queries.tolist()
    rule = {"sanity_bound": one("0.5", 1, 3, 20), "pick": one("average", "worst"), "first_share": one("0.07", "0.5")}
    rule |= {"caution": one(0, "0.1", "0.9")}
    rule |= one(
        {"lambda_factor": one("0.5", "0.8", "0.95"), "start_share": one("0.05", "1/3", "0.9")},
        {"lambda_max": int(rng.integers(1, 200)), "lambda_factor": one("0.3", "0.9")},
        {"lambda_max": f"{rng.integers(1, 9999)}/{rng.integers(1, 99)}", "lambda_step": f"{rng.integers(1, 99)}/7"},
    )
    if rng.random() < 0.3:
        rule |= {"relative_error": one("0.05", "0.5", 2), "above": one(1, 10)}
    if neighbours == "add-remove" and queries is None and rng.random() < 0.3:
        rule |= {"sanity_bound": "5%", "people_epsilon": f"1/{rng.integers(2, 500)}"}
    epsilon = one(f"{rng.integers(1, 60)}/{rng.integers(1, 64)}", f"0.{rng.integers(1, 10**6):06d}", 1)
    privacy = {"epsilon": epsilon, "rows_per_person": one(1, 1, 1, 2, 3), "neighbours": neighbours}
    return sizes, words, rule, queries, one("uniform", "optimal"), privacy


def check_adaptive_cost(method, seed):
    """Run a method on a random configuration: it costs what it says, and no more than epsilon."""
    rng = np.random.default_rng(seed)
    sizes, words, rule, queries, budgets, privacy = random_configuration(rng)
    try:
        plan = make_plan(sizes, words, method, rule, queries=queries, budgets=budgets, **privacy)
    except BadInput:  # epsilon is too small to start, or the steps too large: nothing is spent
        return
    codes = random_codes(sizes, int(rng.integers(0, 40)), seed)
    made, measured = draw(plan, counts_of(plan, codes), entropy=SeededEntropy(seed))
    allowed = Fraction(privacy["epsilon"]) / privacy["rows_per_person"]
    spent = exact_cost(made)
    assert 0 <= spent <= allowed
    told = made.details["adaptive"]
    assert told["spent"] == pytest.approx(float(spent * privacy["rows_per_person"]))
    assert told["left"] == pytest.approx(float(Fraction(privacy["epsilon"])) - told["spent"], abs=1e-12)
    assert (made.budgets > 0).all()
    owners = np.array(made.sample_of if isinstance(made, RepeatedDesign) else range(len(made.budgets)))
    assert np.isinf(made.budgets).tolist() == np.array(is_public(made))[owners].tolist()
    assert [value.shape for value in measured.values] == made.shapes
    if method == "ireduct" and "people_epsilon" not in rule:
        assert (made.budgets >= plan.budgets).all()
    if method == "iresamp":
        again = np.flatnonzero(np.diff(owners) == 0)
        assert (made.budgets[again + 1] == 2 * made.budgets[again]).all()
    if "people_epsilon" in rule:
        total = [sum(rate for rate, owner in zip(made.budgets, owners, strict=True) if owner == 0)]
        paid = Fraction(rule["people_epsilon"]) / privacy["rows_per_person"]  # of epsilon, for the rows of one person
        assert total == pytest.approx([float(paid)])  # the empty set comes first
        assert spent >= paid * (1 - Fraction(1, 2**40))


# ------------------------------------------------------------------------------------------------------- the audit


def figures(scale):
    """Try everything."""
    broken, plans = [], 0
    for case in worst_cases():
        try:
            plans += check_worst_cases(*case, scale)
            tell(scale, f"{case}: as stated")
        except AssertionError as problem:
            broken.append(f"{case}: {problem}")
    seeds = np.random.default_rng().integers(0, 2**62, SCALES[scale].configurations).tolist()
    for number, seed in enumerate(seeds):
        method = METHODS[number % len(METHODS)]
        try:
            check_adaptive_cost(method, seed)
        except AssertionError as problem:
            broken.append(f"{method}, seed {seed}: {problem}")
    return {
        "title": "Stated costs",
        "attacked": ATTACKED,
        "how": HOW,
        "figures": {
            "plans, each on all databases of a few rows": plans,
            "rows of these databases, on more than six cells": SCALES[scale].rows,
            "random configurations of adaptive methods": len(seeds),
        },
        "broken": broken,
        "violations": len(broken),
    }
