"""Nested levels for tests: schemas and chains from lists of parents, and dense matrices that judge the algebra.

The matrices are built from the definition, which cell lies in which group, never from `hushcube.lattice`.
"""

from itertools import product

import numpy as np
from hypothesis import strategies as st

from helpers import kron
from hushcube.designs.request import Request
from hushcube.lattice.nested import Chain
from hushcube.model.attribute import Attribute
from hushcube.model.privacy import Privacy
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload


def attribute(name, parents):
    """An attribute whose declared levels are given by parents, from the values' groups up; `l1` is the finest level."""
    labels = [f"{name}{i}" for i in range(len(parents[0]))] if parents else []
    levels = []
    for number, groups in enumerate(parents, 1):
        names = [f"{name}{number}.{g}" for g in range(max(groups) + 1)]
        members = {own: [] for own in names}
        for member, group in zip(labels, groups, strict=True):
            members[names[group]].append(member)
        levels.append({"name": f"l{number}", "groups": members})
        labels = names
    return Attribute(name=name, values=tuple(f"{name}{i}" for i in range(len(parents[0]))), levels=tuple(levels))


def flat(name, size):
    return Attribute(name=name, codes=size)


SCHEMA = Schema(
    (
        attribute("s", [[0, 0, 1, 2, 1, 2, 2], [0, 0, 1]]),  # 7 values, 3 groups, 2 larger ones
        attribute("t", [[0, 1, 0, 0]]),  # 4 values in groups of 3 and 1
        flat("u", 2),
    )
)
WORDS = "s*u,s@l1*t@l1,s@l2*t*u,s@l2,t,0-way"


def nested_request(
    words=WORDS, schema=SCHEMA, *, neighbours="add-remove", rows=1, objective="total", queries=None, **privacy
):
    workload = Workload.parse(words, schema, queries)
    guarantee = Privacy.of(neighbours=neighbours, rows_per_person=rows, **privacy)
    return Request(workload, guarantee, objective=objective)


def finest_sizes(schema):
    return [schema.sizes[chain[-1]] for chain in schema.chains]


def marginal_rows(schema, marginal):
    """The cells of a marginal as rows over all combinations of the finest asked values."""
    axes = []
    for chain in schema.chains:
        own = [i for i in chain if i in marginal]
        n = schema.sizes[chain[-1]]
        groups = schema.coarsening(chain[-1], own[0]) if own else np.zeros(n, np.int64)
        axes.append((np.arange(groups.max() + 1)[:, None] == groups).astype(float))
    return kron(axes)


def random_people(schema, rows, seed=0):
    """Coded rows, a column for each position of a schema: levels follow from the finest values."""
    random = np.random.default_rng(seed)
    codes = np.empty((rows, len(schema)), np.int64)
    for chain in schema.chains:
        finest = random.integers(0, schema.sizes[chain[-1]], rows)
        for position in chain:
            codes[:, position] = schema.coarsening(chain[-1], position)[finest]
    return codes


# ------------------------------------------------------------------------------------------------------------- chains


@st.composite
def chains(draw, most_levels=3):
    """Levels of any numbers of children, equal or not, listed in any order."""
    parents, above = [], 1
    for _ in range(draw(st.integers(1, most_levels))):
        counts = draw(st.lists(st.integers(1, 3), min_size=above, max_size=above))
        if draw(st.booleans()):
            counts = [counts[0]] * above
        parents.append(np.array(draw(st.permutations(np.repeat(np.arange(above), counts).tolist())), np.int64))
        above = len(parents[-1])
        if above > 9:
            break
    return Chain(tuple(parents))


def every_table(some):
    """All combinations of levels of some chains."""
    combinations = product(*(range(chain.depth + 1) for chain in some))
    return [tuple((a, level) for a, level in enumerate(levels) if level) for levels in combinations]


def table_rows(some, table):
    """The cells of a table as rows over the finest cells of all chains."""
    axes = []
    for a, chain in enumerate(some):
        groups = np.arange(chain.sizes[-1])
        for k in range(chain.depth, dict(table).get(a, 0), -1):
            groups = chain.parents[k - 1][groups]
        axes.append((np.arange(groups.max() + 1)[:, None] == groups).astype(float))
    return kron(axes)


def covariance(S, precision, *, public=False):
    """Of the generalised least squares estimate of all cells, on what the rows S can see."""
    G = S.T @ (precision[:, None] * S)
    if public:  # within the tables whose total is zero
        centred = np.eye(len(G)) - 1 / len(G)
        G = centred @ G @ centred
    values, vectors = np.linalg.eigh(G)
    seen = values > 1e-9
    return (vectors[:, seen] / values[seen]) @ vectors[:, seen].T
