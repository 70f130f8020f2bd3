"""Xiao, Bender, Hay, Gehrke 2011: iReduct, differential privacy with reduced relative errors, section 6.

    error of a cell  |noisy - true| / max(true, δ)                                            [Equation 1]
    overall error    the mean over the cells of a table, then over tables                     [Definition 6], then runs

The paper's data, census records of 10 million people in Brazil and 14 million in the US, are available on application
only. Made-up people have their sizes [tests/populations.py]; where the shared data is, real ones are shown beside them:
working adults of the American Community Survey of 2018, coded like the paper's US data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pyarrow.parquet as pq
from tests.datasets import shared
from tests.populations import BRAZIL, CENSUS, census

from benchmarks.reproduce import pictures
from benchmarks.reproduce.data import Data, present
from benchmarks.reproduce.figure import CONFIRMED, CORRECTED, NOT_CONFIRMED, Claim, Figure, Row, held, seed_of
from hushcube import Attribute, Schema
from hushcube.experiments.classify import coded_rows, cross_validate
from hushcube.experiments.experiment import evaluate
from hushcube.experiments.trial import Trial
from hushcube.experiments.truth import held as held_tables, wanted
from hushcube.lattice.family import Family
from hushcube.model.privacy import Privacy
from hushcube.model.workload import Workload
from hushcube.private.engines import ExactCounts, open_source
from hushcube.strategies import ADAPTIVE
from hushcube.strategies.strategy import Strategy

# ------------------------------------------------------------------------------------------------ people and methods

ACS = "acs2018_census9.parquet"
PEOPLE: dict[str, tuple[Schema | None, int, str]] = {
    # schema of made-up people, their number, the class of the classifier
    "Brazil-like": (BRAZIL, 10_000_000, "education"),
    "US-like": (CENSUS, 14_000_000, "education"),
    "ACS": (None, 665_800, "EDU5"),
}
FEW_PEOPLE = 200_000


@dataclass(frozen=True)
class Method:
    """A strategy with its options, budgets and recovery."""

    strategy: str
    rule: Mapping[str, str] = field(default_factory=dict)
    budgets: str = "uniform"
    recovery: str = "none"

    def configured(self, first_share: str) -> str | Strategy:
        """With those of the options that it has; others have none."""
        own = ADAPTIVE.get(self.strategy)
        return self.strategy if own is None else own.filled(first_share=first_share, **self.rule)


PAPER = {"lambda_max": "10%", "lambda_step": "0.0001%", "caution": "0"}
"""Section 6.1: |T|/10 and |T|/10^6."""
OURS = {"start_share": "0.05", "lambda_factor": "0.99", "caution": "0.1"}
PAPERS = {name: Method(name, PAPER) for name in ("dwork", "iresamp", "twophase", "ireduct", "oracle")}
TODAY = {
    "ireduct+": Method("ireduct", OURS, "optimal", "gls"),
    "covering": Method("covering", {}, "optimal", "gls"),
    "residual (rho)": Method("residual", {}, "optimal", "gls"),
}
STEPS = {  # from the paper's iReduct to ours, one change after another
    "with caution": Method("ireduct", PAPER | {"caution": "0.1"}),
    "geometric steps": Method("ireduct", OURS),
    "optimal start": Method("ireduct", OURS, "optimal"),
}
METHODS = PAPERS | TODAY | STEPS
LOOKS = {
    "dwork": (pictures.BLUE, "solid"),
    "iresamp": (pictures.PURPLE, "solid"),
    "twophase": (pictures.GREEN, "solid"),
    "ireduct": (pictures.VERMILION, "solid"),
    "oracle": (pictures.BLACK, pictures.DASHED),
    "ireduct+": (pictures.VERMILION, pictures.DASHED),
    "covering": (pictures.GREY, "solid"),
    "residual (rho)": (pictures.SKY, "solid"),
}


@dataclass(frozen=True)
class Task:
    """Tables, and the paper's parameters for them."""

    words: str
    epsilons: tuple[str, ...]
    centre: str
    """The epsilon at which sanity bounds vary."""
    first_share: str
    """TwoPhase's epsilon_1 / epsilon, as calibrated in the paper."""
    more: Mapping[str, int] = field(default_factory=dict)
    """Runs as a multiple of the paper's 10: few cells make for errors that vary from run to run."""


TASKS = {
    "1-way": Task(
        "1-way",
        ("0.001", "0.002", "0.005", "0.01", "0.02", "0.05", "0.1"),
        "0.01",
        "0.07",
        dict.fromkeys(("dwork", "oracle", "covering", "residual (rho)"), 30)
        | dict.fromkeys(("twophase", "iresamp", "ireduct+"), 10)
        | dict.fromkeys(("ireduct", *STEPS), 5),
    ),
    "2-way": Task("2-way", ("0.01", "0.03", "0.1", "0.3", "1"), "0.1", "0.025"),
}
CLASSIFIER = Task("", ("0.001", "0.003", "0.01", "0.03", "0.1", "0.3", "1"), "0.01", "0.03")
DELTA, DELTAS = "0.01%", ("0.001%", "0.003%", "0.01%", "0.03%", "0.1%")
SHARES = ("0.01", "0.02", "0.03", "0.05", "0.07", "0.1", "0.15", "0.2", "0.3", "0.5")
RUNS, FOLDS, NEIGHBOURS = 10, 10, "replace-one"


@lru_cache(maxsize=1)
def people_of(name: str, rows: int, attributes: int | None) -> Data:
    """Made-up people, or the survey's."""
    schema, *_ = PEOPLE[name]
    if schema is not None:
        return Data(name, schema, census(rows, seed=1, schema=schema), stand_in=False).first(attributes)
    table = pq.read_table(shared(ACS)).slice(0, rows)
    table = table.select(table.column_names[:9])
    labels = {column: sorted(table.column(column).unique().to_pylist()) for column in table.column_names}
    made = tuple(Attribute(name=column, values=tuple(map(str, values))) for column, values in labels.items())
    return Data(name, Schema(made, "acs"), table, stand_in=False).first(attributes)


@lru_cache(maxsize=2)
def counted(name: str, rows: int, attributes: int | None, marginals: tuple[tuple[int, ...], ...]) -> ExactCounts:
    """The exact tables that some methods and the truth need."""
    data = people_of(name, rows, attributes)
    return held_tables(open_source(data.people), data.schema, Family.of(marginals, data.schema.sizes))


def everyone(quick: bool) -> Iterable[Row]:
    """The people of every figure; few of them, with few attributes, if quick."""
    for name, (schema, rows, _) in PEOPLE.items():
        if schema is not None or present(ACS):
            yield {"data": name, "people": FEW_PEOPLE, "attributes": 4} if quick else {"data": name, "people": rows}
        if quick:
            return


# ------------------------------------------------------------------------------------------------- errors of tables


def job_of(who: Row, task: str, method: str, quick: bool, **where: str) -> Row:
    """A point: a method at one epsilon, sanity bound and share of the first phase."""
    chosen = TASKS[task]
    usual = {"epsilon": chosen.centre, "delta": DELTA, "first_share": chosen.first_share}
    runs = 2 if quick else RUNS * chosen.more.get(method, 1)
    return {**who, "task": task, "method": method, **usual, **where, "runs": runs}


def measure_tables(job: Row) -> Row:
    """The overall error of a method, its standard error, and the seconds of a run."""
    who = (job["data"], job["people"], job.get("attributes"))
    data, method = people_of(*who), METHODS[job["method"]]
    workload = Workload.parse(TASKS[job["task"]].words, data.schema)
    epsilon = float(job["epsilon"])
    amounts = {"rho": repr(epsilon**2 / 2)} if method.strategy == "residual" else {"epsilon": job["epsilon"]}
    trial = Trial(
        methods=[method.configured(job["first_share"])],
        privacies=[Privacy.of(neighbours=NEIGHBOURS, **amounts)],
        sanity_bound=job["delta"],
        people=job["people"],
        budgets=[method.budgets],
        recoveries=[method.recovery],
        runs=job["runs"],
        seed=seed_of(job),
        workers=1,
    )
    contenders, _ = trial.prepare(workload)
    family = wanted(workload, [own.plan for own in contenders])
    (result,), _ = evaluate(workload, counted(*who, tuple(sorted(family))), trial)
    return {"error": result.overall_error, "error_se": result.standard_error, "seconds": result.seconds}


def share_jobs(quick: bool) -> Iterable[Row]:
    """Figure 5."""
    for who in everyone(quick):
        for share in SHARES[::4] if quick else SHARES:
            yield job_of(who, "1-way", "twophase", quick, first_share=share)


def epsilon_jobs(quick: bool) -> Iterable[Row]:
    """Figures 6 and 8."""
    for who in everyone(quick):
        for task, chosen in TASKS.items():
            for epsilon in chosen.epsilons[:: len(chosen.epsilons) - 1] if quick else chosen.epsilons:
                for method in PAPERS | TODAY:
                    yield job_of(who, task, method, quick, epsilon=epsilon)


def delta_jobs(quick: bool) -> Iterable[Row]:
    """Figures 7 and 9."""
    for who in everyone(quick):
        for task in TASKS:
            for delta in DELTAS[::4] if quick else DELTAS:
                for method in PAPERS | TODAY:
                    yield job_of(who, task, method, quick, delta=delta)


def step_jobs(quick: bool) -> Iterable[Row]:
    """What our changes to iReduct are worth."""
    for who in everyone(quick):
        for task in list(TASKS)[:1] if quick else TASKS:
            for delta in (DELTA, DELTAS[0]):
                for method in ("oracle", "ireduct", *STEPS, "ireduct+"):
                    yield job_of(who, task, method, quick, delta=delta)


# ------------------------------------------------------------------------------------------------------- classifiers


def classifier_jobs(quick: bool) -> Iterable[Row]:
    """Figures 10 and 11: methods of one budget rule together, for they share the folds."""
    together = (list(PAPERS), ["ireduct+", "covering"])
    for who in everyone(quick):
        few = {"attributes": 7} if quick else {}
        for epsilon in CLASSIFIER.epsilons[2::4] if quick else CLASSIFIER.epsilons:
            for methods in together:
                yield {**who, **few, "methods": methods, "epsilon": epsilon, "folds": 3 if quick else FOLDS}


@lru_cache(maxsize=1)
def coded_people(name: str, rows: int, attributes: int | None) -> dict[int, np.ndarray]:
    """The rows that classifiers learn from."""
    data = people_of(name, rows, attributes)
    return coded_rows(data.schema, data.people)


def measure_classifiers(job: Row) -> Row:
    """Overall errors and accuracies of methods, and the accuracy without noise."""
    who = (job["data"], job["people"], job.get("attributes"))
    methods, folds = [METHODS[name] for name in job["methods"]], job["folds"]
    trial = Trial(
        methods=[method.configured(CLASSIFIER.first_share) for method in methods],
        privacies=[Privacy.of(neighbours=NEIGHBOURS, epsilon=job["epsilon"])],
        sanity_bound=DELTA,
        people=job["people"] - job["people"] // folds,
        budgets=[methods[0].budgets],
        recoveries=[methods[0].recovery],
        runs=folds,
        seed=seed_of({k: v for k, v in job.items() if k != "methods"}),
        workers=1,
    )
    class_name = PEOPLE[job["data"]][2]
    (exact, *found), _ = cross_validate(people_of(*who).schema, coded_people(*who), class_name, trial)
    told = {
        name: {"error": one.overall_error, "error_se": one.standard_error}
        | {"accuracy": one.accuracy, "accuracy_se": one.accuracy_error}
        for name, one in zip(job["methods"], found, strict=True)
    }
    return {"found": told, "exact": exact.accuracy}


def flat(rows: Sequence[Row]) -> list[Row]:
    """A row for each method."""
    return [
        {**row, "task": "classifier", "method": method, **came_to}
        for row in rows
        for method, came_to in row["found"].items()
    ]


# ------------------------------------------------------------------------------------------------------------ claims

ORDERS = (
    # what the paper says, its tasks, a method, another one, least and greatest ratio of their errors
    ("iReduct is within 5% of oracle", ("1-way", "2-way", "classifier"), "ireduct", "oracle", 0.0, 1.05),
    ("iReduct is below TwoPhase", ("1-way", "2-way", "classifier"), "ireduct", "twophase", 0.0, 1.0),
    ("TwoPhase is below Dwork", ("1-way", "2-way", "classifier"), "twophase", "dwork", 0.0, 1.0),
    ("TwoPhase is below iResamp", ("1-way", "2-way", "classifier"), "twophase", "iresamp", 0.0, 1.0),
    ("iResamp is comparable to Dwork (within a quarter)", ("1-way",), "iresamp", "dwork", 0.8, 1.25),
    ("iResamp is above Dwork", ("classifier",), "iresamp", "dwork", 1.0, math.inf),
)


def ratios(rows: Sequence[Row], one: str, other: str) -> list[float]:
    """Of the errors of two methods, wherever both were measured."""
    places: dict[tuple[str, ...], dict[str, float]] = {}
    for row in rows:
        at = (row["data"], row["task"], row["epsilon"], row.get("delta", DELTA))
        places.setdefault(at, {})[row["method"]] = row["error"]
    return [at[one] / at[other] for at in places.values() if one in at and other in at]


def order_claims(rows: Sequence[Row]) -> list[Claim]:
    """The order of methods: confirmed if it holds at every point; with a correction if it does on average for people
    in the paper's numbers, but not everywhere, such as for the twenty times fewer of the survey."""
    found = []
    for says, tasks, one, other, low, high in ORDERS:
        for task in tasks:
            own = [row for row in rows if row["task"] == task]
            if not own:
                continue
            told, always, mostly = [], True, True
            for data in dict.fromkeys(row["data"] for row in own):
                each = ratios([row for row in own if row["data"] == data], one, other)
                mean, holds = sum(each) / len(each), sum(low <= ratio <= high for ratio in each)
                always = always and holds == len(each)
                mostly = mostly and (data == "ACS" or low <= mean <= high)
                told.append(f"{data}: {min(each):.2f} to {max(each):.2f} times, holds at {holds} of {len(each)} points")
            verdict = CONFIRMED if always else CORRECTED if mostly else NOT_CONFIRMED
            found.append(Claim(f"{task}: {says}", verdict, "; ".join(told)))
    return found


def epsilon_claims(rows: Sequence[Row]) -> list[Claim]:
    """The order of methods, and that one-way marginals tell them further apart."""
    gaps = {
        data: {
            task: np.mean(ratios([r for r in rows if (r["data"], r["task"]) == (data, task)], "dwork", "ireduct"))
            for task in TASKS
        }
        for data in dict.fromkeys(row["data"] for row in rows)
    }
    told = "; ".join(f"{data}: Dwork / iReduct {g['1-way']:.2f} and {g['2-way']:.2f}" for data, g in gaps.items())
    smaller = all(g["2-way"] < g["1-way"] for g in gaps.values())
    says = "the gaps between methods are smaller on two-way than on one-way marginals"
    return [*order_claims(rows), held(says, told, holds=smaller)]


def delta_claims(rows: Sequence[Row]) -> list[Claim]:
    """Errors fall as the sanity bound rises."""
    lines: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        lines.setdefault((row["data"], row["task"], row["method"]), []).append(row)
    falling = sum(not any(map(rises, line, line[1:])) for line in lines.values())
    told = f"for {falling} of {len(lines)} methods and tables; a rise within two standard errors does not count"
    return [nearly("the larger the sanity bound, the smaller the errors", told, falling / len(lines))]


def nearly(says: str, told: str, share: float) -> Claim:
    """Whether something holds always, or, with a correction, in nine of ten cases."""
    return held(says, told, holds=share >= 0.9, correction=share < 1)


def rises(a: Row, b: Row) -> bool:
    """Whether an error is clearly above another."""
    return bool(b["error"] > a["error"] + 2 * math.hypot(a["error_se"], b["error_se"]))


def share_claims(rows: Sequence[Row]) -> list[Claim]:
    """The error has a minimum inside, near 0.07."""
    told, inside, near = [], True, True
    for data in dict.fromkeys(row["data"] for row in rows):
        line = [row for row in rows if row["data"] == data]
        best = min(line, key=lambda row: row["error"])
        inside = inside and rises(best, line[0]) and rises(best, line[-1])
        close = [r["first_share"] for r in line if not rises(best, r)]
        near = near and float(close[0]) <= 0.07 <= float(close[-1])
        told.append(
            f"{data}: least at {best['first_share']}, within two standard errors from {close[0]} to {close[-1]}"
        )
    says = "TwoPhase's error has a minimum at a share of about 0.07 for its first phase, and rises to both sides"
    return [held(says, "; ".join(told), holds=inside, correction=not near)]


def classifier_claims(rows: Sequence[Row]) -> list[Claim]:
    """The order of methods, and that smaller errors make better classifiers."""
    own, agree, pairs = [row for row in flat(rows) if row["method"] in PAPERS], 0, 0
    for i, a in enumerate(own):
        for b in own[:i]:
            same = (a["data"], a["epsilon"]) == (b["data"], b["epsilon"])
            if same and abs(a["accuracy"] - b["accuracy"]) > 2 * math.hypot(a["accuracy_se"], b["accuracy_se"]):
                pairs += 1
                agree += (a["error"] < b["error"]) == (a["accuracy"] > b["accuracy"])
    says = "a smaller overall error means a more accurate classifier"
    told = f"in {agree} of {pairs} pairs of methods whose accuracies differ by more than two standard errors"
    return [*order_claims(own), nearly(says, told, agree / max(pairs, 1))]


# --------------------------------------------------------------------------------------------- pictures and tables


def panels(x: str, rows: Sequence[Row], convert: Callable[[str], float] = float) -> list[Row]:
    """Rows of a chart: a panel for each data set and task."""
    return [{**row, x: convert(row[x]), "panel": f"{row['data']}, {row['task']}"} for row in rows]


def amount(delta: str) -> float:
    """A share of the people as a number.

    >>> amount("0.01%")
    0.0001
    """
    return float(delta.removesuffix("%")) / 100


def chart(rows: Sequence[Row], x: str, x_title: str, title: str, **options: object) -> dict[str, object]:
    """Lines of all methods."""
    wide = len({row["data"] for row in rows})
    by_task = sorted(rows, key=lambda row: [*TASKS, "classifier"].index(row["task"]))
    usual = {"y": "error", "y_title": "overall error", "log_x": True, "looks": LOOKS, "panel": "panel"}
    return {"": pictures.lines(by_task, x=x, x_title=x_title, title=title, columns=wide, **{**usual, **options})}


def classifier_pictures(rows: Sequence[Row]) -> dict[str, object]:
    """Errors, and accuracies beside that of the classifier without noise."""
    own = panels("epsilon", flat(rows))
    exact = [{**row, "method": "without noise", "accuracy": row["exact"]} for row in own]
    looks = {**LOOKS, "without noise": (pictures.GREY, pictures.DASHED)}
    accuracies = {"y": "accuracy", "y_title": "accuracy", "log_y": False, "looks": looks}
    return {
        "-errors": chart(own, "epsilon", "epsilon", "Marginals of a classifier: overall error")[""],
        "-accuracy": chart([*own, *exact], "epsilon", "epsilon", "Accuracy of the classifier", **accuracies)[""],
    }


def errors_by(by: str, title: str) -> Callable[[Sequence[Row]], list[tuple[str, list[Row]]]]:
    """A table for each task: a line for each place, a column for each method."""

    def tables(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
        found = []
        for task in dict.fromkeys(row["task"] for row in rows):
            lines: dict[tuple[str, str], Row] = {}
            for row in rows:
                if row["task"] == task:
                    line = lines.setdefault((row["data"], row[by]), {"data": row["data"], by: row[by]})
                    line[row["method"]] = f"{row['error']:.3g}"
            found.append((f"{title}, {task}", list(lines.values())))
        return found

    return tables


def epsilon_tables(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """Errors, and how long a run takes."""
    slow = [
        {"tables": task, "data": data}
        | {
            method: float(np.mean([r["seconds"] for r in own if r["method"] == method]))
            for method in ("ireduct", "ireduct+", "twophase")
        }
        for task in TASKS
        for data in dict.fromkeys(row["data"] for row in rows)
        if (own := [row for row in rows if (row["task"], row["data"]) == (task, data)])
    ]
    seconds = "Seconds of a run, without counting; the paper's iReduct took 5 s and 15 minutes"
    return [*errors_by("epsilon", "Overall errors")(rows), (seconds, slow)]


def step_tables(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """Errors over oracle's."""
    lines: dict[tuple[str, ...], Row] = {}
    for row in rows:
        at = (row["task"], row["data"], row["delta"])
        lines.setdefault(at, dict(zip(("tables", "data", "δ"), at, strict=True)))[row["method"]] = row["error"]
    over = [
        {k: v for k, v in line.items() if isinstance(v, str)}
        | {k: f"{v / line['oracle']:.2f}" for k, v in line.items() if not isinstance(v, str) and k != "oracle"}
        for line in lines.values()
    ]
    return [("Overall error over that of oracle", over)]


def step_claims(rows: Sequence[Row]) -> list[Claim]:
    """What the changes come to together."""
    each = ratios(rows, "ireduct+", "ireduct")
    says = "ours: with all changes, iReduct's overall error is smaller"
    told = f"{min(each):.2f} to {max(each):.2f} times the paper's, smaller at {sum(r < 1 for r in each)} of {len(each)}"
    return [held(says, told, holds=sum(each) < len(each), correction=max(each) >= 1)]


def classifier_tables(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """Accuracies."""
    lines: dict[tuple[str, str], Row] = {}
    for row in flat(rows):
        line = lines.setdefault((row["data"], row["epsilon"]), {"data": row["data"], "epsilon": row["epsilon"]})
        line.pop("without noise", None)
        line |= {row["method"]: f"{row['accuracy']:.2%}", "without noise": f"{row['exact']:.2%}"}
    return [("The share of people whose class was predicted", list(lines.values()))]


_WHO = "Made-up people with the paper's sizes, and the American Community Survey where it is; replace-one neighbours, "
_DELTA = f"the number of people public, sanity bound δ = {DELTA} of it"
FIGURES = (
    Figure(
        "xiao-5",
        "Figure 5: calibrating TwoPhase",
        f"{_WHO}{_DELTA}; one-way marginals, epsilon {TASKS['1-way'].centre}.",
        share_jobs,
        measure_tables,
        lambda rows: chart(panels("first_share", rows), "first_share", "ε₁/ε", "TwoPhase: overall error", log_y=False),
        errors_by("first_share", "Overall errors"),
        share_claims,
    ),
    Figure(
        "xiao-6-8",
        "Figures 6 and 8: overall error against epsilon",
        f"{_WHO}{_DELTA}. `ireduct+` is ours: it starts with 5% of epsilon in the proportions of the best plan, goes "
        "on in geometric steps with a caution of 0.1, and makes tables add up by least squares. `oracle` is not "
        "private: it chooses scales by the exact counts.",
        epsilon_jobs,
        measure_tables,
        lambda rows: chart(panels("epsilon", rows), "epsilon", "epsilon", "Overall error against epsilon"),
        epsilon_tables,
        epsilon_claims,
    ),
    Figure(
        "xiao-7-9",
        "Figures 7 and 9: overall error against the sanity bound",
        f"{_WHO}the number of people public; epsilon {TASKS['1-way'].centre} for one-way and "
        f"{TASKS['2-way'].centre} for two-way marginals.",
        delta_jobs,
        measure_tables,
        lambda rows: chart(
            panels("delta", rows, amount), "delta", "sanity bound / people", "Overall error against the sanity bound"
        ),
        errors_by("delta", "Overall errors"),
        delta_claims,
    ),
    Figure(
        "xiao-10-11",
        "Figures 10 and 11: a naive Bayes classifier of education",
        f"{_WHO}{_DELTA}; nine marginals, {FOLDS} folds.",
        classifier_jobs,
        measure_classifiers,
        classifier_pictures,
        classifier_tables,
        classifier_claims,
    ),
    Figure(
        "xiao-steps",
        "From the paper's iReduct to ours",
        "One change after another. `with caution`: a noisy count below a tenth of its noise is taken for a tenth of "
        "its noise. `geometric steps`: the start costs 5% of epsilon, and each scale is 0.99 of the one before. "
        "`optimal start`: the first scales are in the proportions of the plan `workload`. `ireduct+`: least squares "
        "make the tables add up.",
        step_jobs,
        measure_tables,
        tables=step_tables,
        claims=step_claims,
    ),
)
