"""The page of the experiments on relative errors: tables, the paper's claims beside what was measured, and pictures.

Every number of the page comes from the points that were measured, and so does every verdict.
"""

from __future__ import annotations

import io
import math
import os
import platform
from itertools import pairwise
from pathlib import Path

from benchmarks.__main__ import table
from benchmarks.relative_pictures import ORDER, pictures, share

DOCS = Path(__file__).parent.parent / "docs"
PAGE, PICTURES = DOCS / "relative-errors.md", DOCS / "pictures"
MARK, END = "<!-- relative errors: written by `make relative` -->", "<!-- end -->"
CLAIMS = (
    # what the paper says, task, method, other method, least and greatest ratio of their errors
    ("iReduct is within 5% of oracle", ("1-way", "2-way", "classifier"), "ireduct", "oracle", 0.0, 1.05),
    ("iReduct is below TwoPhase", ("1-way", "2-way", "classifier"), "ireduct", "twophase", 0.0, 1.0),
    ("iReduct is below Dwork", ("1-way", "2-way", "classifier"), "ireduct", "dwork", 0.0, 1.0),
    ("TwoPhase is below Dwork", ("1-way", "2-way", "classifier"), "twophase", "dwork", 0.0, 1.0),
    ("TwoPhase is below iResamp", ("1-way", "2-way", "classifier"), "twophase", "iresamp", 0.0, 1.0),
    ("iResamp is comparable to Dwork (within a quarter)", ("1-way",), "iresamp", "dwork", 0.8, 1.25),
    ("iResamp is above Dwork", ("classifier",), "iresamp", "dwork", 1.0, math.inf),
)


class Book:
    """Points by what they are."""

    def __init__(self, points, tasks, delta):
        self.points, self.tasks, self.delta = points, tasks, delta
        self.people = {point.data: point.people for point in points}
        self._at = {(p.data, p.task, p.epsilon, p.delta, p.method, p.first_share): p for p in points}

    def at(self, data, task, method, epsilon=None, delta=None):
        chosen = self.tasks[task]
        key = data, task, epsilon or chosen.centre, delta or self.delta, method, chosen.first_share
        return self._at.get(key)

    def epsilons(self, data, task):
        return [e for e in self.tasks[task].epsilons if self.at(data, task, "oracle", e)]

    def deltas(self, data, task):
        found = {p.delta for p in self.points if (p.data, p.task, p.method) == (data, task, "oracle")}
        return sorted(found, key=share)

    def first_shares(self, data):
        """The points of TwoPhase's calibration."""
        found = [p for p in self.points if (p.data, p.task, p.method) == (data, "1-way", "twophase")]
        found = [p for p in found if (p.epsilon, p.delta) == (self.tasks["1-way"].centre, self.delta)]
        return sorted(found, key=lambda p: float(p.first_share))

    def ratio(self, data, task, one, other, **where):
        """A ratio of errors, and its standard error."""
        a, b = self.at(data, task, one, **where), self.at(data, task, other, **where)
        value = a.error / b.error
        return value, value * math.hypot(a.error_se / a.error, b.error_se / b.error)

    def ratios(self, data, task, one, other):
        return [self.ratio(data, task, one, other, epsilon=e) for e in self.epsilons(data, task)]


def write(points, tasks, delta, steps, *, print_only):
    book = Book(points, tasks, delta)
    text = "\n\n".join(part for part in sections(book, steps) if part)
    if print_only:
        print(text)
        return
    for name, picture in pictures(book).items():
        target = io.StringIO()
        picture.save(target, format="svg")
        (PICTURES / name).write_text(target.getvalue() + "\n", encoding="utf-8")
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(MARK)
    PAGE.write_text(f"{head}{MARK}\n\n{text}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")
    print(f"wrote {PAGE.name}")


def sections(book, steps):
    minutes = sum(point.busy for point in book.points) / 60
    runs = {task: sorted({p.runs for p in book.points if p.task == task}) for task in book.tasks}
    people = " and ".join(f"{name} ({n:,} people)" for name, n in book.people.items())
    yield (
        f"{people}; replace-one neighbours, the number of people public, sanity bound δ = {book.delta} of it unless "
        f"stated. {_runs(runs)} All of it took {minutes:.0f} minutes of one core, besides making the data; "
        f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}."
    )
    yield "### The paper's claims"
    yield (
        "Ratios of overall errors over all epsilons: from the least to the greatest, and their average with its "
        "standard error. A claim holds at an epsilon if the measured ratio is within its limits there; ratios within "
        "a few standard errors of a limit may fall on either side by chance."
    )
    yield table(list(claims(book)))
    yield from others(book)
    for task, title in (("1-way", "One-way marginals"), ("2-way", "Two-way marginals")):
        yield f"### {title}"
        yield f"![Overall error against epsilon and against the sanity bound](pictures/relative-{task}.svg)"
        yield table(errors(book, task))
        if rows := errors(book, task, by="delta"):
            yield f"Against the sanity bound δ, at epsilon {book.tasks[task].centre}:"
            yield table(rows)
    yield "### What counts is epsilon times the number of people"
    yield (
        "The noise of a count is in proportion to 1/epsilon, the counts to the number of people, and so is δ. The "
        "third column is the scale of Dwork's noise over δ: where it is large, small cells cannot be told from empty "
        "ones, and every method chooses its scales nearly blindly."
    )
    yield table(by_amount(book))
    yield near_oracle(book)
    yield "### Classifier"
    yield "![Overall error and accuracy against epsilon](pictures/relative-classifier.svg)"
    yield table(errors(book, "classifier"))
    yield "The share of people whose class was predicted; `exact` is the classifier without noise:"
    yield table(accuracies(book))
    yield coarse_steps(book)
    yield "### Calibration of TwoPhase"
    yield "![TwoPhase's overall error against the first phase's share](pictures/relative-twophase.svg)"
    yield calibration(book)
    if rows := between(book, steps):
        yield "### From the paper's iReduct to ours"
        yield (
            "Overall error over that of oracle, after one change after another. `with caution`: a noisy count below a "
            "tenth of its noise is taken for a tenth of its noise. `geometric steps`: the start costs 5% of epsilon, "
            "and each scale is 0.99 of the one before. `optimal start`: the first scales are in the proportions of "
            "the plan `workload`. `ireduct+`: least squares make the tables add up."
        )
        yield table(rows)


def _runs(runs):
    def told(counts):
        return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"

    return (
        f"Means of {told(runs['1-way'])} runs for one-way marginals, whose few cells make errors vary from run to run, "
        f"of {told(runs['2-way'])} for two-way marginals, and of {told(runs['classifier'])} folds for the classifier."
    )


def claims(book):
    for words, tasks, one, other, low, high in CLAIMS:
        for task in tasks:
            row = {"the paper says": words, "tables": task}
            for data in book.people:
                found = book.ratios(data, task, one, other)
                values = [value for value, _ in found]
                held = sum(low <= value <= high for value in values)
                average = f"{sum(values) / len(values):.3f} ± {_pooled(found):.3f}"
                row[f"{data}: ratio"] = f"{min(values):.2f} to {max(values):.2f}, average {average}"
                row[f"{data}: holds"] = "always" if held == len(values) else f"at {held} of {len(values)} epsilons"
            yield row


def _pooled(found):
    return math.sqrt(sum(error**2 for _, error in found)) / len(found)


def others(book):
    """Claims that are no ratios of two methods."""
    for data in book.people:
        gaps = {task: [r for r, _ in book.ratios(data, task, "dwork", "ireduct")] for task in ("1-way", "2-way")}
        one, two = (sum(values) / len(values) for values in gaps.values())
        agrees = "as in the paper" if two < one else "unlike in the paper"
        text = (
            f"{data}: Dwork's error is on average {one:.2f} times iReduct's on one-way and {two:.2f} times on two-way "
            f"marginals: the gap is {'smaller' if two < one else 'larger'} on the latter, {agrees}."
        )
        lines = [
            [book.at(data, task, method, delta=d) for d in deltas]
            for task in ("1-way", "2-way")
            if len(deltas := book.deltas(data, task)) > 1
            for method in ORDER
        ]
        if lines:
            falling = sum(not any(_rises(*pair) for pair in pairwise(line)) for line in lines)
            text += (
                f" The larger δ, the smaller the errors, as the paper says, for {falling} of {len(lines)} methods and "
                "tables (a rise within two standard errors does not count)."
            )
        concordant, pairs = _concordance(book, data)
        yield (
            f"{text} Of two methods whose classifiers differ by more than two standard errors, the one with the "
            f"smaller overall error is the more accurate in {concordant} of {pairs} cases."
        )


def _rises(a, b):
    return b.error > a.error + 2 * math.hypot(a.error_se, b.error_se)


def _concordance(book, data):
    """Pairs of methods whose errors and accuracies say the same, where accuracies differ by two standard errors."""
    concordant = pairs = 0
    for epsilon in book.epsilons(data, "classifier"):
        found = [book.at(data, "classifier", method, epsilon) for method in ORDER]
        for i, a in enumerate(found):
            for b in found[:i]:
                if abs(a.accuracy - b.accuracy) > 2 * math.hypot(a.accuracy_se, b.accuracy_se):
                    pairs += 1
                    concordant += (a.error < b.error) == (a.accuracy > b.accuracy)
    return concordant, pairs


def errors(book, task, by="epsilon"):
    rows = []
    for data in book.people:
        places = book.epsilons(data, task) if by == "epsilon" else book.deltas(data, task)
        if by == "delta" and len(places) < 2:
            continue
        for place in places:
            row = {"data": data, "epsilon" if by == "epsilon" else "δ, share of people": place}
            row |= {method: f"{book.at(data, task, method, **{by: place}).error:.3g}" for method in ORDER}
            for other in ("oracle", "twophase", "dwork"):
                row[f"ireduct / {other}"] = _told(book.ratio(data, task, "ireduct", other, **{by: place}))
            row["ireduct+ / oracle"] = _told(book.ratio(data, task, "ireduct+", "oracle", **{by: place}))
            rows.append(row)
    return rows


def _told(ratio):
    return f"{ratio[0]:.2f} ± {ratio[1]:.2f}"


def by_amount(book):
    rows = []
    for data, n in book.people.items():
        for task in ("1-way", "2-way"):
            for epsilon in book.epsilons(data, task):
                amount = float(epsilon) * n
                noise = 2 * book.tasks[task].tables / amount / share(book.delta)
                row = {"tables": task, "epsilon × people": f"{amount:,.0f}", "noise / δ": f"{noise:.3g}"}
                row |= {"data": data, "epsilon": epsilon}
                for method in ("ireduct", "ireduct+", "twophase", "dwork"):
                    row[f"{method} / oracle"] = _told(book.ratio(data, task, method, "oracle", epsilon=epsilon))
                rows.append((task, amount, row))
    return [row for *_, row in sorted(rows, key=lambda r: r[:2])]


def coarse_steps(book):
    """Where the paper's step is no longer small against the scales: the last epsilon of the classifier."""
    told = []
    for data, n in book.people.items():
        epsilon = book.epsilons(data, "classifier")[-1]
        trained = n * (1 - 1 / book.at(data, "classifier", "ireduct", epsilon).runs)
        step = 1e-6 * trained * float(epsilon) / (2 * book.tasks["classifier"].tables)
        coarse, fine = (
            _told(book.ratio(data, "classifier", method, "oracle", epsilon=epsilon))
            for method in ("ireduct", "finer steps")
        )
        told.append(
            f"{data}, epsilon {epsilon}: the paper's step λ_Δ is {step:.2g} of the scale of Dwork's noise, and "
            f"iReduct's error is {coarse} times oracle's; with λ_max and λ_Δ a tenth of the paper's it is {fine} times "
            "oracle's"
        )
    return ". ".join(told) + "."


def near_oracle(book):
    """From which amount on, and up to which noise, iReduct is as near to oracle as the paper says."""
    told = []
    for task in ("1-way", "2-way"):
        found = sorted(
            (float(epsilon) * n, book.ratio(data, task, "ireduct", "oracle", epsilon=epsilon)[0])
            for data, n in book.people.items()
            for epsilon in book.epsilons(data, task)
        )
        near = [amount for at, (amount, _) in enumerate(found) if all(ratio <= 1.05 for _, ratio in found[at:])]
        if near:
            noise = 2 * book.tasks[task].tables / near[0] / share(book.delta)
            told.append(f"{task}: from {near[0]:,.0f} on, where Dwork's noise is {noise:.2g} times δ")
        else:
            told.append(f"{task}: nowhere for certain")
    return f"iReduct's error is at most 1.05 times oracle's, at every product that was measured: {'; '.join(told)}."


def accuracies(book):
    return [
        {"data": data, "epsilon": epsilon}
        | {m: f"{book.at(data, 'classifier', m, epsilon).accuracy:.2%}" for m in (*ORDER, "exact")}
        for data in book.people
        for epsilon in book.epsilons(data, "classifier")
    ]


def calibration(book):
    told = []
    for data in book.people:
        found = book.first_shares(data)
        best = min(found, key=lambda p: p.error)
        near = [p.first_share for p in found if p.error <= best.error + 2 * math.hypot(p.error_se, best.error_se)]
        told.append(
            f"{data}: the least error, {best.error:.3g} ± {best.error_se:.1g}, is at ε₁/ε = {best.first_share}; within "
            f"two standard errors of it are shares from {near[0]} to {near[-1]}. The paper's share, "
            f"{book.tasks['1-way'].first_share}, gives {book.at(data, '1-way', 'twophase').error:.3g}"
        )
    return f"One-way marginals, epsilon {book.tasks['1-way'].centre}. " + ". ".join(told) + "."


def between(book, steps):
    rows = []
    for task in ("1-way", "2-way"):
        for data in book.people:
            for delta in book.deltas(data, task):
                if not all(book.at(data, task, name, delta=delta) for name in steps):
                    continue
                row = {"tables": task, "epsilon": book.tasks[task].centre, "δ": delta, "data": data}
                for method in ("ireduct", *steps, "ireduct+"):
                    row[method] = _told(book.ratio(data, task, method, "oracle", delta=delta))
                for method in ("ireduct", "ireduct+"):
                    row[f"seconds of {method}"] = book.at(data, task, method, delta=delta).seconds
                rows.append(row)
    return rows
