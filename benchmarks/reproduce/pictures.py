"""Charts: lines over one axis, in panels. Colours are those of `hushcube plan --chart`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import altair as alt

from hushcube.verbs.charting import COLOURS, SHAPES, round_numbers

BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK, GREY = COLOURS
DASHED = "dashed"
Looks = Mapping[str, tuple[str, str]]
"""The colour of each line, and whether it is `solid` or `dashed`; the points of dashed lines are hollow."""
_ROOM = 1.15


def families(names: Iterable[str], suffix: str, others: Iterable[str] = ()) -> dict[str, tuple[str, str]]:
    """A colour for each method: with the suffix solid, without dashed; other methods are black and grey.

    >>> families(["Q", "Q+"], "+", ["covering"])
    {'Q': ('#0072B2', 'dashed'), 'Q+': ('#0072B2', 'solid'), 'covering': ('#000000', 'solid')}
    """
    names = list(names)
    stems = list(dict.fromkeys(name.removesuffix(suffix) for name in names))
    colours = dict(zip(stems, (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY), strict=False))
    pairs = {n: (colours[n.removesuffix(suffix)], DASHED if n + suffix in names else "solid") for n in names}
    return pairs | dict(zip(others, ((BLACK, "solid"), (GREY, "solid"), (BLACK, DASHED), (GREY, DASHED)), strict=False))


def lines(
    rows: Sequence[dict[str, Any]],
    *,
    x: str,
    y: str,
    line: str = "method",
    looks: Looks | None = None,
    panel: str | None = None,
    columns: int = 3,
    log_x: bool = False,
    log_y: bool = True,
    x_title: str = "",
    y_title: str = "",
    title: str = "",
    size: tuple[int, int] = (250, 210),
) -> Any:
    """One line for each value of `line`, in a panel for each value of `panel`.

    An x that is a word has its own place on the axis, in the order of the rows.
    """
    order = [
        name for name in looks or dict.fromkeys(row[line] for row in rows) if any(row[line] == name for row in rows)
    ]
    looks = looks or dict(zip(order, ((colour, "solid") for colour in COLOURS * 2), strict=False))
    colour = alt.Scale(domain=order, range=[looks[name][0] for name in order])
    shape = alt.Scale(domain=order, range=[SHAPES[i % len(SHAPES)] for i in range(len(order))])
    dash = alt.Scale(domain=order, range=[[4, 2] if looks[name][1] == DASHED else [1, 0] for name in order])
    fill = alt.Scale(domain=order, range=["white" if looks[name][1] == DASHED else looks[name][0] for name in order])
    legend = alt.Legend(title=None, labelLimit=320, symbolSize=60)

    def one(own: Sequence[dict[str, Any]], heading: str | None) -> Any:
        base = alt.Chart({"values": [{line: row[line], "x": row[x], "y": row[y]} for row in own]}).encode(
            x=_axis(alt.X, "x", own, x, x_title or x, log=log_x),
            y=_axis(alt.Y, "y", own, y, y_title or y, log=log_y),
        )
        drawn = base.mark_line(strokeWidth=1.5).encode(
            stroke=alt.Stroke(f"{line}:N", scale=colour, legend=legend),
            strokeDash=alt.StrokeDash(f"{line}:N", scale=dash, legend=None),
        )
        marks = base.mark_point(size=36, opacity=1, strokeWidth=1.5).encode(
            stroke=alt.Stroke(f"{line}:N", scale=colour, legend=legend),
            fill=alt.Fill(f"{line}:N", scale=fill, legend=legend),
            shape=alt.Shape(f"{line}:N", scale=shape, legend=legend),
        )
        titled = {} if heading is None else {"title": alt.Title(heading, anchor="start", fontSize=12)}
        return alt.layer(drawn, marks).properties(width=size[0], height=size[1], **titled)

    if panel is None:
        both = one(rows, None)
    else:
        groups = {key: [row for row in rows if row[panel] == key] for key in dict.fromkeys(row[panel] for row in rows)}
        both = alt.concat(*(one(own, str(key)) for key, own in groups.items()), columns=min(columns, len(groups)))
    return (
        both.properties(title=alt.Title(title, anchor="start", offset=12))
        .configure(aria=False)  # a third of the file
        .configure_view(stroke=None)
        .configure_axis(gridColor="#e4e4e4", domainColor="#888888", tickColor="#888888", titleFontWeight="normal")
    )


def _axis(channel: Any, name: str, rows: Sequence[dict[str, Any]], field: str, title: str, *, log: bool) -> Any:
    values = [row[field] for row in rows]
    if any(isinstance(value, str) for value in values):
        places = list(dict.fromkeys(values))
        return channel(f"{name}:N", title=title, sort=places, axis=alt.Axis(labelAngle=0, labelLimit=90))
    if not log:
        whole = all(isinstance(value, int) for value in values)
        axis = alt.Axis(values=sorted(set(values)), format="d") if whole and name == "x" else alt.Axis()
        return channel(f"{name}:Q", title=title, axis=axis, scale=alt.Scale(zero=name == "y", nice=name == "y"))
    low, high = min(values) / _ROOM, max(values) * _ROOM
    own = sorted(set(values))
    ticks = own if name == "x" and len(own) <= 6 else round_numbers(low, high)
    axis = alt.Axis(values=ticks[:: max(1, len(ticks) // 7)], format="~g")
    return channel(f"{name}:Q", title=title, axis=axis, scale=alt.Scale(type="log", domain=[low, high], nice=False))
