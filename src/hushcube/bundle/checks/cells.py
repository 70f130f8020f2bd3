"""The checks of the cells of one quantity: the counts of a face, or the sums and averages of a measure.

Every cell is held against the face's promise, the measurements, the plan and the people. All tables are read once,
largest sets first where roll-ups are compared, and every block goes through all checks. Forms and public facts follow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushcube.bundle.checks.files import Opened
from hushcube.bundle.checks.sums import add_up, add_up_levels, tolerance
from hushcube.bundle.checks.tables import Block, FaceTables
from hushcube.bundle.checks.verdict import Check
from hushcube.bundle.folder import face_columns, read_people
from hushcube.bundle.manifest import PEOPLE
from hushcube.bundle.part import RecoveredTables
from hushcube.bundle.tables import ESTIMATED, Numbers, Rows, Values, quality_classes
from hushcube.designs import SelectedDesign
from hushcube.errors import BundleError
from hushcube.faces.cell_errors import CellErrors
from hushcube.faces.people import count
from hushcube.faces.value import HALF_WIDTH, UNBIASED, published_promises
from hushcube.model.arrays import Bools, Floats, Ints, Marginal
from hushcube.model.facts import Facts
from hushcube.model.form import Form
from hushcube.model.quality import QUALITY_WORDS, Quality
from hushcube.model.queries import QueryTable
from hushcube.model.schema import COUNT
from hushcube.model.workload import Quantity
from hushcube.progress import Progress
from hushcube.text import visible

Codes = NDArray[np.integer]
Words = NDArray[np.object_]

_RECOMPUTED: Final = 1e-9
"""Of the largest value: how far numbers may be from the same computation done again, on another machine perhaps."""


@dataclass(frozen=True)
class Shared:
    """What the checks of all faces and measures share."""

    opened: Opened
    recovered: Mapping[str, Values]
    """What the measurements of each part give, as far as they can be read."""
    measurements: Check
    errors: Check
    labels: Check
    flags: Check
    progress: Progress


class CellChecks:
    """The checks of one face of the counts, or of a measure, whose one face is the unbiased one."""

    def __init__(self, shared: Shared, face: str, part: str = COUNT) -> None:
        opened, plan = shared.opened, shared.opened.plan
        self._shared, self._plan, self._place = shared, plan, opened.places.get(face, "")
        self._quantity, self._average = plan.measured[part], Quantity("avg", part)
        is_count = part == COUNT
        self._name = face if is_count else str(self._quantity)
        self._of_measure = "" if is_count else f" of {self._quantity}"
        promised = published_promises().get(face)
        self._exact = promised is not None and promised.whole
        self._nonnegative = promised is not None and promised.nonnegative
        self._agrees = face != UNBIASED or all(plan.designs[name].is_consistent for name in (COUNT, part))
        self._noun = visible(plan.schema.unit_noun)
        self._facts = opened.facts.get(face, Facts.none(plan.schema))
        labels = shared.labels if is_count else Check("labels", "are looked at with the counts")
        self._tables = FaceTables(opened, face, labels, part)
        self._is_measured = face == UNBIASED and shared.recovered.keys() >= {COUNT, part}
        sources = shared.recovered if self._is_measured else {}
        self._numbers = Numbers(plan, sources, [self._quantity, *(q for q in plan.asked if q == self._average)])
        promise = "is finite" + ", none is negative" * self._nonnegative + ", all are whole" * self._exact
        self._cells = Check(f"{self._name}: cells", f"every cell {promise}")
        self._sums = Check(f"{self._name}: sums", "every roll-up of a table equals the cell of every other")
        forms = Check(f"{self._name}: forms", "ranges and queries are sums of the cells")
        self._forms = forms if is_count else self._sums
        self._people = Check(f"{self._name}: people", f"every table is the count of the synthetic {self._noun}")
        self._known = Check(f"{self._name}: facts", "the public facts hold")
        self._estimates = Check(f"{self._name}: estimates", "estimated errors are those that the tables give")
        self._is_estimated = is_count and face in opened.estimated
        self._estimated = self._recomputed(face) if self._is_estimated else None
        self._codes = self._read_people() if self._exact else None

    def run(self) -> list[Check]:
        """All checks."""
        forms = self._plan.workload.forms
        if self._agrees and self._plan.schema.is_nested:
            add_up_levels(self._tables, self._levels, self._sums)
        elif self._agrees:
            add_up(self._tables, self._levels, self._sums, exact=self._exact)
        else:
            for order in range(len(self._tables.family.levels)):
                for _ in self._levels(order):
                    pass
        for form in forms:
            self._check_form(form)
        self._check_facts()
        has_forms = self._agrees and bool(forms) and self._forms is not self._sums
        wanted = (True, self._agrees, has_forms, self._exact, bool(self._facts), self._is_estimated)
        checks = (self._cells, self._sums, self._forms, self._people, self._known, self._estimates)
        return [check for check, is_wanted in zip(checks, wanted, strict=True) if is_wanted]

    def _levels(self, order: int) -> Iterator[Block]:
        """The tables of some number of attributes; each has gone through all checks of single tables."""
        for block in self._tables.level(order):
            self._check_block(block)
            done = self._cells.checked / float(self._tables.family.cells.sum())
            self._shared.progress(self._name, min(done, 1.0))
            yield block

    def _check_block(self, block: Block) -> None:
        rows, shape, values = block.rows, block.shape, block.values
        wrong = ~np.isfinite(values)
        if self._nonnegative:
            wrong |= values < 0
        if self._exact:
            wrong |= values != np.rint(values)
        self._cells.checked += values.size
        negative = "which is negative or not a number" if self._nonnegative else "which is not a number"
        told = f"which is not a whole number of {self._noun}" if self._exact else negative
        self._report(self._cells, rows, wrong, values, told)
        expected = self._numbers.tables(rows, shape)
        recovered, predicted = expected[self._quantity]
        wrong = differ(block.std_errors, predicted)
        self._shared.errors.checked += len(rows)
        told = f"the standard error{self._of_measure}; the plan predicts"
        self._report(self._shared.errors, rows, wrong, block.std_errors, told, predicted)
        if self._is_measured:
            measurements = self._shared.measurements
            measurements.checked += len(rows)
            told = "but the measurements give"
            own = f"the {self._quantity}, " if self._of_measure else ""
            wrong = differ(values, recovered, self._tables.noise)
            self._report(measurements, rows, wrong, values, f"{own}{told}", recovered)
            for found, average in zip(block.averages, expected.get(self._average, ()), strict=True):
                own = f"the {self._average} or an end of its interval, "
                self._report(measurements, rows, self._apart(found, average), found, f"{own}{told}", average)
        for what, wrong, words, due in self._wrong_flags(block):
            self._report(self._shared.flags, rows, wrong, words, f"the flag of the {what}; its numbers give", due)
        if self._estimated is not None:
            estimated = self._estimated.tables(rows, shape)
            self._estimates.checked += len(rows)
            for found in block.estimated:
                told = "the estimated error; the tables and the measurements give"
                self._report(self._estimates, rows, differ(found, estimated), found, told, estimated)
        if self._codes is not None:
            counted = count(self._codes, self._plan.schema.sizes, rows, shape).astype(np.float64)
            self._people.checked += len(rows)
            self._report(self._people, rows, values != counted, values, f"but the {self._noun} are", counted)

    def _wrong_flags(self, block: Block) -> Iterator[tuple[Quantity, Bools, Words, Words]]:
        """Of each quantity where a flag is not that of the numbers beside it, the words found and those expected.

        At a threshold, to rounding, both classes are right.
        """
        schema, quality = self._plan.schema, self._plan.schema.quality
        columns: dict[Quantity, Sequence[Floats]] = {self._quantity: (block.values, block.std_errors)}
        columns |= {self._average: block.averages} if block.averages else {}
        for (quantity, own), found in zip(columns.items(), block.flags, strict=bool(block.flags)):
            self._shared.flags.checked += len(block.rows)
            least, most = (
                quality_classes(schema, quantity, own, Quality(caution * quality.caution, caution * quality.unreliable))
                for caution in (1 + _RECOMPUTED, 1 - _RECOMPUTED)
            )
            words = np.array([*QUALITY_WORDS, "another word"], dtype=object)
            yield quantity, (found < least) | (found > most), words[found], words[least]

    def _apart(self, found: Floats, expected: Floats) -> Bools:
        """Where averages are not the same, or only one of them is known."""
        allowed = tolerance(np.nan_to_num(expected), noise=self._tables.noise)
        with np.errstate(invalid="ignore"):
            near = np.abs(found - expected) <= allowed.reshape(-1, *[1] * (expected.ndim - 1))
        return ~(near | (np.isnan(found) & np.isnan(expected)))

    def _report(
        self,
        check: Check,
        rows: Rows,
        wrong: Bools,
        found: Floats | Words,
        words: str,
        wanted: Floats | Words | None = None,
    ) -> None:
        """One problem for each table with wrong cells: the first of them, and how many more there are."""
        flat = wrong.reshape(len(rows), -1)
        for k in np.flatnonzero(flat.any(axis=1)).tolist():
            marginal: Marginal = tuple(rows[k].tolist())
            at = tuple(np.argwhere(wrong[k])[0].tolist())
            instead = "" if wanted is None else f" {_shown(wanted[k][at])}"
            more = f" (and {int(flat[k].sum()) - 1:,} other cells)" if flat[k].sum() > 1 else ""
            place, cell = self._tables.place(marginal), self._tables.cell(marginal, at)
            check.add(f"{place}: {cell} is {_shown(found[k][at])}, {words}{instead}{more}")

    def _check_form(self, form: Form) -> None:
        block = self._tables.form(form)
        if block is None:
            return
        values, noise = block.values[0], self._tables.noise

        def report(check: Check, wrong: Bools, problem: str) -> None:
            if wrong.any():
                check.add(f"{self._tables.place(form.word)}: {int(wrong.sum()):,} {problem}")

        self._cells.checked += values.size
        report(self._cells, ~np.isfinite(values), "answers are no numbers")
        for what, wrong, _, _ in self._wrong_flags(block):
            report(self._shared.flags, wrong[0], f"flags of {what} are not those of its numbers")
        numbers = self._numbers.form(form)
        expected = {quantity: [own.reshape(form.shape) for own in told] for quantity, told in numbers.items()}
        recovered, predicted = expected[self._quantity]
        self._shared.errors.checked += 1
        problem = f"standard errors{self._of_measure} are not the plan's"
        report(self._shared.errors, differ(block.std_errors[0], predicted), problem)
        if self._is_measured:
            self._shared.measurements.checked += 1
            averages = zip(block.averages, expected.get(self._average, ()), strict=True)
            apart = (self._apart(found, average[None])[0] for found, average in averages)
            for wrong in (differ(values, recovered, noise), *apart):
                report(self._shared.measurements, wrong, "answers are not what the measurements give")
        carrier = self._tables.table(form.marginal) if self._agrees else None
        if carrier is None:
            return
        with np.errstate(invalid="ignore", over="ignore"):
            summed = form.evaluate(carrier).reshape(form.shape)
            exact = self._exact and not isinstance(form, QueryTable)  # queries may have weights that are not whole
            allowed = max(float(tolerance(x[None], noise=noise, exact=exact)[0]) for x in (carrier, summed))
            unequal = ~(np.abs(values - summed) <= allowed)
        self._forms.checked += 1
        word = self._tables.schema.describe(form.marginal)
        report(self._forms, unequal, f"answers are not the sums of the cells of {word}")

    def _recomputed(self, face: str) -> CellErrors | None:
        """The estimated errors of the face, once more, from its tables as they are and the measurement."""
        opened, design = self._shared.opened, self._plan.count
        source = self._shared.recovered.get(COUNT)
        if not isinstance(design, SelectedDesign):
            self._estimates.add(f"{self._place}: the plan has no last look, which estimated errors need")
            return None
        if not isinstance(source, RecoveredTables):
            return None  # it cannot be read, which is reported
        values, _ = face_columns(opened.folder, self._plan, opened.entries[face], estimated=True)
        try:
            found = CellErrors.of(design, source.measurement(), values, self._facts)
        except (BundleError, KeyError, ValueError):
            return None  # a table cannot be read, which is reported
        told = opened.estimated[face]
        expected = {"half_width_95": HALF_WIDTH, "factor": found.common}
        if not isinstance(told, dict) or told.keys() != expected.keys() or not _same_numbers(told, expected):
            self._estimates.add(f"manifest.json: `{ESTIMATED}` of the face {face} is not what its tables give")
        return found

    def _read_people(self) -> Codes | None:
        name = f"{self._place}/{PEOPLE}"
        try:
            return read_people(self._shared.opened.folder, name, self._plan.schema)
        except BundleError as problem:
            if name not in self._shared.opened.broken:
                self._people.add(f"{name}: {problem.problem}")
            return None

    def _check_facts(self) -> None:
        """In the people where there are some, exactly; otherwise in every table that shows them."""
        schema, facts = self._plan.schema, self._facts
        for marginal, known in facts.by_marginal.items():
            allowed = 0.0
            if self._codes is not None:
                place, found = f"{self._place}/{PEOPLE}", count_cells(self._codes, schema.sizes, marginal, known.cells)
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
                self._known.add(f"{place}: {found[k]:.10g} {self._noun}, against the public fact: {sentence}")


def _shown(found: Any) -> str:
    return repr(found) if isinstance(found, str) else f"{found:.10g}"


def _same_numbers(found: Mapping[str, Any], expected: Mapping[str, float]) -> bool:
    """Whether all of them are numbers, and the same but for rounding."""
    return all(
        type(found[name]) is float and abs(found[name] - due) <= _RECOMPUTED * abs(due)
        for name, due in expected.items()
    )


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


def differ(found: Floats, expected: Floats, noise: float = 0.0) -> Bools:
    """Where numbers are not the same up to rounding, measured by the largest of them and the noise they come from."""
    with np.errstate(invalid="ignore"):
        largest = np.abs(expected).max(initial=noise)
        wrong: Bools = ~(np.abs(found - expected) <= _RECOMPUTED * largest)
    return wrong
