"""Draw the pictures of the documentation. Run by `make pictures`.

    demo.svg          what `hushcube demo` prints, for people who have not run it
    strategies.svg    the chart of `hushcube plan --chart` for all 1- to 3-way tables of Adult-8

The demo is a real release of the built-in hospital. Its noise is seeded, so that the picture can be drawn again; such
a release is not private, and these people are made up anyway. The chart needs no data.
"""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT

from hushcube import Attribute, Schema, compare
from hushcube.cli.demo import show
from hushcube.shown import console
from hushcube.verbs.charting import render

SIZES = {
    "workclass": 9,
    "education": 16,
    "marital": 7,
    "occupation": 15,
    "relationship": 6,
    "race": 5,
    "sex": 2,
    "salary": 2,
}
ADULT8 = Schema(tuple(Attribute(name=name, codes=size) for name, size in SIZES.items()), "adult8")

HERE = Path(__file__).parent
WITHOUT_FONTS = re.sub(r"@font-face \{\{.*?\}\}|<!--.*?-->", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
"""A picture fetches nothing from the network: the reader's own fixed-width font is used."""


def draw(sample: str = "hospital") -> str:
    """The picture as SVG text."""
    terminal = console(record=True, width=112, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    terminal.print("$ hushcube demo", style="bold")
    show(sample, None, seed=1912, to=terminal)
    svg: str = terminal.export_svg(title="hushcube", code_format=WITHOUT_FONTS, unique_id="hushcube")
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def draw_strategies(words: str = "1..3-way") -> bytes:
    """The chart of the strategies as SVG; `covering` searches at low effort."""
    comparison = compare(ADULT8, words, epsilon=1, neighbours="add-remove", effort="low")
    return render(comparison, Path("strategies.svg"))


if __name__ == "__main__":
    (HERE / "demo.svg").write_text(draw(), encoding="utf-8")
    (HERE / "strategies.svg").write_bytes(draw_strategies())
