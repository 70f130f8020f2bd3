"""`--objective`: what is made least, and what the table of plans shows."""

import json

import pytest

from cli.desk import ASKED, BUDGET
from hushcube.cli import run
from hushcube.strategies import REGISTRY


@pytest.mark.parametrize("objective", ["total", "max"])
def test_plans_are_ordered_and_chosen_by_the_objective(desk, capsys, objective):
    arguments = ["plan", *ASKED, *BUDGET, "--strategy", "all", "--effort", "low", "--objective", objective]
    assert run(arguments) == 0
    assert ("largest error" in capsys.readouterr().out) == (objective == "max")
    assert run([*arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    key = {"total": "total_variance_discrete", "max": "max_variance"}[objective]
    chosen = {name: document["chosen"][name] for name in ("strategy", "budgets", "recovery")}
    (of_chosen,) = (plan[key] for plan in document["plans"] if chosen.items() <= plan.items())
    slack = 1 if objective == "total" else 1.01  # the maximum is printed for continuous noise, and chosen by discrete
    eligible = [plan for plan in document["plans"] if REGISTRY[plan["strategy"]].automatic]
    assert of_chosen <= slack * min(plan[key] for plan in eligible)


def test_an_unknown_objective_is_refused(desk, capsys):
    assert run(["plan", *ASKED, *BUDGET, "--objective", "median"]) == 2
    assert "--objective: 'median' is unknown. Fix: choose total or max" in capsys.readouterr().err
