"""The worst privacy loss over all neighbours of tiny tables, in fractions, from the draws that were really made."""

from collections import defaultdict
from fractions import Fraction
from functools import partial
from itertools import combinations_with_replacement

import numpy as np

from audit import adaptive
from audit.delta import delta
from audit.mechanisms import FAMILIES, READ, mechanisms
from audit.progress import tell
from audit.tags import Violation

TABLES = {"short": 5, "long": 50}
FEW = {"short": 2, "long": 50}
"""Of families whose data is read by DuckDB, and of adaptive methods: both take their time."""
ADAPTIVE = "adaptive methods"
ATTACKED = """\
Every kind of plan, under pure epsilon, rho-zCDP and (epsilon, delta), for both neighbour relations: tables in the
four bases, trees, levels, matrices, sketches, several rows per person, sums beside counts, declared units, and the
adaptive methods."""
HOW = """\
The samplers are replaced by ones that return a tag for each draw and note its law. So every published integer can
be taken apart: which exact integer it holds, and which draw. On tiny tables the worst loss over all neighbours then
follows in fractions from the laws that were really drawn; delta is summed over the outcomes of the discrete
Gaussians. It must not exceed the claim; no draw may be used twice; a number without noise must not change; and no
law may depend on the data. The adaptive methods are replayed with their noisy answers frozen. A share of 1 says
that nothing of the budget is wasted."""


def databases(mechanism, count):
    """Different databases: nobody, and random ones of up to three people."""
    people = mechanism.people
    every = [some for k in range(1, 4) for some in combinations_with_replacement(range(len(people)), k)]
    chosen = np.random.default_rng(7).permutation(len(every))[: count - 1]
    return [(), *(tuple(people[kind] for kind in every[at]) for at in chosen)]


def neighbours_of(people, mechanism):
    """All databases with one person more or less, or with one person replaced by any other."""
    without = [(*people[:at], *people[at + 1 :]) for at in range(len(people))]
    added = [(*people, person) for person in mechanism.people]
    if mechanism.privacy.neighbours == "add-remove":
        return [*without, *added]
    replaced = [(*rest, person) for rest in without for person in mechanism.people]
    several = mechanism.privacy.rows_per_person > 1
    return [*replaced, *without, *added] if several else replaced  # a person of several rows may come to have none


def worst(mechanism, tables):
    """The largest loss between neighbours, what is claimed, and how many pairs were looked at.

    Raises a Violation where noise depends on data, is used twice or is missing.
    """
    known = {}

    def seen(people):
        key = tuple(sorted(people, key=str))
        if key not in known:
            known[key] = mechanism.seen(key)
        return known[key]

    shifts, pairs = set(), 0
    for people in databases(mechanism, tables):
        one = seen(people)
        for other in neighbours_of(people, mechanism):
            shifts.add(one.shift(seen(other)))
            pairs += 1
    privacy = mechanism.privacy
    if privacy.delta is None:
        return max((one.loss(shift) for shift in shifts), default=Fraction(0)), privacy.epsilon or privacy.rho, pairs
    moves = {tuple(sorted((by, one.laws[draw].parameter) for by, draw in shift)) for shift in shifts if shift}
    return max((delta(float(privacy.epsilon), move) for move in moves), default=0.0), privacy.delta, pairs


def attacks(scale, family=None):
    """Every mechanism, or those of a family, as its family, its name and the attack on it."""
    tables = TABLES[scale]
    for one in [] if family == ADAPTIVE else mechanisms(scale, FAMILIES if family is None else [family]):
        few = FEW[scale] if one.family in READ else tables
        yield one.family, f"{one.name}, {one.privacy}", partial(worst, one, few)
    for one in adaptive.methods(scale) if family in (None, ADAPTIVE) else []:
        some = databases(one, FEW[scale])
        yield ADAPTIVE, f"{one.name}, {one.privacy}", partial(adaptive.worst, one, some, neighbours_of)


def figures(scale):
    """Attack every mechanism."""
    found, pairs, broken = defaultdict(list), 0, []
    for family, name, attack in attacks(scale):
        try:
            loss, claim, looked_at = attack()
        except Violation as violation:
            broken.append(f"{family}: {name}: {violation}")
            continue
        pairs += looked_at
        found[family].append(float(loss / claim))
        tell(scale, f"{family}: {name}: {float(loss / claim):.6f} of the claim")
        if loss > claim:
            broken.append(f"{family}: {name}: the loss is {float(loss):g}")
    return {
        "title": "Exact losses",
        "attacked": ATTACKED,
        "how": HOW,
        "figures": {
            "mechanisms": sum(map(len, found.values())),
            "tables for each, at least": FEW[scale],
            "pairs of neighbouring tables": pairs,
        },
        "table": {
            "columns": ["family", "mechanisms", "smallest worst loss / claim", "largest worst loss / claim"],
            "rows": [[family, len(own), min(own), max(own)] for family, own in found.items()],
        },
        "broken": broken,
        "violations": len(broken),
    }
