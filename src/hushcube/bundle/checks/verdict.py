"""What a verification found: for each check, how much was checked and what is wrong, in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MOST: Final = 20
"""How many problems of one check are written out."""


@dataclass(frozen=True)
class Check:
    """One check: it holds where it has no problems."""

    name: str
    what: str
    problems: tuple[str, ...]
    checked: int
    remarks: tuple[str, ...] = ()
    """What is worth knowing and no problem."""

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


@dataclass(frozen=True)
class Verdict:
    """All checks of one release."""

    checks: tuple[Check, ...]
    private: bool | None
    """False where the noise came from a seed; None where the manifest does not say."""

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong anywhere."""
        return all(check.holds for check in self.checks)


class _Lines:
    """A long list is cut, and its rest counted."""

    def __init__(self) -> None:
        self.listed: list[str] = []
        self._more = 0

    def add(self, line: str) -> None:
        if len(self.listed) < MOST:
            self.listed.append(line)
        else:
            self._more += 1

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.listed, *[f"... and {self._more:,} more"] * bool(self._more))


class Findings:
    """A check under way.

    >>> findings = Findings("files", "the files are those of the manifest")
    >>> findings.add("a.txt: is missing")
    >>> findings.remark("b.txt: is not part of the release")
    >>> check = findings.check()
    >>> check.holds, check.problems, check.remarks
    (False, ('a.txt: is missing',), ('b.txt: is not part of the release',))
    """

    def __init__(self, name: str, what: str) -> None:
        self.name, self.what, self.checked = name, what, 0
        self._problems, self._remarks = _Lines(), _Lines()

    def add(self, problem: str) -> None:
        """Note a problem."""
        self._problems.add(problem)

    def remark(self, remark: str) -> None:
        """Note something that is worth knowing and no problem."""
        self._remarks.add(remark)

    def __bool__(self) -> bool:
        return bool(self._problems.listed)

    def check(self) -> Check:
        """The finished check."""
        return Check(self.name, self.what, self._problems.all, self.checked, self._remarks.all)
