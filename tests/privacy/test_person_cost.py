"""People with several rows, by exhaustion: one person comes, goes, or is replaced by another with any number of rows.

All answers are sums over rows, so that nobody else's rows matter: the worst loss is that between a person's rows and
nothing (add-remove), or another person's rows (replace-one).
"""

from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from helpers import NEIGHBOURS, MemoryEngine, Silence, every_plan, label, make_request
from hushcube.costs import calibrate
from hushcube.private.measure import measure


@pytest.fixture
def drawn():
    return Silence()


def people(sizes, most):
    cells = list(product(*map(range, sizes)))
    return [rows for k in range(most + 1) for rows in combinations_with_replacement(cells, k)]


def worst_loss(plan, drawn):
    numbers = {}
    for rows in people(plan.schema.sizes, plan.privacy.rows_per_person):
        drawn.parameters.clear()
        values = measure(plan, MemoryEngine(rows, len(plan.schema)), noise=drawn).values
        numbers[rows] = np.concatenate([v.ravel() for v in values])
    laws = list(drawn.parameters)
    assert len(laws) == len(numbers[()]), "every number has noise: the number of rows is nobody's to know"
    others = list(numbers.values()) if plan.privacy.neighbours == "replace-one" else [numbers[()]]
    changes = {tuple(np.abs(one - other).tolist()) for one in numbers.values() for other in others}
    power = 1 if plan.law.name == "laplace" else 2
    weights = laws if plan.law.name == "laplace" else [1 / (2 * variance) for variance in laws]
    return max(sum((w * c**power for w, c in zip(weights, change, strict=True)), Fraction(0)) for change in changes)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("privacy", [{"epsilon": 1}, {"rho": "1/2"}], ids=str)
@pytest.mark.parametrize(("sizes", "rows"), [((2, 3), 2), ((3,), 3), ((2, 2), 3), ((2, 1, 2), 2)], ids=str)
def test_nobody_with_several_rows_costs_more_than_the_guarantee(sizes, rows, privacy, neighbours, drawn):
    request = make_request(sizes, "cube", neighbours=neighbours, rows_per_person=rows, **privacy)
    promised = request.privacy.epsilon or request.privacy.rho
    for plan in every_plan(request, recoveries=["gls"]):
        assert plan.row_cost(plan.budgets) <= calibrate.row_budget(plan.privacy, plan.proof)
        worst = worst_loss(plan, drawn)
        assert promised * (1 - Fraction(1, 10**9)) <= worst <= promised, label(plan)


def test_the_number_of_rows_is_public_only_where_one_row_replaces_one_row():
    for rows, neighbours in product((1, 2), NEIGHBOURS):
        request = make_request((2, 3), "1-way", epsilon=1, neighbours=neighbours, rows_per_person=rows)
        exact = rows == 1 and neighbours == "replace-one"
        assert request.privacy.total_is_public == exact
        for plan in every_plan(request):
            assert np.isinf(plan.budgets).any() == exact, label(plan)
