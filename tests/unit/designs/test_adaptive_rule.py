"""The public parameters of adaptive methods: what is refused and how to fix it, JSON, grids of rates, the start."""

import json
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from helpers import NEIGHBOURS, adaptive, make_schema
from hushcube import plan, release
from hushcube.costs import calibrate
from hushcube.designs import AdaptiveDesign
from hushcube.designs.grid import MOST_LEVELS, Grid, mean_size
from hushcube.designs.refinement import MOST_PEOPLE, Amount, Rule
from hushcube.errors import BadInput, NotApplicable
from hushcube.planning.plan import Plan
from hushcube.strategies.adaptive import NOT_PRIVATE

SIZES = (2, 3, 4)
ADAPTING = ["twophase", "iresamp", "ireduct"]


def asked(strategy="ireduct", words="<=2-way", *, sizes=SIZES, budgets=None, recovery="none", **given):
    """A plan from parameters of the rule and of the guarantee."""
    guarantee = {key: given.pop(key) for key in ("epsilon", "neighbours", "rows_per_person", "queries") if key in given}
    guarantee = {"epsilon": 1, "neighbours": "add-remove"} | guarantee
    chosen = adaptive(strategy, **{"sanity_bound": 10, **given})
    return plan(
        make_schema(sizes), words, strategy=chosen, budgets=budgets, recovery=recovery, **guarantee,
    ).count  # fmt: skip


def refused(field, make, *, says="", fix=""):
    """The error, once it is seen to name the field and a fix."""
    with pytest.raises(BadInput) as caught:
        make()
    assert caught.value.field == field
    assert says in caught.value.problem and fix in caught.value.fix
    assert len(caught.value.fix) > 10
    return caught.value


# ------------------------------------------------------------------------------------------------------------ amounts


NUMBERS = ["sanity_bound", "lambda_max", "lambda_step", "start_share", "lambda_factor", "first_share", "people_epsilon"]


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("raw", [0, -1, "0", "-0.5", 0.0, "0/1"])
def test_what_is_not_above_zero_is_refused(name, raw):
    refused(name, lambda: Rule.of(**{name: raw}), says="above zero", fix="positive")


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("raw", ["nan", float("nan"), float("inf"), "inf", "many", "", "1 000", "1/0", [], True, b"5"])
def test_what_is_no_number_is_refused(name, raw):
    refused(name, lambda: Rule.of(**{name: raw}), says="not a finite number", fix="decimal")


@pytest.mark.parametrize("raw", ["0%", "-5%", "nan%", "%", "5%%", "some%"])
@pytest.mark.parametrize("name", ["sanity_bound", "lambda_max", "lambda_step"])
def test_bad_shares_are_refused(name, raw):
    refused(name, lambda: Rule.of(**{name: raw}, people=100))


@pytest.mark.parametrize("name", ["start_share", "lambda_factor", "first_share"])
def test_shares_of_epsilon_and_factors_are_below_one(name):
    for raw in (1, "1", 1.0, "1.5", 7):
        refused(name, lambda raw=raw: Rule.of(**{name: raw}), says="below 1", fix="between 0 and 1")
    assert getattr(Rule.of(**{name: "0.25"}), name) == Fraction(1, 4)


def test_caution_may_be_none_at_all():
    assert Rule.of(caution=0).caution == Rule.of(caution="0").caution == Rule.of(caution="0.0").caution == 0
    assert Rule.of().caution == Fraction(1, 10)
    assert Rule.of(caution="0.5").caution == Fraction(1, 2)
    for raw in (-1, 1, "2", "nan", "some"):
        refused("caution", lambda raw=raw: Rule.of(caution=raw))


def test_numbers_mean_what_their_digits_say():
    assert Amount.parse(0.1, "x") == Amount.parse("0.1", "x") == Amount(Fraction(1, 10))
    assert Amount.parse(" 2.5 % ", "x") == Amount(Fraction(1, 40), is_share=True)
    assert Amount.parse("1/3%", "x").of(600) == 2
    assert Amount.parse(Amount(Fraction(7)), "x") == Amount(Fraction(7))
    refused("people", lambda: Amount(Fraction(1, 2), is_share=True).of(None), fix="declare")


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**12), st.booleans())
def test_amounts_are_written_exactly(value, is_share):
    amount = Amount(value, is_share)
    assert Amount.parse(str(amount), "x") == amount


# --------------------------------------------------------------------------------------------------------------- rules


@pytest.mark.parametrize("people", [0, -3, 1.5, 1e5, "100", True])
def test_people_are_a_whole_number(people):
    refused("people", lambda: Rule.of(people=people), says="whole number", fix="declare")


def test_more_people_than_can_be_measured_are_refused():
    assert Rule.of(people=MOST_PEOPLE).people == MOST_PEOPLE
    refused("people", lambda: Rule.of(people=MOST_PEOPLE + 1), says="2^34", fix="separately")


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("sanity_bound", {"sanity_bound": "1%"}),
        ("lambda_max", {"lambda_max": "1%"}),
        ("lambda_step", {"lambda_step": "1%"}),
        ("above", {"relative_error": "0.1", "above": "1%", "sanity_bound": 5}),
    ],
)
def test_shares_need_people(name, given):
    problem = refused(name, lambda: Rule.of(**given), says="number is not declared")
    assert "`people`" in problem.fix and "`people_epsilon`" in problem.fix
    assert Rule.of(**given, people=1000).shares == Rule.of(**given, people_epsilon="0.01").shares


def test_a_noisy_number_of_people_stands_alone_and_serves_something():
    both = {"sanity_bound": "1%", "people": 1000, "people_epsilon": "0.1"}
    refused("people_epsilon", lambda: Rule.of(**both), says="cannot be combined", fix="one of the two")
    refused("people_epsilon", lambda: Rule.of(people_epsilon="0.1"), says="nothing is a share", fix="leave it out")


def test_a_target_has_two_halves():
    refused("above", lambda: Rule.of(relative_error="0.1"), says="not given", fix="`above=500`")
    refused("relative_error", lambda: Rule.of(above=500), says="not given", fix="`relative_error=0.1`")
    for bad in (0, -1, "nan", "much"):
        refused("relative_error", lambda bad=bad: Rule.of(relative_error=bad, above=500))
        refused("above", lambda bad=bad: Rule.of(relative_error="0.1", above=bad))
    target = Rule.of(relative_error="0.1", above=500)
    assert target.sanity_bound == Amount(Fraction(500)), "below the bound nothing is asked for"
    assert Rule.of(relative_error="0.1", above=500, sanity_bound=20).sanity_bound == Amount(Fraction(20))


def test_an_unknown_way_to_pick_is_refused():
    refused("pick", lambda: Rule.of(pick="best"), says="'best' is unknown", fix="average or worst")


@pytest.mark.parametrize(("largest", "step"), [(10, 10), (10, 11), ("5%", "5%"), ("1%", "2%"), ("1/3", 0.34)])
def test_a_step_as_large_as_the_start_is_refused(largest, step):
    refused("lambda_step", lambda: Rule.of(lambda_max=largest, lambda_step=step, people=100), says="not below", fix="")


@pytest.mark.parametrize(("largest", "step"), [("10%", 100), ("10%", 101), (5, "1%"), (10, "1%")])
def test_a_step_too_large_is_noticed_when_one_is_a_share(largest, step):
    """Of 1000 people 10% are 100, and 1% are 10; the other methods take no steps."""
    refused(
        "lambda_step", lambda: asked("ireduct", lambda_max=largest, lambda_step=step, people=1000), says="not below"
    )


@pytest.mark.parametrize(("largest", "step"), [("10%", 99), ("10%", "9%"), (500, "1%")])
def test_a_step_below_the_start_is_accepted(largest, step):
    assert isinstance(asked(lambda_max=largest, lambda_step=step, people=1000), AdaptiveDesign)


def test_settled_rules_have_plain_numbers():
    rule = Rule.of(
        sanity_bound="0.1%", lambda_max="10%", lambda_step="1%", relative_error="0.1", above="2%", people_epsilon="0.1"
    )
    plain = rule.settled(1000)
    assert plain.people == 1000 and plain.people_epsilon is None and plain.shares == []
    assert [a.value for a in (plain.sanity_bound, plain.lambda_max, plain.lambda_step)] == [1, 100, 10]
    assert plain.target.above.value == 20 and plain.target.relative_error == Fraction(1, 10)
    assert plain.settled() == plain
    with pytest.raises(BadInput, match="people"):
        rule.settled()


amounts = st.fractions(min_value=Fraction(1, 10**6), max_value=10**9)
texts = st.one_of(
    amounts.map(str), amounts.map("{}%".format), st.floats(1e-6, 1e9).map(repr), st.floats(1e-6, 99).map("{!r}%".format)
)  # fmt: skip
below_one = st.fractions(min_value=Fraction(1, 10**6), max_value=Fraction(10**6 - 1, 10**6))


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "sanity_bound": texts,
            "lambda_max": texts,
            "lambda_step": texts,
            "start_share": below_one,
            "lambda_factor": below_one,
            "first_share": below_one,
            "caution": st.just(0) | below_one,
            "pick": st.sampled_from(["average", "worst"]),
            "people": st.integers(1, MOST_PEOPLE),
            "people_epsilon": below_one,
        },
    ),
    st.none() | st.tuples(amounts, texts),
)
def test_the_json_form_says_all(given, target):
    try:
        rule = Rule.of(**given, **({} if target is None else {"relative_error": target[0], "above": target[1]}))
    except BadInput:
        assume(False)
    text = json.dumps(rule.to_dict(), allow_nan=False)
    again = Rule.from_dict(json.loads(text))
    assert again == rule
    assert json.dumps(again.to_dict()) == text


@pytest.mark.parametrize("raw", [None, 7, [], "x", {"lambda": "3"}, {"target": "0.1"}])
def test_a_damaged_json_form_is_noticed(raw):
    with pytest.raises(ValueError):
        Rule.from_dict(raw)


@pytest.mark.parametrize(
    "given",
    [
        {"sanity_bound": "1e400"},
        {"lambda_max": "1e400", "lambda_step": "1e390"},
        {"relative_error": "1e400", "above": 5},
        {"lambda_factor": "0.99999999999999999999"},
        {"lambda_factor": "1e-330"},
    ],
    ids=str,
)
def test_numbers_beyond_floats_are_refused_by_name(given):
    with pytest.raises(BadInput, match=next(iter(given))):
        chosen = asked(**given)
        release(Plan.of_counts(chosen), _frame(), seed=1)


# --------------------------------------------------------------------------------------------------------------- grids


def test_the_guard_stops_above_zero():
    """The paper would go from 15 in steps of 10 to 5 and on to -5."""
    for limit in (1.0, 100.0, 1e6):
        assert (1 / Grid.arithmetic(Fraction(15), Fraction(10), limit).rates).round(9).tolist() == [15, 5]
    assert (1 / Grid.arithmetic(Fraction(20), Fraction(10), 1e6).rates).round(9).tolist() == [20, 10]
    assert len(Grid.arithmetic(Fraction(7), Fraction(10), 1e6)) == 1


scales = st.fractions(min_value=Fraction(1, 50), max_value=10**6, max_denominator=1000)


@given(scales, st.integers(2, 2000), st.floats(1e-7, 1e3))
def test_arithmetic_rates_are_a_hair_below_those_of_their_scales(largest, parts, limit):
    step = largest / parts + Fraction(1, 10**4)
    grid = Grid.arithmetic(largest, step, limit)
    nominal = []
    while not nominal or (largest - step * len(nominal) > 0 and 1 / (largest - step * len(nominal)) <= Fraction(limit)):
        nominal.append(1 / (largest - step * len(nominal)))
    assert len(grid) == len(nominal)
    assert (np.diff(grid.rates) > 0).all()
    assert (grid.rates[1:] <= limit).all()
    for rate, exact in zip(map(Fraction, grid.rates.tolist()), nominal, strict=True):
        assert exact * (1 - Fraction(1, 2**48)) < rate < exact


@given(scales, st.fractions(min_value=Fraction(1, 10), max_value=Fraction(99, 100)), st.floats(1e-7, 1e3))
def test_geometric_rates_grow_by_one_factor(largest, factor, limit):
    grid = Grid.geometric(largest, factor, limit)
    first = float(1 / largest)
    assert Fraction(float(grid.rates[0])) < 1 / largest
    assert (np.diff(grid.rates) > 0).all()
    assert (grid.rates[1:] <= limit).all()
    assert grid.rates == pytest.approx(first * float(1 / factor) ** np.arange(len(grid)), rel=1e-12)
    assert len(grid) == 1 or grid.rates[-1] / float(factor) > limit * (1 - 1e-6), "it goes on as far as it may"
    assert len(grid) > 1 or first / float(factor) > limit * (1 - 1e-6)


def test_scales_that_add_up_to_epsilon_fit():
    """Three tables of scale 3 cost 1, also in floats."""
    for count in range(1, 200):
        rate = Grid.arithmetic(Fraction(2 * count), Fraction(count), 2.0).rates[1]
        assert 0 < 1 - count * Fraction(float(rate)) < Fraction(1, 2**48)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_a_start_that_uses_up_epsilon_exactly_is_accepted(neighbours):
    cost = 7 if neighbours == "add-remove" else 12  # seven tables; the public total costs nothing
    made = asked(neighbours=neighbours, lambda_max=10 * cost, epsilon="0.1")
    assert 0 <= Fraction("0.1") - made.row_cost(made.budgets) < Fraction(1, 2**48)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Grid.arithmetic(Fraction(10**6), Fraction(1, 10**4), 1.0),
        lambda: Grid.arithmetic(Fraction(200), Fraction(1, 10**30), 1.0),
        lambda: Grid.geometric(Fraction(10**6), Fraction(999_999_999, 10**9), 1.0),
    ],
)
def test_too_many_levels_are_refused(make):
    problem = refused("lambda_step", make, says=f"more than {MOST_LEVELS:,}", fix="larger step")
    assert "lambda_factor" in problem.fix


def test_as_many_levels_as_are_allowed_are_made():
    grid = Grid.arithmetic(Fraction(MOST_LEVELS), Fraction(1), 2.0)
    assert len(grid) == MOST_LEVELS and (np.diff(grid.rates) > 0).all()
    with pytest.raises(BadInput):
        Grid.arithmetic(Fraction(MOST_LEVELS + 1), Fraction(1), 2.0)


def test_too_many_digits_are_refused():
    long = Fraction(10**17 + 1, 10**17)
    refused("lambda_step", lambda: Grid.arithmetic(Fraction(2), long, 1.0), says="digits", fix="round")


def test_the_mean_size_of_noise_is_that_of_its_law():
    for rate in (0.01, 0.5, 3.0, 40.0):
        k = np.arange(-20_000, 20_001)
        law = np.exp(-rate * np.abs(k)) * np.tanh(rate / 2)
        assert mean_size(np.array(rate)) == pytest.approx((law * np.abs(k)).sum(), rel=1e-9)
    assert np.isfinite(mean_size(np.array([1e6]))).all()
    grid = Grid.geometric(Fraction(8), Fraction(1, 2), 1.0)
    assert grid.scales == pytest.approx(1 / np.sinh(grid.rates)) and (np.diff(grid.scales) < 0).all()


# --------------------------------------------------------------------------------------------------------- the start


@pytest.mark.parametrize("budgets", ["uniform", "optimal"])
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize(
    "given", [{}, {"rows_per_person": 3}, {"people_epsilon": "1/10", "sanity_bound": "1%"}], ids=str
)
@pytest.mark.parametrize("epsilon", ["0.013", "1/3", "7"])
def test_an_epsilon_too_small_to_start_says_which_scale_would_do(budgets, neighbours, given, epsilon):
    if "people_epsilon" in given:
        if neighbours == "replace-one":
            return
        given = given | {"people_epsilon": Fraction(epsilon) / 10}
    start = {"epsilon": epsilon, "neighbours": neighbours, "budgets": budgets, **given}
    for strategy in ("iresamp", "ireduct"):
        problem = refused("lambda_max", lambda: asked(strategy, **start, lambda_max="0.01"), says="too small to start")  # noqa: B023
        enough = re.search(r"`lambda_max` of at least ([0-9.e+-]+),", problem.fix).group(1)
        assert "larger epsilon" in problem.fix
        made = asked(strategy, **start, lambda_max=enough)
        assert made.row_cost(made.budgets) <= calibrate.row_budget(made.privacy, "direct")
        with pytest.raises(BadInput, match="too small to start"):
            asked(strategy, **start, lambda_max=Fraction(enough) * Fraction(99, 100))


def test_lambda_max_is_the_largest_scale_of_the_start():
    for budgets in ("uniform", "optimal"):
        made = asked(lambda_max=300, budgets=budgets)
        assert 1 / made.budgets.min() == pytest.approx(300)
        assert Fraction(float(made.budgets.min())) < Fraction(1, 300)


def test_without_lambda_max_the_start_costs_its_share():
    for neighbours in NEIGHBOURS:
        for name, strategies in (("start_share", ["iresamp", "ireduct"]), ("first_share", ["twophase"])):
            for strategy in strategies:
                made = asked(strategy, neighbours=neighbours, **{name: "0.3"})
                cost = made.row_cost(made.budgets)
                assert cost <= Fraction(3, 10) and float(cost) == pytest.approx(0.3)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("strategy", [*ADAPTING, "dwork"])
def test_the_optimal_base_allocation_is_that_of_the_plan_workload(strategy, neighbours):
    words = "1-way,a0*a1=5,a1*a2,a0*a2=0.3"
    made = asked(strategy, words, budgets="optimal", neighbours=neighbours)
    way = {"strategy": "workload", "budgets": "optimal", "recovery": "none"}
    judge = plan(make_schema(SIZES), words, epsilon=1, neighbours=neighbours, **way).count
    ours = dict(zip((made.underlying if strategy != "dwork" else made).measured, made.budgets, strict=True))
    theirs = {A: b for A, b in zip(judge.measured, judge.budgets, strict=True) if np.isfinite(b)}
    assert {A for A in ours if np.isfinite(ours[A])} == set(theirs)
    ratios = np.array([ours[A] / theirs[A] for A in theirs])
    assert np.ptp(ratios) < 1e-12 * ratios.max()
    assert max(theirs.values()) > 1.5 * min(theirs.values()), "there is something to follow"
    uniform = asked(strategy, words, budgets="uniform", neighbours=neighbours)
    assert np.ptp(uniform.budgets[np.isfinite(uniform.budgets)]) == 0


def test_the_paper_base_allocation_is_the_default():
    assert asked().digest == asked(budgets="uniform").digest != asked(budgets="optimal").digest


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_dwork_uses_all_of_epsilon_at_once(neighbours):
    made = asked("dwork", neighbours=neighbours)
    assert float(made.row_cost(made.budgets)) == pytest.approx(1)
    assert not isinstance(made, AdaptiveDesign)


def test_people_epsilon_must_leave_something():
    for much in ("1.001", "2"):
        refused("people_epsilon", lambda e=much: asked(sanity_bound="1%", people_epsilon=e), says="leaves nothing")
    with pytest.raises(BadInput):
        asked(sanity_bound="1%", people_epsilon=1)


# ------------------------------------------------------------------------------------------- what cannot be planned


@pytest.mark.parametrize("strategy", NOT_PRIVATE)
def test_methods_that_look_at_exact_counts_are_never_planned(strategy):
    problem = refused("strategy", lambda: asked(strategy), says=f"{strategy} is not private", fix="evaluate")
    assert "exact counts" in problem.problem and "ireduct" in problem.fix


@pytest.mark.parametrize("strategy", ADAPTING)
def test_a_sanity_bound_is_asked_for(strategy):
    refused("sanity_bound", lambda: asked(strategy, sanity_bound=None), says="not given", fix="sanity-bound=100")
    assert asked("dwork", sanity_bound=None).strategy == "dwork"


@pytest.mark.parametrize("strategy", [*ADAPTING, "dwork"])
def test_what_the_methods_are_not_for_is_refused_with_a_reason(strategy):
    chosen = adaptive(strategy, sanity_bound=5)
    for guarantee in ({"rho": 1}, {"epsilon": 1, "delta": "1e-6"}):
        with pytest.raises(NotApplicable, match="pure epsilon"):
            plan(make_schema(SIZES), "1-way", neighbours="add-remove", strategy=chosen, **guarantee)
    with pytest.raises(NotApplicable, match="not both together"):
        asked(strategy, "1-way", sizes=(4,), queries=(None, [[1, 0, 0, 1]]))
    if strategy == "dwork":
        refused("strategy", lambda: asked("dwork:people-epsilon=0.1"), says="dwork has no options", fix="alone")
        return
    with pytest.raises(NotApplicable, match="give `people`"):
        asked(strategy, neighbours="replace-one", sanity_bound="1%", people_epsilon="0.1")
    with pytest.raises(NotApplicable, match="give `people`"):
        asked(strategy, [], sizes=(4,), queries=(None, [[1, 0, 0, 1]]), sanity_bound="1%", people_epsilon="0.1")


@pytest.mark.parametrize("strategy", [*ADAPTING, "dwork"])
def test_queries_that_are_not_whole_numbers_are_refused_as_such(strategy):
    with pytest.raises(BadInput) as caught:
        asked(strategy, [], sizes=(4,), queries=(None, [[1, 0.5, 0, 1]]))
    assert "not a whole number" in caught.value.problem and "plan again" not in caught.value.fix


@pytest.mark.parametrize("given", [{"lambda_max": 200, "lambda_step": "1e-8"}, {"lambda_factor": "0.999999"}], ids=str)
def test_too_many_steps_are_refused_when_planning(given):
    refused("lambda_step", lambda: asked(**given), says="more than")


def test_too_many_steps_are_refused_before_noise_is_drawn():
    for steps in ({"lambda_max": 200, "lambda_step": "1e-8"}, {"lambda_factor": "0.999999"}):
        refused(
            "lambda_step",
            lambda steps=steps: release(Plan.of_counts(asked(**steps)), _frame(), seed=1),
            says="more than",
        )


def test_a_noisy_number_of_people_cannot_make_a_run_fail():
    """10% of some 300 people are less than a step of 100: the start then costs its share, as where it is too dear."""
    chosen = asked(lambda_max="10%", lambda_step=100, people_epsilon="0.1")
    assert release(Plan.of_counts(chosen), _frame(300), seed=1).plan.details["adaptive"]["spent"] <= 1


def _frame(rows=50):
    import pyarrow as pa

    rng = np.random.default_rng(0)
    return pa.table({f"a{i}": rng.integers(0, n, rows) for i, n in enumerate(SIZES)})
