"""A chart of an evaluation: a panel for each kind of error, in each of them a line or a row for each setting."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from hushcube.errors import BadInput
from hushcube.text import visible
from hushcube.verbs.charting import ATTRIBUTES, CELLS, COLOURS, STAMP, Rows, framed, logarithmic, looks

if TYPE_CHECKING:
    from hushcube.verbs.evaluating import By, Evaluation

_KINDS: Final = {
    "accuracy": "accuracy",
    "mean_error": "mean error of a cell",
    "worst_cell": "largest error of a cell",
    "overall_error": "relative error of a cell",
}
_AXES: Final = {"dimension": ("attributes", ATTRIBUTES), "table": ("cells", CELLS)}


def draw_errors(evaluation: Evaluation, by: By) -> Any:
    """Errors over epsilon or rho, if there are several of them, over attributes, or over cells; else in rows."""
    import altair as alt

    amounts = [name for name in ("epsilon", "rho") if name in evaluation.varying]
    over = (amounts[0], amounts[0]) if len(amounts) == 1 and by == "setting" else _AXES.get(by)
    rows = _labelled(evaluation, by, None if over is None else over[0])
    names = list(dict.fromkeys(row["setting"] for row in rows))
    scales = looks(names, range(len(names)))
    panels: list[Any] = []
    for kind, title in _KINDS.items():
        shown = [{**row, "error": row[kind]} for row in rows if kind in row and 0 < row[kind] < math.inf]
        if shown and over:
            panels.append(_lines(shown, scales, over, title, joined=by != "table"))
        elif shown:
            panels.append(_rows(shown, names, title, first=not panels))
    if not panels:
        raise BadInput("chart", "there is no error to draw", "leave it out")
    return framed(alt.hconcat(*panels, spacing=30), f"{STAMP}. Errors against the exact counts", evaluation.about)


def _labelled(evaluation: Evaluation, by: By, over: str | None) -> Rows:
    """The numbers, with what a line is called; what does not depend on an amount is there for each of them."""
    rows, parts = evaluation.rows(by), [name for name in evaluation.varying if name != over]
    found: Rows = []
    for row in rows:
        told = [f"{name} {row[name]:g}" if isinstance(row[name], float) else row[name] for name in parts]
        label = visible(", ".join([row["method"], *(word for word in told if word is not None)]))
        places = sorted({other[over] for other in rows if other[over] is not None}) if over else [None]
        for place in places if over and row[over] is None else [row.get(over or "")]:
            found.append({**row, "setting": label, "place": place})
    return found


def _lines(rows: Rows, scales: dict[str, Any], over: tuple[str, str], title: str, *, joined: bool) -> Any:
    import altair as alt

    name, label = over
    places = sorted({row["place"] for row in rows})
    ordinal = alt.X("place:O", title=label, axis=alt.Axis(labelAngle=0))
    x = ordinal if name == "attributes" or len(places) == 1 else alt.X("place:Q", title=label, **_ticked(name, places))
    base = alt.Chart({"values": rows}).encode(x=x, y=alt.Y("error:Q", title=title, **_upright(title, rows)))
    legend = alt.Legend(title=None, labelLimit=320)
    colour = alt.Color("setting:N", scale=scales["color"], legend=legend)
    points = base.mark_point(filled=True, size=48, opacity=1).encode(
        color=colour, shape=alt.Shape("setting:N", scale=scales["shape"], legend=legend)
    )
    dashes = alt.StrokeDash("setting:N", scale=scales["strokeDash"], legend=None)
    lines = [base.mark_line(strokeWidth=1.5).encode(color=colour, strokeDash=dashes)] if joined else []
    return alt.layer(*lines, points).properties(width=300, height=300)


def _rows(rows: Rows, names: list[str], title: str, *, first: bool) -> Any:
    import altair as alt

    side = alt.Axis(grid=True, domain=False, ticks=False, labelLimit=320, labelPadding=8, labels=first)
    base = alt.Chart({"values": rows}).encode(
        x=alt.X("error:Q", title=title, **_upright(title, rows)),
        y=alt.Y("setting:N", sort=names, title=None, axis=side),
    )
    dots = base.mark_point(filled=True, size=90, opacity=1, color=COLOURS[0])
    numbers = base.mark_text(dy=-12).encode(text=alt.Text("error:Q", format=",.3~r"))
    return alt.layer(dots, numbers).properties(width=300, height=34 * len(names))


def _upright(title: str, rows: Rows) -> dict[str, Any]:
    """The axis of errors is logarithmic; that of accuracies is not."""
    import altair as alt

    if title == _KINDS["accuracy"]:
        return {"scale": alt.Scale(zero=False, padding=12), "axis": alt.Axis(format="~%")}
    return logarithmic([row["error"] for row in rows])


def _ticked(name: str, places: list[float]) -> dict[str, Any]:
    """Budgets have their ticks where they are."""
    import altair as alt

    axis = logarithmic(places, grid=False)
    return axis if name == "cells" else {**axis, "axis": alt.Axis(values=places, format="~g", grid=False)}
