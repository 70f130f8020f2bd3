"""What a verification found: for each check, how much was checked and what is wrong, in plain words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from hushcube.bundle.statement import Stamped
from hushcube.shown import Page

MOST: Final = 20  # how many problems of one check are written out


class _Lines:
    """A long list is cut, and its rest counted."""

    def __init__(self) -> None:
        self._listed: list[str] = []
        self._more = 0

    def add(self, line: str) -> None:
        if len(self._listed) < MOST:
            self._listed.append(line)
        else:
            self._more += 1

    @property
    def all(self) -> tuple[str, ...]:
        return (*self._listed, *[f"... and {self._more:,} more"] * bool(self._more))


@dataclass
class Check:
    """One check: it holds where it has no problems.

    >>> check = Check("files", "the files are those of the manifest")
    >>> check.add("a.txt: is missing")
    >>> check.remark("b.txt: is not part of the release")
    >>> check.holds, check.problems, check.remarks
    (False, ('a.txt: is missing',), ('b.txt: is not part of the release',))
    """

    name: str
    what: str
    checked: int = 0
    _problems: _Lines = field(default_factory=_Lines)
    _remarks: _Lines = field(default_factory=_Lines)

    def add(self, problem: str) -> None:
        """Note a problem."""
        self._problems.add(problem)

    def remark(self, remark: str) -> None:
        """Note something that is worth knowing and no problem."""
        self._remarks.add(remark)

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong."""
        return self._problems.all

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is worth knowing and no problem."""
        return self._remarks.all

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    @property
    def line(self) -> str:
        """What was checked, and whether it holds."""
        mark = "✗" if not self.holds else "✓" if self.checked else "–"
        return f"{mark} {self.name}: {self.what} ({self.checked:,} checked)"

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        told = {"name": self.name, "what": self.what, "holds": self.holds, "checked": self.checked}
        return told | {"problems": list(self.problems), "remarks": list(self.remarks)}


class Checked:
    """What verdicts about releases and about ledgers share."""

    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong anywhere."""
        return all(check.holds for check in self.checks)

    @property
    def lines(self) -> list[str]:
        """A line for each check, then every problem and remark."""
        told = [f"{check.name}: {line}" for check in self.checks for line in (*check.problems, *check.remarks)]
        return [check.line for check in self.checks] + told


@dataclass(frozen=True, repr=False)
class Verdict(Checked, Stamped):
    """All checks of one release."""

    checks: tuple[Check, ...]
    private: bool | None
    """False where the noise came from a seed; None where the manifest does not say."""

    def page(self) -> Page:
        """The lines of the checks, and what they come to."""
        but = "" if self.private else ", but it is NOT PRIVATE"
        end = f"Everything holds{but}." if self.holds else "The release does not hold what it promises."
        return Page((*self.lines, end))

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of `hushcube verify`."""
        return {"holds": self.holds, "checks": [check.to_dict() for check in self.checks]}

    def __repr__(self) -> str:
        wrong = [check.name for check in self.checks if not check.holds]
        told = f"does not hold: {', '.join(wrong)[:200]}" if wrong else "holds"
        return f"Verdict({len(self.checks):,} checks, {told})"
