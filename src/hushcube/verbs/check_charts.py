"""A page of charts of the owner's check: a row for each face and quantity, with three panels.

How standardised errors are spread, beside the normal law; how many 95% intervals of each table hold the truth, or, of
other faces, how large the errors of each table are over the stated ones; and published numbers over exact ones.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hushcube.experiments.release_errors import EDGES, Tally
from hushcube.text import visible
from hushcube.verbs.charting import CELLS, COLOURS, STAMP, Rows, framed, logarithmic

if TYPE_CHECKING:
    from hushcube.verbs.owner_check import ReleaseCheck

_NAMED: Final = 16  # tables that have a line of their own
_DOTS: Final = 20_000  # tables that are drawn, of more of them evenly chosen ones
_SIDE: Final = 280
_GREY: Final = "#888888"


def draw_check(check: ReleaseCheck) -> Any:
    """All rows of panels under one title."""
    import altair as alt

    lines = [
        alt.hconcat(_spread(tally), _by_table(check, tally), _against_truth(tally), spacing=40)
        for tally in check.tallies
        if tally.compared.any()
    ]
    share = check.coverage
    told = "" if share is None else f", {share:.1%} of the 95% intervals hold the truth"
    subtitle = f"{visible(check.release.schema.shown_name)}, {check.release.plan.privacy}{told}"
    return framed(alt.vconcat(*lines, spacing=40), f"{STAMP}. A release against the exact numbers", subtitle)


def _spread(tally: Tally) -> Any:
    """Standardised errors; those beyond the ends stand at the ends."""
    import altair as alt

    density = tally.histogram / (tally.histogram.sum() * np.diff(EDGES))
    bars = [
        {"from": low, "to": high, "density": own}
        for low, high, own in zip(EDGES.tolist(), EDGES[1:].tolist(), density.tolist(), strict=False)
    ]
    z = np.arange(EDGES[0], EDGES[-1] + 0.01, 0.1)
    normal = [{"at": x, "density": math.exp(-x * x / 2) / math.sqrt(2 * math.pi)} for x in z.tolist()]
    face = "" if tally.has_intervals else f", {tally.face}"
    x = alt.X("from:Q", title="error in standard errors (line: normal law)", scale=alt.Scale(domain=[-6, 6]))
    histogram = alt.Chart({"values": bars}).mark_bar(color=COLOURS[0], opacity=0.6)
    histogram = histogram.encode(x=x, x2="to:Q", y=alt.Y("density:Q", title="density of cells"), y2=alt.datum(0))
    curve = alt.Chart({"values": normal}).mark_line(color="black", strokeWidth=1.2).encode(x="at:Q", y="density:Q")
    title = alt.Title(visible(f"{tally.quantity}{face}"), anchor="start")
    return alt.layer(histogram, curve).properties(width=_SIDE, height=_SIDE, title=title)


def _by_table(check: ReleaseCheck, tally: Tally) -> Any:
    """Coverage of each table; of faces without intervals, errors over those stated."""
    import altair as alt

    every = math.ceil(len(tally.cells) / _DOTS)
    rows: Rows = []
    for at, word in list(enumerate(check.release))[::every]:
        part = tally.part(slice(at, at + 1))
        stated = part.root_mean_square / part.std_error if part.std_error else None
        own = part.coverage if tally.has_intervals else stated
        if own is not None:
            rows.append({"table": visible(word), "cells": part.cells, "share": own})
    shares = [row["share"] for row in rows]
    if tally.has_intervals:
        title, line = "95% intervals that hold the truth", 0.95
        scale = alt.Scale(domain=[min([0.8, *shares]), 1.0], zero=False, nice=False, padding=6)
        axis = alt.Axis(format="~%", tickCount=5)
    else:
        title, line = "root mean square error over the stated one", 1.0
        scale, axis = alt.Scale(domain=[0, max([1.2, *shares])]), alt.Axis(tickCount=5)
    mark = alt.Chart({"values": [{"line": line}]}).mark_rule(color=_GREY, strokeDash=[4, 3])
    base = alt.Chart({"values": rows})
    if len(rows) <= _NAMED:
        side = alt.Axis(labelLimit=200, grid=True, domain=False, ticks=False)
        y = alt.Y("table:N", sort=[row["table"] for row in rows], title=None, axis=side)
        x = alt.X("share:Q", title=title, scale=scale, axis=axis)
        base, mark = base.encode(x=x, y=y, size=alt.value(48)), mark.encode(x="line:Q")
    else:
        x = alt.X("cells:Q", title=CELLS, **logarithmic([row["cells"] for row in rows], grid=False))
        y = alt.Y("share:Q", title=title, scale=scale, axis=axis)
        several = alt.Size("count()", title="tables", legend=alt.Legend(tickCount=4, offset=4))
        base, mark = base.encode(x=x, y=y, size=several), mark.encode(y="line:Q")
    dots = base.mark_point(filled=True, opacity=0.8, color=COLOURS[0])
    return alt.layer(mark, dots).properties(width=_SIDE, height=_SIDE)


def _against_truth(tally: Tally) -> Any:
    """Published over exact numbers, on axes that are linear near zero, where noise is, and logarithmic beyond."""
    import altair as alt

    pairs = np.concatenate(tally.sample)
    noise, ends = tally.part().std_error, (float(pairs.min()), float(pairs.max()))
    if noise > 0:
        scale, axis = alt.Scale(type="symlog", constant=noise), alt.Axis(values=_ticks(*ends, noise), format=",~r")
    else:  # averages, and public numbers
        scale, axis = alt.Scale(zero=False), alt.Axis(tickCount=6)
    rows = [{"published": y, "truth": x} for y, x in pairs.tolist()]
    line = alt.Chart({"values": [{"truth": end, "published": end} for end in ends]})
    x, y = (alt.X("truth:Q", title="exact"), alt.Y("published:Q", title="published"))
    return alt.layer(
        *(
            chart.encode(x=x.scale(scale).axis(axis), y=y.scale(scale).axis(axis))
            for chart in (
                line.mark_line(color=_GREY, strokeWidth=1, strokeDash=[4, 3]),
                alt.Chart({"values": rows}).mark_point(filled=True, size=18, opacity=0.5, color=COLOURS[1]),
            )
        )
    ).properties(width=_SIDE, height=_SIDE)


def _ticks(low: float, high: float, near: float) -> list[float]:
    """Zero, and powers of ten on both sides of it, from where the axis is no longer linear.

    >>> _ticks(-20.0, 3000.0, 5.0)
    [-10.0, 0.0, 10.0, 100.0, 1000.0]
    """
    low, high = min(low, 0.0), max(high, 0.0)
    first = math.ceil(math.log10(near))
    last = max(first, math.floor(math.log10(max(abs(low), abs(high), 10.0**first))))
    powers = [10.0**k for k in range(first, last + 1, max(1, (last - first) // 5))]
    return [own for own in [*(-p for p in reversed(powers)), 0.0, *powers] if low <= own <= high]
