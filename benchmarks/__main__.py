"""Run every benchmark and write the figures into docs/benchmarks.md: `make bench`.

    python -m benchmarks [NAME ...]

A name is that of a file, such as `scale` or `rows`: only these are run, and the other figures stay as they are.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # no threads but hushcube's own

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
    rows,
    scale,
    server,
    startup,
)

SECTIONS = {
    "Start-up": startup.main,
    "Exact noise": noise.main,
    "Counting": counting.main,
    "Many rows": rows.main,
    "Many marginals": scale.main,
    "The whole cube": cube10.main,
    "Planning": planning.main,
    "Choosing cuboids": cuboids.main,
    "Ranges": ranges.main,
    "Linear programs": programs.main,
    "Non-negative tables": nonnegative.main,
    "Faster fits": fits.main,
    "Small relative errors": ireduct.main,
    "The server": server.main,
}
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


def main(names=()):
    """Run the benchmarks of these names, or all of them."""
    head, _, old = PAGE.read_text(encoding="utf-8").partition(MARK)
    sections = {title: f"## {title}\n{text}" for title, text in re.findall(r"^## (.*)\n((?:(?!## ).*\n)*)", old, re.M)}
    for title, run in SECTIONS.items():
        if not names or run.__module__.rpartition(".")[2] in names:
            print(f"== {title}", flush=True)
            sections[title] = f"## {title}\n\n{(run.__globals__['__doc__'] or '').strip()}\n\n{table(run())}\n\n"
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}."
    text = "".join(sections[title] for title in SECTIONS if title in sections)
    PAGE.write_text(f"{head}{MARK}\n\n{machine}\n\n{text.rstrip()}\n", encoding="utf-8")
    print(f"wrote {PAGE.name}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = sorted(run.__module__.rpartition(".")[2] for run in SECTIONS.values())
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(known)}")
    asked = parser.parse_args().names
    if unknown := set(asked) - set(known):
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}")
    main(asked)
