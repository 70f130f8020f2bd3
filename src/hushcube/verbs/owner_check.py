"""The owner's check of a release: what was published against the exact numbers of the data. NOT private."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from hushcube.bundle.release import Release
from hushcube.durable import check_file, new_file
from hushcube.errors import BadInput
from hushcube.experiments.release_errors import CheckedPart, Tally, WorstCell, compare_release
from hushcube.faces.value import UNBIASED
from hushcube.model.arrays import Ints
from hushcube.private.engines import open_source
from hushcube.progress import Progress, silent
from hushcube.shown import Cell, Grid, Page, Remark, Shown, columns, number
from hushcube.text import csv_text
from hushcube.verbs.evaluating import WARNING, finite
from hushcube.verbs.releasing import open as open_release

if TYPE_CHECKING:
    from hushcube.private.engines import BadRows

CheckedBy = Literal["release", "dimension", "table"]
"""What a row of numbers is about: all tables, those of one number of attributes, or one table."""
_MORE: Final = "`rows()` has all of them"
_NUMBERS: Final = {
    "std_error": "standard error",
    "root_mean_square": "root mean square",
    "mean_error": "mean absolute error",
    "worst_cell": "largest error",
}
_FEW: Final = 20  # intervals, of which a low share may be chance
_LOW: Final = 0.8
_DOUBT: Final = (
    "far fewer intervals than 95% hold the truth: is this the data that was released, read under the same rule for bad "
    "rows?"
)


@dataclass(frozen=True, eq=False, repr=False)
class ReleaseCheck(Shown):
    """A release against the exact numbers of the data; NOT private."""

    release: Release
    rows_counted: int
    """Of the data, after the rows of each unit are bounded."""
    rows_left_out: int
    """More than a unit's rows that count."""
    bad_rows: int
    """Rows that count as missing, since they could not be read or did not fit."""
    tallies: tuple[Tally, ...]
    """Sums over the cells of every table, for each face and quantity."""
    worst: tuple[WorstCell, ...]
    """The cells of each face that are the most standard errors off."""

    def __repr__(self) -> str:
        return f"ReleaseCheck({self.release.schema.name!r}: {len(self.release):,} tables, {self._found}; NOT PRIVATE)"

    @property
    def coverage(self) -> float | None:
        """The share of all published 95% intervals that hold the truth; None where no unbiased numbers are compared."""
        own = [tally for tally in self.tallies if tally.has_intervals]
        known = sum(int(tally.compared.sum()) for tally in own)
        return sum(int(tally.covered.sum()) for tally in own) / known if known else None

    @property
    def _found(self) -> str:
        share = self.coverage
        return "errors alone" if share is None else f"{share:.1%} of the 95% intervals hold the truth"

    @cached_property
    def attributes(self) -> Ints:
        """How many attributes each table has."""
        workload = self.release.plan.workload
        return np.array([*map(len, workload.published), *(len(form.marginal) for form in workload.forms)])

    @property
    def caveat(self) -> str | None:
        """What the truth is not, where rows are bounded: which rows count is drawn anew for every count."""
        unit = self.release.schema.unit
        if unit is None:
            return None
        told = f"the truth is that after bounding, at most {unit.max_rows:,} rows of each {unit.column!r}: "
        if not self.rows_left_out:
            return told + "no unit has more"
        return told + (
            f"{self.rows_left_out:,} rows are left out, chosen at random anew. Errors here hold the difference between "
            "this choice and that of the release, so that intervals cover less often than 95%"
        )

    def parts(self, by: CheckedBy = "table") -> Iterator[CheckedPart]:
        """The errors and the coverage of every face and quantity: of all tables, by number of attributes, by table."""
        for tally in self.tallies:
            if by == "release":
                yield tally.part()
            elif by == "dimension":
                for k in np.unique(self.attributes).tolist():
                    yield tally.part(self.attributes == k, attributes=k)
            else:
                for at, (word, k) in enumerate(zip(self.release, self.attributes.tolist(), strict=True)):
                    yield tally.part(slice(at, at + 1), table=word, attributes=k)

    def rows(self, by: CheckedBy = "table") -> list[dict[str, Any]]:
        """The same as flat rows."""
        return [asdict(part) for part in self.parts(by)]

    def page(self, rows: int = 20, more: str = _MORE) -> Page:
        """Errors and coverage of all tables and by number of attributes, of the first tables, and the worst cells."""
        release, several = self.release, len(self.tallies) * len(self.release)
        every = [*self.parts("release"), *self.parts("dimension")]
        every.sort(key=lambda part: [(t.face, str(t.quantity)) for t in self.tallies].index((part.face, part.what)))
        told = f"{release.schema.shown_name}: {len(release):,} tables, {release.plan.privacy}"
        rest = [Remark(f"... and {several - rows:,} more tables: {more}")] if several > rows else []
        doubt = self.coverage is not None and self.coverage < _LOW and self._intervals >= _FEW
        return Page(
            (
                f"{told}; against {self.rows_counted:,} rows",
                *([] if self.caveat is None else [self.caveat]),
                *([f"{self.bad_rows:,} bad rows count as missing"] if self.bad_rows else []),
                self._grid("stated standard errors, measured errors, coverage of 95% intervals", every, "attributes"),
                self._grid("by table", list(islice(self.parts(), rows)), "table"),
                *rest,
                *([self._worst_cells()] if self.worst else []),
                self._found,
                *([_DOUBT] if doubt else []),
            )
        )

    @property
    def _intervals(self) -> int:
        return sum(int(tally.compared.sum()) for tally in self.tallies if tally.has_intervals)

    def _named(self) -> list[str]:
        """What tells the rows of a grid apart, beside their tables."""
        varied = {"face": {t.face for t in self.tallies}, "what": {str(t.quantity) for t in self.tallies}}
        return [name for name, kinds in varied.items() if len(kinds) > 1]

    def _grid(self, title: str, parts: Sequence[CheckedPart], first: str) -> Grid:
        named = self._named()
        heads = [*named, first, *(["tables"] if first == "attributes" else []), "cells"]
        lines: list[list[Cell]] = []
        for part in parts:
            fields = asdict(part)
            own = "all" if fields[first] is None else str(fields[first])
            counts = [f"{fields[name]:,}" for name in heads[len(named) + 1 :]]
            share = "" if part.coverage is None else f"{part.coverage:.1%}"
            lines.append(
                [*(fields[name] for name in named), own, *counts, *(_told(fields[n]) for n in _NUMBERS), share]
            )
        right = [*heads[len(named) + 1 :], *_NUMBERS.values(), "coverage"]
        return Grid(title, columns([*named, first], right), lines)

    def _worst_cells(self) -> Grid:
        named = self._named()
        heads = columns([*named, "table", "cell"], ["published", "truth", "error in standard errors"])
        lines: list[list[Cell]] = [
            [
                *(getattr(cell, name) for name in named),
                *(cell.table, ", ".join(cell.labels)),
                *map(_told, (cell.published, cell.truth, cell.standardised)),
            ]
            for cell in self.worst
        ]
        return Grid("the cells that are furthest off", heads, lines)

    def _whole_page(self) -> Page:
        return Page((WARNING,)) + self.page()

    def to_dict(self) -> dict[str, Any]:
        """For JSON: null where a number is unknown or infinite."""
        about = {
            "private": False,
            "name": self.release.schema.name,
            "guarantee": str(self.release.plan.privacy),
            "rows": self.rows_counted,
            "rows_left_out": self.rows_left_out,
            "bad_rows": self.bad_rows,
            "caveat": self.caveat,
            "coverage": self.coverage,
        }
        every: dict[str, Any] = {"results": "release", "dimensions": "dimension", "tables": "table"}
        rows = {name: finite(self.rows(by)) for name, by in every.items()}
        return {**about, **rows, "worst": finite([asdict(cell) for cell in self.worst])}

    def csv(self, by: CheckedBy = "table") -> str:
        """The rows as CSV; each says that it is not private."""
        rows = [{"private": "false", **row} for row in self.rows(by)]
        return csv_text([list(rows[0]), *(row.values() for row in rows)])  # type: ignore[list-item] # in that order

    def to_csv(self, out: str | Path, by: CheckedBy = "table") -> Path:
        """Write the rows as a new CSV file."""
        check_file(Path(out))
        text = self.csv(by)
        with new_file(Path(out)) as file:
            file.write_text(text, encoding="utf-8")
        return Path(out)

    def picture(self, path: Path, by: str = "table") -> bytes:  # noqa: ARG002 - there is one way to draw it
        """A page of charts in the form that a file's name asks for; `hushcube.chart` writes it."""
        from hushcube.verbs.charting import saved
        from hushcube.verbs.check_charts import draw_check

        return saved(draw_check(self), path)


def _told(value: float) -> str:
    return number(value) if math.isfinite(value) else "" if math.isnan(value) else "infinite"


def evaluate_release(
    release: Release | str | Path,
    data: object,
    *,
    query: str | None = None,
    engine: str | None = None,
    bad_rows: BadRows = "refuse",
    faces: str | Sequence[str] | None = None,
    worst: int = 10,
    progress: Progress | None = None,
) -> ReleaseCheck:
    """Compare a release with the exact numbers of its data, for the owner of the data: the result is NOT private.

    `data`, `query`, `engine` and `bad_rows` are those of `hushcube.release`. Of every table the errors are held against
    the stated standard errors, and the published 95% intervals against the truth; the `worst` cells are named. All
    `faces` are compared unless some are named; of others than the unbiased one there are errors of the counts alone.
    """
    if isinstance(worst, bool) or not isinstance(worst, int) or worst < 0:
        raise BadInput("worst", "is not a whole number of at least 0", "give such a number, for example 10")
    opened = release if isinstance(release, Release) else open_release(release)
    named = [UNBIASED, *opened.faces] if faces is None else [faces] if isinstance(faces, str) else list(faces)
    if not named:
        raise BadInput("faces", "none is given", "name at least one, or leave it out")
    for face in named:
        if face != UNBIASED:
            opened.face(face)
    source = open_source(data, query=query, engine=engine, bad_rows=bad_rows)
    counts, tallies, cells = compare_release(opened, source, list(dict.fromkeys(named)), worst, progress or silent)
    return ReleaseCheck(opened, counts.rows, counts.dropped, counts.bad, tuple(tallies), tuple(cells))
