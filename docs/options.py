"""Writes the tables of options in the documentation from the classes that own the options: `make options`.

A table stands between `<!-- options of NAME: written by docs/options.py -->` and `<!-- end of options -->`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from hushcube.cli.command import in_digits
from hushcube.faces.value import faces
from hushcube.options import Configured
from hushcube.strategies import ADAPTIVE, REGISTRY
from hushcube.strategies.selective import Selective

HERE = Path(__file__).parent
BLOCK = re.compile(
    r"(<!-- options of (?P<name>[\w ]+): written by docs/options\.py -->\n).*?(<!-- end of options -->)", re.DOTALL
)
OWNERS: dict[str, Iterable[Configured]] = {
    "strategies": [*REGISTRY.values(), Selective()],
    "adaptive methods": ADAPTIVE.values(),
    "faces": faces().values(),
}


def table(owners: Iterable[Configured]) -> str:
    """One row for each option, with all that have it."""
    having: dict[tuple[str, str, str, str], list[str]] = {}
    for one in owners:
        for own in one.options():
            takes = ", ".join(f"`{word}`" for word in own.takes.split("|"))
            default = "" if own.default is None else f"`{in_digits(own.default)}`"
            having.setdefault((own.word, takes, default, own.says), []).append(f"`{one.head}`")
    rows = ["| option | of | takes | unless given | |", "|---|---|---|---|---|"]
    for (word, takes, default, says), heads in having.items():
        rows.append(f"| `{word}` | {', '.join(heads)} | {takes} | {default} | {says} |")
    return "\n".join(rows) + "\n"


def rewritten(page: str) -> str:
    """A page with its tables as they should be."""
    return BLOCK.sub(lambda found: f"{found[1]}\n{table(OWNERS[found['name']])}\n{found[3]}", page)


if __name__ == "__main__":
    for path in HERE.glob("*.md"):
        text = path.read_text(encoding="utf-8")
        if (new := rewritten(text)) != text:
            path.write_text(new, encoding="utf-8")
