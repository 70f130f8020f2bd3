"""The checks of one measure: its sums and averages against the measurements, the plan, and each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from hushcube.bundle.checks.face import count_wrong, differ, report
from hushcube.bundle.checks.files import Opened
from hushcube.bundle.checks.sums import add_up, add_up_levels, tolerance
from hushcube.bundle.checks.tables import Block, FaceTables
from hushcube.bundle.checks.verdict import Findings
from hushcube.bundle.part import RecoveredTables
from hushcube.bundle.ratio import sum_errors
from hushcube.bundle.tables import Numbers, std_errors
from hushcube.faces.value import UNBIASED
from hushcube.model.arrays import Floats
from hushcube.model.form import Form
from hushcube.model.workload import Quantity
from hushcube.progress import Progress


class MeasureChecks:
    """One measure's findings; `errors` and `measurements` are shared by all quantities."""

    def __init__(
        self,
        opened: Opened,
        name: str,
        recovered: Mapping[str, RecoveredTables] | None,
        shared: tuple[Findings, Findings],
        progress: Progress,
    ) -> None:
        self._errors, self._measurements = shared
        self._plan, self._progress = opened.plan, progress
        self._measure = opened.plan.schema.measure(name)
        self._sum, self._average = opened.plan.measured[name], Quantity("avg", name)
        quantities = [self._sum, *(q for q in opened.plan.asked if q == self._average)]
        self._numbers = None if recovered is None else Numbers(self._plan, recovered, quantities)
        self._tables = FaceTables(opened, UNBIASED, Findings("labels", "are looked at with the counts"), name)
        self._designs = self._plan.count, self._plan.designs[name]
        self._cells = Findings(f"{self._sum}: cells", "every cell is finite")
        self._sums = Findings(f"{self._sum}: sums", "every roll-up of a table equals the cell of every other")

    def run(self) -> list[Findings]:
        """All checks of the measure."""
        agrees = all(design.is_consistent for design in self._designs)
        if agrees and self._plan.schema.is_nested:
            add_up_levels(self._tables, self._levels, self._sums)
        elif agrees:
            add_up(self._tables, self._levels, self._sums, exact=False)
        else:
            for order in range(len(self._tables.family.levels)):
                for _ in self._levels(order):
                    pass
        for form in self._plan.workload.forms:
            self._check_form(form, agrees=agrees)
        return [self._cells, *([self._sums] if agrees else [])]

    def _levels(self, order: int) -> Iterator[Block]:
        for block in self._tables.level(order):
            self._check_block(block)
            self._progress(str(self._sum), min(self._cells.checked / float(self._tables.family.cells.sum()), 1.0))
            yield block

    def _check_block(self, block: Block) -> None:
        rows, shape, values, tables = block.rows, block.shape, block.values, self._tables
        self._cells.checked += values.size
        report(self._cells, tables, rows, ~np.isfinite(values), values, None, "which is no number")
        predicted = sum_errors(self._measure, *(std_errors(design, rows, shape) for design in self._designs))
        self._errors.checked += len(rows)
        wrong = differ(block.std_errors, predicted)
        told = f"the standard error of {self._sum}; the plan predicts"
        report(self._errors, tables, rows, wrong, block.std_errors, predicted, told)
        if self._numbers is None:
            return
        expected = self._numbers.tables(rows, shape)
        self._measurements.checked += len(rows)
        wrong = differ(values, expected[self._sum][0], tables.noise)
        told = f"the {self._sum}, but the measurements give"
        report(self._measurements, tables, rows, wrong, values, expected[self._sum][0], told)
        for found, own in zip(block.averages, expected.get(self._average, ()), strict=True):
            told = f"the {self._average} or an end of its interval, but the measurements give"
            report(self._measurements, tables, rows, self._apart(found, own), found, own, told)

    def _apart(self, found: Floats, expected: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Where averages are not the same, or only one of them is known."""
        allowed = tolerance(np.nan_to_num(expected), noise=self._tables.noise)
        with np.errstate(invalid="ignore"):
            near = np.abs(found - expected) <= allowed.reshape(-1, *[1] * (expected.ndim - 1))
        return ~(near | (np.isnan(found) & np.isnan(expected)))

    def _check_form(self, form: Form, *, agrees: bool) -> None:
        found = self._tables.form(form)
        if found is None:
            return
        place = self._tables.place(form.word)
        self._cells.checked += found.values.size
        count_wrong(self._cells, ~np.isfinite(found.values), f"{place}: {{}} sums are no numbers")
        deviations = [np.sqrt(design.errors.form_variances(form, exact=True)) for design in self._designs]
        predicted = sum_errors(self._measure, *deviations).reshape(form.shape)
        self._errors.checked += 1
        problem = f"{place}: {{}} standard errors of {self._sum} are not the plan's"
        count_wrong(self._errors, differ(found.std_errors[0], predicted), problem)
        if self._numbers is not None:
            expected = self._numbers.form(form)
            self._measurements.checked += 1
            own = expected[self._sum][0].reshape(form.shape)
            problem = f"{place}: {{}} numbers are not what the measurements give"
            count_wrong(self._measurements, differ(found.values[0], own, self._tables.noise), problem)
            for shown, wanted in zip(found.averages, expected.get(self._average, ()), strict=True):
                count_wrong(self._measurements, self._apart(shown, wanted.reshape(1, *form.shape)), problem)
        carrier = self._tables.table(form.marginal) if agrees else None
        if carrier is not None:
            with np.errstate(invalid="ignore", over="ignore"):
                summed = form.evaluate(carrier).reshape(form.shape)
                allowed = max(float(tolerance(x[None], noise=self._tables.noise)[0]) for x in (carrier, summed))
                wrong = ~(np.abs(found.values[0] - summed) <= allowed)
            self._sums.checked += 1
            count_wrong(self._sums, wrong, f"{place}: {{}} numbers are not the sums of the cells")
