"""The checks of one face: every cell against the face's promise, the measurements, the plan and the people.

All tables are read once, largest sets first where roll-ups are compared, and every block goes through all checks.
Forms and public facts follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hushcube.bundle.checks.files import Opened
from hushcube.bundle.checks.sums import add_up, add_up_levels, tolerance
from hushcube.bundle.checks.tables import Block, FaceTables
from hushcube.bundle.checks.verdict import Findings
from hushcube.bundle.manifest import people_file
from hushcube.bundle.part import RecoveredTables
from hushcube.bundle.published_face import read_people
from hushcube.bundle.tables import std_errors
from hushcube.errors import BundleError
from hushcube.faces.people import count
from hushcube.faces.value import UNBIASED, published_promises
from hushcube.model.arrays import Bools, Floats, Ints, Marginal
from hushcube.model.facts import Facts
from hushcube.model.queries import QueryTable
from hushcube.progress import Progress

Codes = NDArray[np.integer]

_RECOMPUTED: Final = 1e-9
"""Of the largest value: how far numbers may be from the same computation done again, on another machine perhaps."""


class FaceChecks:
    """One face's findings; `labels`, `errors` and `measurements` are shared by all faces."""

    def __init__(
        self,
        opened: Opened,
        face: str,
        recovered: RecoveredTables | None,
        shared: tuple[Findings, Findings, Findings],
        progress: Progress,
    ) -> None:
        self._labels, self._errors, self._measurements = shared
        self._opened, self._face, self._progress = opened, face, progress
        self._plan, self._place = opened.plan, opened.places.get(face, "")
        self._recovered = recovered if face == UNBIASED else None
        promised = published_promises().get(face)
        self._exact = promised is not None and promised.whole
        self._nonnegative = promised is not None and promised.nonnegative
        self._design = self._plan.count
        self._agrees = face != UNBIASED or self._design.is_consistent
        self._facts = opened.facts.get(face, Facts.none(self._plan.schema))
        self._tables = FaceTables(opened, face, self._labels)
        promise = "is finite" + ", none is negative" * self._nonnegative + ", all are whole" * self._exact
        self._cells = Findings(f"{face}: cells", f"every cell {promise}")
        self._sums = Findings(f"{face}: sums", "every roll-up of a table equals the cell of every other")
        self._forms = Findings(f"{face}: forms", "ranges and queries are sums of the cells")
        self._people = Findings(f"{face}: people", "every table is the count of the synthetic people")
        self._known = Findings(f"{face}: facts", "the public facts hold")
        self._codes = self._read_people() if self._exact else None

    def run(self) -> list[Findings]:
        """All checks of the face."""
        if self._agrees and self._plan.schema.is_nested:
            add_up_levels(self._tables, self._levels, self._sums)
        elif self._agrees:
            add_up(self._tables, self._levels, self._sums, exact=self._exact)
        else:
            for order in range(len(self._tables.family.levels)):
                for _ in self._levels(order):
                    pass
        self._check_forms()
        if self._facts:
            self._check_facts()
        wanted = (True, self._agrees, self._agrees and bool(self._plan.workload.forms), self._exact, bool(self._facts))
        findings = (self._cells, self._sums, self._forms, self._people, self._known)
        return [finding for finding, is_wanted in zip(findings, wanted, strict=True) if is_wanted]

    # ------------------------------------------------------------------------------------------------------ tables

    def _levels(self, order: int) -> Iterator[Block]:
        """The tables of some number of attributes; each has gone through all checks of single tables."""
        for block in self._tables.level(order):
            self._check_block(block)
            self._progress(self._face, min(self._cells.checked / float(self._tables.family.cells.sum()), 1.0))
            yield block

    def _check_block(self, block: Block) -> None:
        rows, shape, values = block.rows, block.shape, block.values
        wrong = ~np.isfinite(values)
        if self._nonnegative:
            wrong |= values < 0
        if self._exact:
            wrong |= values != np.rint(values)
        self._cells.checked += values.size
        report(self._cells, self._tables, rows, wrong, values, None, self._promise)
        predicted = std_errors(self._design, rows, shape)
        wrong = differ(block.std_errors, predicted)
        self._errors.checked += len(rows)
        report(
            self._errors,
            self._tables,
            rows,
            wrong,
            block.std_errors,
            predicted,
            "the standard error; the plan predicts",
        )
        if self._recovered is not None:
            expected = self._recovered.tables(rows, shape)
            self._measurements.checked += len(rows)
            told = "but the measurements give"
            wrong = differ(values, expected, self._tables.noise)
            report(self._measurements, self._tables, rows, wrong, values, expected, told)
        if self._codes is not None:
            counted = count(self._codes, self._plan.schema.sizes, rows, shape).astype(np.float64)
            self._people.checked += len(rows)
            report(self._people, self._tables, rows, values != counted, values, counted, "but the people are")

    @property
    def _promise(self) -> str:
        if self._exact:
            return "which is not a whole number of people"
        return "which is negative or not a number" if self._nonnegative else "which is not a number"

    # ------------------------------------------------------------------------------------------------ forms, facts

    def _check_forms(self) -> None:
        for form in self._plan.workload.forms:
            found = self._tables.form(form)
            if found is None:
                continue
            place = self._tables.place(form.word)
            values, errors = found.values[0], found.std_errors[0]
            self._cells.checked += values.size
            count_wrong(self._cells, ~np.isfinite(values), f"{place}: {{}} answers are no numbers")
            predicted = np.sqrt(self._design.errors.form_variances(form, exact=True)).reshape(form.shape)
            self._errors.checked += 1
            count_wrong(self._errors, differ(errors, predicted), f"{place}: {{}} standard errors are not the plan's")
            if self._recovered is not None:
                expected = self._recovered.form(form).reshape(form.shape)
                self._measurements.checked += 1
                problem = f"{place}: {{}} answers are not what the measurements give"
                count_wrong(self._measurements, differ(values, expected, self._tables.noise), problem)
            carrier = self._tables.table(form.marginal) if self._agrees else None
            if carrier is None:
                continue
            with np.errstate(invalid="ignore", over="ignore"):
                expected = form.evaluate(carrier).reshape(form.shape)
                exact = self._exact and not isinstance(form, QueryTable)  # queries may have weights that are not whole
                allowed = max(
                    float(tolerance(x[None], noise=self._tables.noise, exact=exact)[0]) for x in (carrier, expected)
                )
                wrong = ~(np.abs(values - expected) <= allowed)
            self._forms.checked += 1
            word = self._tables.schema.describe(form.marginal)
            count_wrong(self._forms, wrong, f"{place}: {{}} answers are not the sums of the cells of {word}")

    def _read_people(self) -> Codes | None:
        name = people_file(self._place)
        try:
            return read_people(self._opened.folder, name, self._plan.schema)
        except BundleError as problem:
            if name not in self._opened.broken:
                self._people.add(f"{name}: {problem.problem}")
            return None

    def _check_facts(self) -> None:
        """In the people where there are some, exactly; otherwise in every table that shows them."""
        schema, facts = self._plan.schema, self._facts
        for marginal, known in facts.by_marginal.items():
            allowed = 0.0
            if self._codes is not None:
                place, found = people_file(self._place), count_cells(self._codes, schema.sizes, marginal, known.cells)
            else:
                table = self._tables.table(marginal)
                if table is None:
                    continue
                place, found = f"{self._place}/tables", table[tuple(known.cells.T)].reshape(-1)
                both = np.append(table, known.counts.astype(np.float64))[None]
                allowed = float(tolerance(both, noise=self._tables.noise, exact=self._exact)[0])
            self._known.checked += len(known.ids)
            for k in np.flatnonzero(~(np.abs(found - known.counts) <= allowed)).tolist():
                sentence = facts.sentence(facts.facts[int(known.ids[k])])
                self._known.add(f"{place}: {found[k]:.10g} people, against the public fact: {sentence}")


def count_cells(codes: Codes, sizes: tuple[int, ...], marginal: Marginal, cells: Ints) -> Floats:
    """The people in some cells of a marginal, which may be too large to be counted whole.

    >>> count_cells(np.array([[0, 1], [0, 1], [1, 0]]), (2, 2), (0, 1), np.array([[0, 1], [1, 1]])).tolist()
    [2.0, 0.0]
    """
    keys = np.zeros(len(codes) + len(cells), np.int64)
    for axis, i in enumerate(marginal):
        keys = keys * sizes[i] + np.concatenate([codes[:, i], cells[:, axis]])
        keys = np.unique(keys, return_inverse=True)[1]  # numbers of the values seen so far: they never overflow
    counts = np.bincount(keys[: len(codes)], minlength=int(keys.max(initial=0)) + 1)
    return counts[keys[len(codes) :]].astype(np.float64)


def report(
    findings: Findings,
    tables: FaceTables,
    rows: NDArray[np.int32],
    wrong: Bools,
    found: Floats,
    expected: Floats | None,
    words: str,
) -> None:
    """One problem for each table with wrong cells: the first of them, and how many more there are."""
    flat = wrong.reshape(len(rows), -1)
    for k in np.flatnonzero(flat.any(axis=1)).tolist():
        marginal: Marginal = tuple(rows[k].tolist())
        at = tuple(np.argwhere(wrong[k])[0].tolist())
        instead = "" if expected is None else f" {expected[k][at]:.10g}"
        more = f" (and {int(flat[k].sum()) - 1:,} other cells)" if flat[k].sum() > 1 else ""
        cell = tables.cell(marginal, at)
        findings.add(f"{tables.place(marginal)}: {cell} is {found[k][at]:.10g}, {words}{instead}{more}")


def count_wrong(findings: Findings, wrong: Bools, problem: str) -> None:
    """One problem for a form with wrong answers."""
    if wrong.any():
        findings.add(problem.format(f"{int(wrong.sum()):,}"))


def differ(found: Floats, expected: Floats, noise: float = 0.0) -> Bools:
    """Where numbers are not the same up to rounding, measured by the largest of them and the noise they come from."""
    with np.errstate(invalid="ignore"):
        largest = np.abs(expected).max(initial=noise)
        wrong: Bools = ~(np.abs(found - expected) <= _RECOMPUTED * largest)
    return wrong
