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


class Findings:
    """A check under way.

    >>> findings = Findings("files", "the files are those of the manifest")
    >>> findings.add("a.txt: is missing")
    >>> findings.check()
    Check(name='files', what='the files are those of the manifest', problems=('a.txt: is missing',), checked=0)
    """

    def __init__(self, name: str, what: str) -> None:
        self.name, self.what, self.checked = name, what, 0
        self._listed: list[str] = []
        self._more = 0

    def add(self, problem: str) -> None:
        """Note a problem; a long list is cut, and its rest counted."""
        if len(self._listed) < MOST:
            self._listed.append(problem)
        else:
            self._more += 1

    def __bool__(self) -> bool:
        return bool(self._listed)

    def check(self) -> Check:
        """The finished check."""
        rest = [f"... and {self._more:,} more"] * bool(self._more)
        return Check(self.name, self.what, (*self._listed, *rest), self.checked)
