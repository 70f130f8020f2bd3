"""What the runs came to: medians over seeds, tables for the page, and its picture."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from benchmarks.__main__ import show, table
from benchmarks.adaptive.cases import settings
from benchmarks.adaptive.ours import METHODS as OURS
from benchmarks.reproduce.pictures import BLACK, BLUE, DASHED, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION, lines

Row = dict[str, Any]
AIMS = ("AIM", "AIM on our fit")
"""One algorithm on two models."""
RIVALS = ("AIM", "MST")
"""Those that need the environment of mbi."""
METHODS = ("AIM", "AIM on our fit", "MST", *OURS)
LOOKS = dict(
    zip(
        METHODS,
        (
            (BLACK, "solid"),
            (BLACK, DASHED),
            (GREY, DASHED),
            (BLUE, DASHED),
            *((c, "solid") for c in (BLUE, VERMILION, GREEN, PURPLE, SKY, ORANGE)),
        ),
        strict=False,
    )
)
REFERENCES = {
    ("Adult-8", "2-way", 1.0): (0.0304, 27),
    ("Adult-8", "2-way", 0.1): (0.129, 143),
    ("Adult-8", "3-way", 1.0): (0.0815, 15),
    ("Adult-8", "3-way", 0.1): (0.250, 61),
    ("ACS 2018", "2-way", 1.0): (0.0412, 31),
    ("Adult-15", "2-way", 1.0): (0.092, 10),
    ("Adult-15", "3-way", 1.0): (0.150, 9),
}
"""L1 and RMSE of AIM with its graphical model, seen before this program was written: shown where it has not run."""


PICKED = {"NLTCS": "residual, entropy"}
"""What `--for face-valid` measures with: `selective`, but for tables of fewer cells than `verbs.planning.FEW_CELLS`."""


def medians(rows: Sequence[Row]) -> list[Row]:
    """One row for each case, tables, epsilon and method, in the order of the cases: medians over its seeds."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if "skipped" not in row:
            found.setdefault((row["case"], row["tables"], row["epsilon"], row["method"]), []).append(row)
    order = [(case.name, words, epsilon) for case, words, epsilon in settings()]
    known = sorted(
        found, key=lambda key: (order.index(key[:3]) if key[:3] in order else len(order), METHODS.index(key[3]))
    )
    fields = ("l1", "rmse", "max", "cpu_seconds", "peak_GB")
    return [
        dict(zip(("case", "tables", "epsilon", "method"), key, strict=True))
        | {name: median(row[name] for row in found[key]) for name in fields}
        | {"seeds": len(found[key])}
        for key in known
    ]


def error_table(middle: Sequence[Row]) -> str:
    """L1 of a table over n, and in brackets the RMSE of a cell; a column for each method."""
    rows = []
    for key, own in _grouped(middle).items():
        cells = {name: _shown(own[name]["l1"], own[name]["rmse"]) if name in own else "" for name in METHODS}
        if "AIM" not in own and key in REFERENCES:
            cells["AIM"] = f"{_shown(*REFERENCES[key])} \\*"
        lowest = min(own, key=lambda name: own[name]["l1"])
        cells[lowest] = f"**{cells[lowest]}**"
        rows.append(_named(key) | cells | {"over AIM": _over_aim(key[0], own), "seeds": _seeds(own)})
    return table(rows)


def cost_table(middle: Sequence[Row]) -> str:
    """Processor seconds, and in brackets the peak of memory in GB."""
    return table(
        [
            _named(key)
            | {
                name: f"{show(own[name]['cpu_seconds'])} ({own[name]['peak_GB']:.2f})" if name in own else ""
                for name in METHODS
            }
            for key, own in _grouped(middle).items()
        ]
    )


def skipped(rows: Sequence[Row]) -> list[str]:
    """Why runs have no figures, each reason once."""
    reasons = {
        f"{row['case']} `{row['tables']}`, epsilon {row['epsilon']:g}, {row['method']}: {row['skipped']}"
        for row in rows
        if "skipped" in row
    }
    return sorted(reasons)


def picture(middle: Sequence[Row]) -> Any:
    """L1 over epsilon, a panel for each case and kind of table."""
    rows = sorted(
        ({**row, "panel": f"{row['case']}, {row['tables']}"} for row in middle), key=lambda row: row["epsilon"]
    )
    panels = list(dict.fromkeys(f"{row['case']}, {row['tables']}" for row in middle))
    return lines(
        sorted(rows, key=lambda row: panels.index(row["panel"])),
        x="epsilon",
        y="l1",
        looks=LOOKS,
        panel="panel",
        columns=4,
        log_x=True,
        x_title="epsilon, with delta = 1e-9",
        y_title="L1 error of a table over n",
        title="Tables at face value, at equal privacy",
        size=(170, 150),
    )


def _grouped(middle: Sequence[Row]) -> dict[tuple[str, str, float], dict[str, Row]]:
    grouped: dict[tuple[str, str, float], dict[str, Row]] = {}
    for row in middle:
        grouped.setdefault((row["case"], row["tables"], row["epsilon"]), {})[row["method"]] = row
    return grouped


def _over_aim(case: str, own: dict[str, Row]) -> str:
    """The error of what `--for face-valid` takes, as a part of AIM's, on whichever of its models it errs less."""
    picked, aims = PICKED.get(case, "selective"), [own[name]["l1"] for name in AIMS if name in own]
    return f"{own[picked]['l1'] / min(aims):.2f}" if picked in own and aims else ""


def _seeds(own: dict[str, Row]) -> str:
    """Of how many runs figures are the medians: the most that a method has, and which methods have fewer."""
    most = max(row["seeds"] for row in own.values())
    fewer = "; ".join(f"{name}: {row['seeds']}" for name, row in own.items() if row["seeds"] < most)
    return f"{most} ({fewer})" if fewer else f"{most}"


def _named(key: tuple[str, str, float]) -> Row:
    return {"data": key[0], "tables": key[1], "epsilon": f"{key[2]:g}"}


def _shown(l1: float, error: float) -> str:
    return f"{l1:.3g} ({error:.2g})" if error < 100 else f"{l1:.3g} ({error:.0f})"
