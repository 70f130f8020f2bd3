"""Run every benchmark and write the figures into docs/benchmarks.md: `make bench`."""

from __future__ import annotations

import os
import platform
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # every figure is for one core

from benchmarks import (
    counting,
    cube10,
    cuboids,
    fits,
    ireduct,
    noise,
    nonnegative,
    planning,
    programs,
    ranges,
    scale,
    server,
    startup,
)

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
MARK = "<!-- figures: written by `make bench` -->"


def table(rows):
    """Rows of one kind as a Markdown table."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines = ["| " + " | ".join(c.replace("_", " ") for c in columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(show(row.get(c, "")) for c in columns) + " |" for row in rows]
    return "\n".join(lines)


def show(value):
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def main():
    sections = []
    for title, run in (
        ("Start-up", startup.main),
        ("Exact noise", noise.main),
        ("Counting", counting.main),
        ("Many marginals", scale.main),
        ("The whole cube", cube10.main),
        ("Planning", planning.main),
        ("Choosing cuboids", cuboids.main),
        ("Ranges", ranges.main),
        ("Linear programs", programs.main),
        ("Non-negative tables", nonnegative.main),
        ("Faster fits", fits.main),
        ("Small relative errors", ireduct.main),
        ("The server", server.main),
    ):
        print(f"== {title}", flush=True)
        sections.append(f"## {title}\n\n{(run.__globals__['__doc__'] or '').strip()}\n\n{table(run())}\n")
    head = PAGE.read_text(encoding="utf-8").split(MARK)[0]
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}."
    PAGE.write_text(head + MARK + f"\n\n{machine}\n\n" + "\n".join(sections), encoding="utf-8")
    print(f"wrote {PAGE.name}")


if __name__ == "__main__":
    main()
