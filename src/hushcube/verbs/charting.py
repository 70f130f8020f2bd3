"""Charts as PNG or SVG; that of a comparison: the expected error by the size of tables, a line for each strategy."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hushcube.durable import check_file, new_file
from hushcube.errors import BadInput, OutputError
from hushcube.text import visible

if TYPE_CHECKING:
    from hushcube.planning.planner import Ranking
    from hushcube.planning.question import Comparison
    from hushcube.verbs.advising import Advice
    from hushcube.verbs.evaluating import By, Evaluation
    from hushcube.verbs.owner_check import ReleaseCheck

Rows = list[dict[str, Any]]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
"""Okabe and Ito's, which colour-blind people can tell apart; grey stands for their pale yellow."""
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")
ATTRIBUTES = "attributes in the table"
CELLS = "cells in the table"
ERROR = "expected standard error of a cell"
STAMP = "NOT PRIVATE: do not publish"
"""On pictures that hold exact numbers of the data."""
_ROOM = 1.2  # between the outermost points and the frame, as a factor
_SUFFIXES = (".png", ".svg")
_PACKAGES = ("altair", "vl_convert")


def chart(shown: Comparison | Evaluation | ReleaseCheck | Advice, out: str | Path, *, by: By = "setting") -> Path:
    """Draw a comparison, an evaluation, the check of a release or advice as a new .png or .svg file.

    Of a comparison, the expected error by the size of tables, one line for each strategy: all of them if it was asked
    for with `strategy="all"`, which it is unless told otherwise. Of an evaluation, which is NOT private, the errors
    `by` setting, dimension or table. Of a check of a release, which is NOT private either, how errors are spread, the
    coverage of each table, and published numbers over exact ones.
    """
    from hushcube.planning.question import Comparison

    path = new_picture(out)
    picture = render(shown, path) if isinstance(shown, Comparison) else shown.picture(path, by)
    with new_file(path) as file:
        file.write_bytes(picture)
    return path


def new_picture(path: str | Path, field: str = "out") -> Path:
    """A picture that can be drawn and is not there yet, before any work is done for it."""
    if Path(path).suffix.lower() not in _SUFFIXES:
        raise OutputError(field, f"{str(path)!r} ends neither in .png nor in .svg", "name a .png or .svg file")
    if any(find_spec(package) is None for package in _PACKAGES):
        raise BadInput(field, "needs altair and vl-convert-python", "pip install 'hushcube[charts]'")
    check_file(Path(path), field)
    return Path(path)


def render(comparison: Comparison, path: Path, field: str = "comparison") -> bytes:
    """The chart of a comparison in the form that a file's name asks for."""
    return saved(draw(comparison, field), path)


def saved(picture: Any, path: Path, scale: float = 2) -> bytes:
    """A picture in the form that a file's name asks for; one of pixels has `scale` of them for each of its points."""
    form = path.suffix.lower().removeprefix(".")
    target = io.BytesIO() if form == "png" else io.StringIO()
    picture.save(target, format=form, **({"scale_factor": scale} if form == "png" else {}))
    content = target.getvalue()
    return content if isinstance(content, bytes) else content.encode("utf-8")


def draw(comparison: Comparison, field: str) -> Any:
    """The chart of the counts: lines over the sizes of tables, or, where all have one size, a row for each strategy."""
    import altair as alt

    chosen = comparison.chosen
    label, rows = points(comparison.parts["count"], field)
    order = list(reversed(dict.fromkeys(row["strategy"] for row in rows)))  # as the lines lie: the largest error on top
    ranks = list(reversed(range(len(order))))  # the best strategy has the first colour
    legend = alt.Legend(title=None, labelLimit=320) if len({row["size"] for row in rows}) > 1 else None
    scales = looks(order, ranks)
    base = alt.Chart({"values": rows}).encode(
        color=alt.Color("strategy:N", scale=scales["color"], legend=legend),
        shape=alt.Shape("strategy:N", scale=scales["shape"], legend=legend),
        strokeDash=alt.StrokeDash("strategy:N", scale=scales["strokeDash"], legend=None),
    )
    picture = _lines(base, rows, label) if legend else _dots(base, rows, label, order)
    title = f"{visible(chosen.schema.name)}: {len(chosen.workload):,} tables, {chosen.workload.cells:,} cells"
    return framed(picture, title, str(chosen.privacy))


def looks(order: Sequence[str], ranks: Sequence[int]) -> dict[str, Any]:
    """How lines are told apart, by what they are called and their ranks: colour, shape and dashes."""
    import altair as alt

    ranges: dict[str, list[Any]] = {
        "color": [COLOURS[rank % len(COLOURS)] for rank in ranks],
        "shape": [SHAPES[rank % len(SHAPES)] for rank in ranks],
        "strokeDash": [[1, 0] if rank < len(COLOURS) else [5, 3] for rank in ranks],
    }
    return {name: alt.Scale(domain=list(order), range=values) for name, values in ranges.items()}


def framed(picture: Any, title: str, subtitle: str) -> Any:
    """A picture with its title."""
    import altair as alt

    return (
        picture.properties(title=alt.Title(title, subtitle=subtitle, anchor="start", offset=14))
        .configure_view(stroke=None)
        .configure_axis(gridColor="#e4e4e4", domainColor="#888888", tickColor="#888888", titleFontWeight="normal")
    )


def _lines(base: Any, rows: Rows, label: str) -> Any:
    import altair as alt

    sizes, errors = sorted({row["size"] for row in rows}), [row["error"] for row in rows]
    if label == CELLS:
        x, width = alt.X("size:Q", title=label, **logarithmic(sizes, grid=False)), 520
    else:
        x, width = alt.X("size:O", title=label, axis=alt.Axis(labelAngle=0)), max(300, 90 * len(sizes))
    both = base.encode(x=x, y=alt.Y("error:Q", title=ERROR, **logarithmic(errors)))
    layers = []
    for chosen, thickness in ((False, 1.5), (True, 3.5)):  # the chosen one on top of the others
        part = both.transform_filter(alt.datum.chosen == chosen)
        layers += [
            part.mark_line(strokeWidth=thickness).encode(shape=alt.Undefined),
            part.mark_point(filled=True, size=64, opacity=1).encode(strokeDash=alt.Undefined),
        ]
    return alt.layer(*layers).properties(width=width, height=340)


def _dots(base: Any, rows: Rows, label: str, order: list[str]) -> Any:
    import altair as alt

    title = f"{ERROR}; {rows[0]['size']:,} {label}"
    side = alt.Axis(grid=True, domain=False, ticks=False, labelLimit=240, labelPadding=8)
    both = base.encode(
        x=alt.X("error:Q", title=title, **logarithmic([row["error"] for row in rows], grid=False)),
        y=alt.Y("strategy:N", sort=order, title=None, axis=side),
        strokeDash=alt.Undefined,
    )
    numbers = both.mark_text(dy=-13).encode(text=alt.Text("error:Q", format=",.3~r"), shape=alt.Undefined)
    dots = both.mark_point(filled=True, size=110, opacity=1)
    return alt.layer(dots, numbers).properties(width=460, height=38 * len(order))


def logarithmic(values: Sequence[float], *, grid: bool = True) -> dict[str, Any]:
    """A logarithmic axis that holds some values."""
    import altair as alt

    low, high = min(values) / _ROOM, max(values) * _ROOM
    axis = alt.Axis(values=round_numbers(low, high), format=",~r", grid=grid)
    return {"scale": alt.Scale(type="log", domain=[low, high], nice=False), "axis": axis}


def round_numbers(low: float, high: float) -> list[float]:
    """Where a logarithmic axis has its ticks: round numbers, the more of them the shorter it is.

    >>> round_numbers(3, 70), round_numbers(2.5, 7), round_numbers(0.5, 5e6)[:3]
    ([5.0, 10.0, 20.0, 50.0], [3.0, 4.0, 5.0, 6.0], [1.0, 10.0, 100.0])
    """
    decades = math.log10(high / low)
    steps = (1, 2, 3, 4, 5, 6, 8) if decades < 1 else (1, 2, 5) if decades < 5 else (1,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [float(f"{step}e{power}") for power in powers for step in steps if low <= float(f"{step}e{power}") <= high]


def points(ranking: Ranking, field: str) -> tuple[str, Rows]:
    """What is drawn: the root mean variance of a cell for each strategy and size of tables.

    Sizes are numbers of attributes, or of cells where all tables have as many attributes. Strategies that come to the
    same share a line.
    """
    import numpy as np

    from hushcube.planning.plan import Plan
    from hushcube.planning.summary import best_variants, table_variances
    from hushcube.planning.targets import table_cells
    from hushcube.strategies.strategy import objective_value

    chosen, workload = ranking.chosen.strategy, ranking.chosen.workload
    cells = table_cells(workload)
    orders = [len(m) for m in workload.marginals] + [len(form.marginal) for form in workload.forms]
    label, sizes = (ATTRIBUTES, np.array(orders)) if len(set(orders)) > 1 else (CELLS, cells.astype(np.int64))
    distinct, which = np.unique(sizes, return_inverse=True)
    alike: dict[tuple[str, ...], tuple[list[str], list[float]]] = {}
    for plan in sorted(best_variants(ranking), key=objective_value):
        means = np.bincount(which, table_variances(Plan.of_counts(plan)) * cells) / np.bincount(which, cells)
        errors = np.sqrt(means).tolist()
        alike.setdefault(tuple(f"{value:.6g}" for value in errors), ([], errors))[0].append(plan.strategy)
    rows = [
        {"strategy": _name(names, chosen), "chosen": chosen in names, "size": size, "error": value}
        for names, errors in alike.values()
        for size, value in zip(distinct.tolist(), errors, strict=True)
        if value > 0  # a public answer has no error, and no place on a logarithmic scale
    ]
    if not rows:
        raise BadInput(field, "there is no error to draw: all answers are public", "leave it out")
    return label, rows


def _name(names: list[str], chosen: str) -> str:
    """Such as `covering (chosen)` or `identity = base`, the chosen one first."""
    return " = ".join(f"{name} (chosen)" if name == chosen else name for name in sorted(names, key=chosen.__ne__))
