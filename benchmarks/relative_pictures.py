"""The pictures of the experiments on relative errors: overall error and accuracy against epsilon and sanity bound."""

from __future__ import annotations

import math

from hushcube.verbs.charting import COLOURS, SHAPES, round_numbers

ORDER = ("dwork", "iresamp", "twophase", "ireduct", "ireduct+", "oracle")
"""As the lines mostly lie: the largest error first."""
OVER = "overall error / that of oracle"


def share(delta):
    """A share of the people as a number.

    >>> share("0.01%")
    0.0001
    """
    return float(delta.removesuffix("%")) / 100


def pictures(book):
    """The figures of the paper: a column for each data set, a line for each method."""
    made = {}
    for task in ("1-way", "2-way"):
        what, centre = f"{task} marginals", book.tasks[task].centre
        made[task] = [
            [panel(_lines(book, data, task), f"{data}, {what}", "epsilon") for data in book.people],
            [panel(_over_oracle(book, data, task), f"{data}, {what}", "epsilon", OVER) for data in book.people],
            [
                panel(_lines(book, data, task, "delta"), f"{data}, {what}, epsilon {centre}", "sanity bound δ / people")
                for data in book.people
            ],
        ]
    made["classifier"] = [
        [panel(_lines(book, data, "classifier"), f"{data}, classifier", "epsilon") for data in book.people],
        [_accuracy_panel(book, data) for data in book.people],
    ]
    made["twophase"] = [[_calibration_panel(book, data) for data in book.people]]
    return {f"relative-{name}.svg": _finished(rows) for name, rows in made.items()}


def _lines(book, data, task, by="epsilon", value="error"):
    places = book.epsilons(data, task) if by == "epsilon" else book.deltas(data, task)
    return [
        {
            "x": float(place) if by == "epsilon" else share(place),
            "y": getattr(book.at(data, task, method, **{by: place}), value),
            "method": method,
        }
        for method in ORDER
        for place in places
    ]


def _over_oracle(book, data, task):
    return [
        {"x": float(e), "y": book.ratio(data, task, method, "oracle", epsilon=e)[0], "method": method}
        for method in ORDER
        for e in book.epsilons(data, task)
    ]


def _accuracy_panel(book, data):
    """With a dashed line for the classifier without noise."""
    import altair as alt

    rows = _lines(book, data, "classifier", value="accuracy")
    exact = book.at(data, "classifier", "exact").accuracy
    low, high = min(row["y"] for row in rows), max(exact, *(row["y"] for row in rows))
    y = alt.Y(
        "y:Q",
        title="accuracy",
        scale=alt.Scale(domain=[math.floor(low * 20) / 20, math.ceil(high * 20) / 20], nice=False),
        axis=alt.Axis(format="%"),
    )
    line = alt.Chart({"values": [{"y": exact}]}).mark_rule(strokeDash=[2, 2], color="#555555").encode(y=y)
    return panel(rows, f"{data}, classifier", "epsilon", y=y, under=[line])


def _calibration_panel(book, data):
    """With bars of one standard error."""
    import altair as alt

    found = book.first_shares(data)
    x, y = [float(p.first_share) for p in found], [p.error for p in found]
    bars = [{"x": a, "y": b - p.error_se, "to": b + p.error_se} for a, b, p in zip(x, y, found, strict=True)]
    bar = alt.Chart({"values": bars}).mark_rule(color="#999999").encode(x=_x(x, "ε₁ / ε"), y="y:Q", y2="to:Q")
    rows = [{"x": a, "y": b, "method": "twophase"} for a, b in zip(x, y, strict=True)]
    title = f"{data}, 1-way marginals, epsilon {book.tasks['1-way'].centre}"
    return panel(rows, title, "ε₁ / ε", "overall error of twophase", under=[bar])


def panel(rows, title, x_title, y_title="overall error", *, y=None, under=()):
    """Lines on logarithmic axes; `y` is another axis, `under` what lies below the lines."""
    import altair as alt

    names = [name for name in ORDER if any(row["method"] == name for row in rows)]
    legend = None if len(names) == 1 else alt.Legend(title=None)

    def look(channel, values, **more):
        return channel("method:N", scale=alt.Scale(domain=names, range=[values[n] for n in names]), **more)

    colours = dict(zip(ORDER, (*COLOURS[:5], "#000000"), strict=True))
    base = alt.Chart({"values": rows}).encode(
        x=_x([row["x"] for row in rows], x_title),
        y=y or _y([row["y"] for row in rows], y_title),
        color=look(alt.Color, colours, legend=legend),
    )
    dashes = {name: [5, 3] if name == "oracle" else [1, 0] for name in ORDER}
    lines = base.mark_line(strokeWidth=1.5).encode(strokeDash=look(alt.StrokeDash, dashes, legend=legend))
    shapes = look(alt.Shape, dict(zip(ORDER, SHAPES, strict=True)), legend=legend)
    marks = base.mark_point(filled=True, size=36, opacity=1).encode(shape=shapes)
    return alt.layer(*under, lines, marks).properties(
        width=330, height=230, title=alt.Title(title, anchor="start", fontSize=12)
    )


def _finished(rows):
    import altair as alt

    return (
        alt.vconcat(*(alt.hconcat(*row) for row in rows))
        .configure(aria=False)  # a third of the file
        .configure_view(stroke=None)
        .configure_axis(gridColor="#e4e4e4", domainColor="#888888", tickColor="#888888", titleFontWeight="normal")
    )


def _x(values, title):
    import altair as alt

    return alt.X("x:Q", title=title, scale=_scale(values), axis=_axis(values))


def _y(values, title):
    """Logarithmic, but for values of about one size."""
    import altair as alt

    if max(values) < 3 * min(values):
        return alt.Y("y:Q", title=title, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=6))
    return alt.Y("y:Q", title=title, scale=_scale(values), axis=_axis(values))


def _scale(values):
    import altair as alt

    return alt.Scale(type="log", domain=[min(values) / 1.2, max(values) * 1.2], nice=False)


def _axis(values):
    import altair as alt

    ticks = round_numbers(min(values) / 1.2, max(values) * 1.2)
    return alt.Axis(values=ticks[:: max(1, len(ticks) // 7)], format="~g")
