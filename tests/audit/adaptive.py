"""Methods that choose their noise while noisy answers come in: what a run costs between neighbours, answers frozen."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import pytest

from audit.mechanisms import cells, people_of, rows_of
from audit.tags import Violation
from audit.tape import loss, record
from helpers import NEIGHBOURS, MemoryEngine, adaptive, carried_out, make_schema
from hushcube.designs.adaptive import Measured
from hushcube.designs.design import Design
from hushcube.designs.request import Request
from hushcube.model.privacy import Privacy
from hushcube.model.queries import query_table
from hushcube.model.workload import Workload
from hushcube.private.noise import SeededEntropy

METHODS = ("twophase", "iresamp", "ireduct")
QUERIES = [[1, 1, 1, 0, 0, 0], [1, 1, 0, 0, 0, 0], [0, 1, 1, 1, 0, 0], [2, 0, 0, 1, 0, -1], [1, 1, 1, 1, 1, 1]]
RULES = [
    ("1-way,a0*a1", None, {"sanity_bound": 3, "lambda_factor": "0.9"}),
    ("0-way,2-way", None, {"sanity_bound": 1, "pick": "worst", "caution": "0.5"}),
    ("queries", QUERIES, {"sanity_bound": 20, "relative_error": "0.3", "above": 20}),
    ("1-way", None, {"sanity_bound": "5%", "lambda_factor": "0.9", "people_epsilon": "0.1"}),
]


@dataclass(frozen=True, eq=False)
class Method:
    """An adaptive plan, and everybody who may be in its data."""

    name: str
    plan: Design
    people: tuple

    @property
    def privacy(self):
        """The guarantee."""
        return self.plan.privacy

    def engine(self, people):
        """What counts a database."""
        return MemoryEngine(rows_of(people), len(self.plan.schema))


def methods(scale) -> Iterator[Method]:
    """Every method with several rules, for one and for two rows per person."""
    schema = make_schema((2, 3))
    cases = [(*rule, 1) for rule in RULES] + ([] if scale == "short" else [(*RULES[0], 2)])
    for method, neighbours, (words, queries, rule, most) in product(METHODS, NEIGHBOURS, cases):
        asked = Workload.parse(words, schema, None if queries is None else query_table(schema, None, queries))
        privacy = Privacy.of(epsilon=2, neighbours=neighbours, rows_per_person=most)
        request, chosen = Request(asked, privacy), adaptive(method, **rule)
        if chosen.accepts(request) is None:
            plan = chosen.plan(request, "uniform", "none")
            yield Method(f"{method} {words} {sorted(rule)}", plan, people_of(cells(schema), most))


def worst(method, databases, neighbours_of):
    """The largest loss between neighbours, what is claimed, and how many pairs were looked at."""
    plan, pairs, largest = method.plan, 0, Fraction(0)
    free = Measured.of(plan.request, plan.budget_rule, plan.rule.people_epsilon).free
    for seed, people in enumerate(databases):
        with pytest.MonkeyPatch.context() as patches:
            tape = record(patches)
            tape.rows = len(rows_of(people))
            made, measured = carried_out(plan, method.engine(people), entropy=SeededEntropy(seed))
            for other in neighbours_of(people, method):
                tape.replay(rows=len(rows_of(other)))
                again, replayed = carried_out(plan, method.engine(other), entropy=SeededEntropy(seed + 1))
                if tape.next != len(tape.steps) or again.to_dict() != made.to_dict():
                    raise Violation("a decision changed though no noisy answer did")
                if any((a != b).any() for a, b in zip(measured.values, replayed.values, strict=True)):
                    raise Violation("more than noisy answers is published")
                largest = max(largest, loss(tape, made, free))
                pairs += 1
    return largest, plan.privacy.epsilon, pairs
