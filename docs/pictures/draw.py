"""Draw the pictures of the documentation. Run by `make pictures`.

    demo.svg          what `hushcube demo` prints, for people who have not run it
    strategies.svg    the chart of `hushcube plan --chart` for all 1- to 3-way tables of Adult-8

The demo is a real release of the built-in Titanic data. Its noise is seeded, so that the picture can be drawn
again; such a release is not private, and these people's data is public anyway. The chart needs no data.
"""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT

from hushcube import compare, release
from hushcube.cli.demo import truth
from hushcube.cli.output import console, print_page
from hushcube.planning.pages import ranking_page
from hushcube.samples import ADULT8, TITANIC, titanic
from hushcube.verbs.charting import render

HERE = Path(__file__).parent
WITHOUT_FONTS = re.sub(r"@font-face \{\{.*?\}\}|<!--.*?-->", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
"""A picture fetches nothing from the network: the reader's own fixed-width font is used."""


def draw() -> str:
    """The picture as SVG text."""
    terminal = console(record=True, width=106, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    comparison = compare(TITANIC, "<=2-way", epsilon=1, neighbours="add-remove")
    terminal.print("$ hushcube demo", style="bold")
    terminal.print("1. Plan: the error of every table, before any data is touched.\n")
    print_page(ranking_page(comparison.parts["count"]), to=terminal)
    published = release(comparison.chosen, titanic(), seed=1912)
    terminal.print("\n2. Release: measured once, published in demo-release.")
    terminal.print("3. Show: every cell with its error bar, every table adding up.\n")
    table = published.table("class*survived")
    print_page(table.page(truth=truth(table)), to=terminal)
    svg: str = terminal.export_svg(title="hushcube", code_format=WITHOUT_FONTS, unique_id="hushcube")
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def draw_strategies(words: str = "1..3-way") -> bytes:
    """The chart of the strategies as SVG; `covering` searches at low effort."""
    comparison = compare(ADULT8, words, epsilon=1, neighbours="add-remove", effort="low")
    return render(comparison, Path("strategies.svg"))


if __name__ == "__main__":
    (HERE / "demo.svg").write_text(draw(), encoding="utf-8")
    (HERE / "strategies.svg").write_bytes(draw_strategies())
