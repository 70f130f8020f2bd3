"""The page of what was reproduced: a section for each figure, and above them a table of all verdicts.

A section lies between marks, so that one figure can be measured again and the others stay as they are.
"""

from __future__ import annotations

import io
import os
import platform
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.__main__ import show, table
from benchmarks.reproduce.figure import Claim, Figure, Row

START, END = "<!-- reproduction: written by `make reproduce` -->", "<!-- end of reproduction -->"
_SECTION = re.compile(r"<!-- figure ([\w-]+) -->\n(.*?)<!-- end of figure -->\n", re.DOTALL)
_CELL = r"((?:[^|\\\n]|\\.)+)"
_CLAIM = re.compile(rf"^\| {_CELL} \| \*\*([^|*\n]+)\*\* \| {_CELL} \|$", re.MULTILINE)
INTRODUCTION = """\
# The papers' experiments, rerun

`make reproduce` reruns the experiments of the four papers behind hushcube and writes this page. It goes on where it was
stopped; `python -m benchmarks.reproduce ding-1 --fresh` measures one figure again. Every claim is judged by what was
measured, and no verdict is typed by hand:

| verdict | meaning |
|---|---|
| **confirmed** | what was measured lies where the paper has it, within 2.5% where it rounds percentages to 5% |
| **confirmed with a correction** | the effect is there, but its size or its extent is not the paper's |
| **not confirmed** | the effect is not there |

Methods have the papers' names; `covering`, `residual` and `ireduct` are [strategies](strategies.md) that came later or
elsewhere. All are compared at the same epsilon, but for `residual`, which needs Gaussian noise: it is shown at
rho = epsilon²/2, the rho that every epsilon-private mechanism meets, which is a weaker guarantee than epsilon.

Where noise and recovery are linear, errors do not depend on the counts: they were drawn on empty tables, and are those
on any data. Adaptive methods, whole-numbered tables and times are those on the data.

"""


class Page:
    """The sections of a page, by their figures' names."""

    def __init__(self, file: Path, pictures: Path, figures: Mapping[str, Sequence[Figure]]) -> None:
        self._file, self._pictures, self._figures = file, pictures, figures
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        self._sections = dict(_SECTION.findall(text))

    def add(self, figure: Figure, rows: Sequence[Row]) -> Sequence[Claim]:
        """Write the pictures of a figure, and its section into the page."""
        claims = figure.claims(rows)
        parts = [f"### {figure.title}", figure.about, *_remarks(figure, rows)]
        if claims:
            told = [
                {"claim": _escaped(c.says), "verdict": f"**{c.verdict}**", "measured": _escaped(c.measured)}
                for c in claims
            ]
            parts.append(table(told))
        parts += [self._picture(f"{figure.name}{part}", figure, chart) for part, chart in figure.pictures(rows).items()]
        parts += [f"{title}:\n\n{table(list(lines))}" for title, lines in figure.tables(rows) if lines]
        self._sections[figure.name] = "\n\n".join(parts) + "\n"
        self._write()
        return claims

    def _picture(self, name: str, figure: Figure, chart: Any) -> str:
        self._pictures.mkdir(parents=True, exist_ok=True)
        for form, target in (("svg", io.StringIO()), ("png", io.BytesIO())):
            chart.save(target, format=form)
            content = target.getvalue()
            path = self._pictures / f"{name}.{form}"
            path.write_bytes(content if isinstance(content, bytes) else f"{content}\n".encode())
        where = os.path.relpath(self._pictures, self._file.parent)
        return f"![{figure.title}]({where}/{name}.svg)"

    def _write(self) -> None:
        body, verdicts = [], []
        for paper, figures in self._figures.items():
            known = [figure for figure in figures if figure.name in self._sections]
            if known:
                body.append(f"## {paper}\n")
            for figure in known:
                section = self._sections[figure.name]
                body.append(f"<!-- figure {figure.name} -->\n{section}<!-- end of figure -->\n")
                link = f"[{figure.title.partition(':')[0]}](#{_anchor(figure.title)})"
                for says, verdict, told in _CLAIM.findall(section):
                    row = {"paper": paper.split(",")[0], "where": link, "claim": says}
                    verdicts.append({**row, "verdict": f"**{verdict}**", "measured": told})
        summary = "## Verdicts\n\n" + (table(verdicts) if verdicts else "Nothing is judged yet.") + "\n"
        text = f"{INTRODUCTION}{START}\n\n{summary}\n" + "\n".join(body) + f"\n{END}\n"
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(text, encoding="utf-8")


def _escaped(text: str) -> str:
    """For a cell of a table.

    >>> print(_escaped("at most |B| people"))
    at most \\|B\\| people
    """
    return text.replace("|", "\\|")


def _anchor(heading: str) -> str:
    """As GitHub links to a heading.

    >>> _anchor("Experiment I (figure 3): privacy")
    'experiment-i-figure-3-privacy'
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _remarks(figure: Figure, rows: Sequence[Row]) -> list[str]:
    """What readers must know about the data and the machine."""
    found = []
    if any(row.get("stand_in") for row in rows):
        found.append("**Measured on made-up people** with the sizes of the paper's data, which was not there.")
    busy = sum(row.get("busy", 0.0) for row in rows)
    machine = f" on {os.cpu_count()} cores ({platform.machine()}), one job at a time" if figure.alone else ""
    again = f"`python -m benchmarks.reproduce {figure.name}`"
    found.append(f"{len(rows):,} points in {show(busy)} processor seconds{machine}: {again}.")
    return found
