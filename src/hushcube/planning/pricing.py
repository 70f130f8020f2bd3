"""What publishing a plan costs an account: data-free, and proven for the noise that is drawn.

An account promises one guarantee about everything that is ever charged to it. Pure accounts add up epsilon; the others
add up rho, and those of (epsilon, delta) convert the sum at the end.                              [docs/privacy.md, 6]

    plan               on a pure account    on an account of rho
    pure epsilon       epsilon              the rho of its Laplace noise, number by number           [costs/exchange.py]
    adaptive           epsilon              epsilon tanh(epsilon/2): its noise is not known beforehand
    rho                refused              rho
    (epsilon, delta)   refused              the rho of its Gaussian noise: what is drawn, whatever proof the plan has

Whose data is protected must be the same, or provably more: a plan for add-remove serves an account of replace-one,
where one person goes and another comes, at 2 epsilon or 4 rho.      [Bun and Steinke 2016, Proposition 27, for rho]
"""

from __future__ import annotations

from fractions import Fraction

from hushcube.costs.calibrate import below, zcdp_rho
from hushcube.costs.exchange import laplace_rho, pure_rho
from hushcube.designs.design import Design
from hushcube.errors import LedgerError
from hushcube.model.privacy import Privacy
from hushcube.planning.plan import Plan
from hushcube.text import short


def total(account: Privacy) -> Fraction:
    """What an account holds: epsilon, or the rho that its guarantee is worth."""
    if account.rho is not None:
        return account.rho
    epsilon = account.epsilon or Fraction(0)
    return epsilon if account.delta is None else Fraction(zcdp_rho(below(epsilon), below(account.delta)))


def price(plan: Plan, account: Privacy, unit: str | None = None) -> Fraction:
    """What publishing costs an account with a guarantee and a unit, the column that says whose row it is."""
    steps = _steps(plan, account, unit)
    own = plan.privacy
    if account.is_pure:
        if own.epsilon is None or own.delta is not None:
            problem = f"promises pure epsilon, which Gaussian noise does not keep; the plan is for {own.amounts}"
            raise LedgerError("account", problem, "plan with epsilon and without delta, or charge an account of rho")
        return own.epsilon * steps
    if own.rho is not None:
        return own.rho * steps**2
    drawn = sum(map(_rho, plan.designs.values()), Fraction(0)) * steps**2
    return min(drawn, pure_rho(own.epsilon * steps)) if own.epsilon and own.is_pure else drawn


def settled(outcome: Plan, account: Privacy, unit: str | None = None) -> Fraction:
    """What stays charged, given the plan that was carried out: on a pure account no more than an adaptive run spent.

    What an outcome turned out to cost bounds the ratio of its probabilities, so that pure accounts may settle it; it
    bounds no Renyi divergence, which is an average over outcomes.
    """
    charged = price(outcome, account, unit)
    if not account.is_pure or not any(design.is_outcome for design in outcome.designs.values()):
        return charged
    return sum((d.person_cost for d in outcome.designs.values()), Fraction(0)) * _steps(outcome, account, unit)


def _rho(design: Design) -> Fraction:
    """The rho of all rows of one person."""
    privacy, rows = design.privacy, design.privacy.rows_per_person
    if not privacy.is_pure:
        return design.row_cost(design.budgets) * rows**2
    whole = pure_rho(privacy.epsilon or Fraction(0))
    if design.adapts or design.is_outcome:
        return whole
    return min(whole, laplace_rho(design.budgets, design.moves(), rows, design.row_cost))


def _steps(plan: Plan, account: Privacy, unit: str | None) -> int:
    """How many neighbours of the plan's kind lead from one data set to a neighbour of the account's kind."""
    own, column = plan.privacy, None if plan.schema.unit is None else plan.schema.unit.column
    if column != unit:
        protects = "each row as a person" if unit is None else f"whoever has one {short(unit)}"
        owned = "each row as a person" if column is None else f"whoever has one {short(column)}"
        fix = "declare the account's unit in the schema, or charge an account of the plan's unit"
        raise LedgerError("unit", f"the account protects {protects}, the plan {owned}", fix)
    if unit is None and own.rows_per_person < account.rows_per_person:
        problem = f"the plan protects {own.rows_per_person} of the {account.rows_per_person} that a person may have"
        raise LedgerError("rows_per_person", problem, f"plan with `rows_per_person` {account.rows_per_person}")
    if own.neighbours == account.neighbours:
        return 1
    if own.neighbours == "replace-one":
        problem = "the plan is for replace-one, which does not hide whether somebody is in the data"
        raise LedgerError("neighbours", problem, "plan with neighbours add-remove, as the account has")
    return 2
