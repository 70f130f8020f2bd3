"""A release that explains itself: README.md, index.csv and index.html, for people who do not have hushcube.

Each face has its own in its folder; the one at the top is that of the unbiased tables, and names all other faces. All
of it is computed from the plan and the manifest. `verify` checks what it says, not in which words, so that the guides
of other versions hold [checks/guides.py].

    README.md     what this is, its tables, how to read a number and its interval, how to cite it
    index.csv     a line for each table or pack: its word, title, attributes, cells, file, face and errors
    index.html    the same list as a page
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from hushcube.bundle.front_page import front_page
from hushcube.bundle.listing import Listing
from hushcube.bundle.manifest import INDEX, PAGE, README
from hushcube.bundle.statement import NOT_PRIVATE, STATEMENT
from hushcube.bundle.tables import ESTIMATED, Entry, column_names, flag_names, written
from hushcube.faces.value import HALF_WIDTH, published_promises
from hushcube.model.quality import QUALITY_WORDS
from hushcube.model.schema import COUNT, Schema
from hushcube.planning.plan import Plan
from hushcube.shown import number
from hushcube.text import prose

_TABLES: Final = (
    "The files are Parquet, which pandas, DuckDB, R, Spark and others read. They are also listed in "
    "[index.csv](index.csv), for programs, and in [index.html](index.html)."
)
_PACKED: Final = (
    "Tables with the same number of attributes share a file, a pack. Its index, such as `tables/2-way-index.parquet`, "
    "has a line for each table: its attributes, its `margin_95`, and where its rows are: they begin at `offset` (the "
    "first row of the pack is 0), and there are as many as `cells`."
)
_CODES: Final = (
    "A column such as `age_code`, where there is one, holds the codes of the data beside the labels, as numbers where "
    "they are numbers."
)
_SURPRISES: Final = (
    "It can be negative, or not whole. Noise is added to small counts and to zeros, too; to cut it off would make sums "
    "too large. Read a negative count as: few, perhaps none.",
    "It does not match another publication of the same data, nor the data itself. It should not: the difference is the "
    "noise, and `std_error` says how large it is.",
    "A cell that is small against its margin says little by itself; sums of many cells say more. The errors of cells "
    "are not independent: do not add up their squares.",
)
_ESTIMATED: Final = (
    f"`{ESTIMATED}` says how far a value of this folder is expected to be from the true number. In about 95 of 100 "
    f"cases the true number should lie in the interval value - {HALF_WIDTH:.2f} × `{ESTIMATED}` to value + "
    f"{HALF_WIDTH:.2f} × `{ESTIMATED}`. This is estimated, not promised: how large errors are was measured, how they "
    "are spread over cells is a model's guess. The errors of cells are not independent: those of sums cannot be "
    "computed from them."
)
_CHECKED: Final = (
    "`manifest.json` has a checksum of every file, and `plan.json` says exactly what was measured. `hushcube verify` "
    "checks all of it. Files that the manifest does not list are not part of the release."
)


def guide(
    plan: Plan,
    face: str,
    entries: Sequence[Entry],
    places: Mapping[str, str],
    *,
    private: bool,
    estimated: bool = False,
) -> dict[str, str]:
    """The texts of a face by the names of their files; `entries` are those of the manifest, `places` the folders.

    Its cells may have `estimated` errors.
    """
    listing = Listing.of(plan, face, entries, places, private=private)
    heading = plan.schema.shown_name if listing.is_whole else f"{plan.schema.shown_name}: the face {face}"
    links = {README: "how to read the numbers", INDEX: "this list for programs"}
    if listing.is_whole:
        links |= {STATEMENT: "the guarantee in plain words"}
        links |= {f"{other.folder}/{PAGE}": f"the face {other.face}" for other in listing.others}
    else:
        links |= {STATEMENT: "what this face promises", f"../../{PAGE}": "the whole release"}
    parts = [f"# {prose(heading)}", *([] if private else [f"**{NOT_PRIVATE}**"])]
    parts += _about(plan) if listing.is_whole else [*_about_face(plan, face), *([_ESTIMATED] if estimated else [])]
    rows = ([f"[{prose(t.title)}]({t.file})", prose(t.word), f"{t.cells:,}", t.std_error] for t in listing.lines)
    parts += ["## Tables", _TABLES, _grid(("file", "table", "cells:", "standard error of a cell:"), rows)]
    parts += _reading(listing) if listing.is_whole else []
    return {README: "\n\n".join(parts) + "\n", INDEX: listing.index(), PAGE: front_page(listing, heading, links)}


def _about(plan: Plan) -> list[str]:
    schema = plan.schema
    words = {"Source": schema.source, "Period": schema.period, "Licence": schema.licence, "Contact": schema.contact}
    told = [f"- {name}: {prose(word)}" for name, word in words.items() if word is not None]
    return [
        *paragraphs(schema.description or ""),
        *(["\n".join(told)] if told else []),
        f"These tables count {prose(schema.unit_noun)}. Noise was added to every number before it was published, so "
        f"that nothing here depends much on any one person: {plan.privacy}. [PRIVACY.md](PRIVACY.md) says what that "
        "means.",
    ]


def _about_face(plan: Plan, face: str) -> list[str]:
    promise = published_promises()[face].of(prose(plan.schema.unit_noun))
    return [
        f"This folder {promise} The tables are those of the [whole release](../../README.md), computed from the same "
        "noisy numbers. `std_error`, and the margins in [index.csv](index.csv), are those of the unbiased estimates: "
        "around a value of this folder an interval may cover the truth less often."
    ]


def _reading(listing: Listing) -> list[str]:
    """How to read the numbers, and all else that is said once for a whole release."""
    plan, schema = listing.plan, listing.plan.schema
    noun, caveat = prose(schema.unit_noun), schema.caveat
    agree = all(design.is_consistent for design in plan.designs.values())
    adding = "Tables agree: the cells of a table add up to those of every coarser one, but for rounding."
    surprises = [*_SURPRISES, adding if agree else "Tables do not add up to each other: each has noise of its own."]
    surprises += [] if caveat is None else [f"{prose(caveat[:1].upper() + caveat[1:])}."]
    return [
        "## How to read a number",
        f"A table has one row for each combination of values. `value` is an estimate of the number of {noun} "
        "with it. `std_error` is its standard error: how far noise moves it typically. In 95 of "
        "100 cases the true number lies in the interval",
        "    value - margin  to  value + margin",
        "The margin of the cells of a table is its `margin_95` in the index. Where that is empty, cells differ, and "
        f"{_safe_margin(plan, COUNT)} is a margin that is wide enough.",
        *_sums(plan),
        _quality(plan),
        *([_PACKED] if listing.packs else []),
        _CODES,
        "## Why a number may surprise you",
        _points(surprises),
        "## Faces",
        *_faces(listing),
        "## What the columns mean",
        _attributes(schema),
        "All values, and their labels, are in `schema.yaml`.",
        "## How to cite",
        _citation(plan),
        "## Is this what was published?",
        _CHECKED,
    ]


def _faces(listing: Listing) -> list[str]:
    """The same tables under other promises, as many as there are."""
    noun, promises = prose(listing.plan.schema.unit_noun), published_promises()
    if not listing.others:
        return ["All tables here are unbiased: right on average. There are none under other promises."]
    told = (f"[`{other.face}`]({other.folder}/{README}) {promises[other.face].of(noun)}" for other in listing.others)
    return [
        "The tables above are unbiased: right on average. These folders hold the same tables under other promises, "
        "computed from the same noisy numbers; their files are in [index.csv](index.csv), too:",
        _points(told),
    ]


def _safe_margin(plan: Plan, part: str, step: float = 1.0) -> str:
    """A margin for every combination of measured numbers, a line in the standard error.

    [designs/errors.py, `any_margin`]
    """
    one, two = plan.designs[part].errors.any_margin(np.array([1.0, 2.0])).tolist()
    start = round(2 * one - two, 9)
    return f"{two - one:.6f} × `std_error`" + (f" + {number(start * step)} (0 where that is 0)" if start else "")


def _sums(plan: Plan) -> list[str]:
    """What the columns of measures hold."""
    told = []
    for quantity, columns in column_names(plan, written(plan)).items():
        if quantity.kind == "count":
            continue
        measure, shown = plan.schema.measure(quantity.measure), ", ".join(f"`{column}`" for column in columns)
        title = prose(measure.shown_name) + (f" ({prose(measure.unit_of_measure)})" if measure.unit_of_measure else "")
        if quantity.kind == "avg":
            told.append(f"{shown}: the average of {title}, and both ends of its 95% interval; empty where unknown.")
            continue
        step = math.hypot(float(measure.resolution), float(measure.center))
        margin = f"its margin is `{columns[0]}_margin_95`, or else {_safe_margin(plan, quantity.part, step)}"
        told.append(f"{shown}: the sum of {title}, and its standard error; {margin}.")
    return ["Beside the counts there are sums and averages:", _points(told)] if told else []


def _quality(plan: Plan) -> str:
    """What the flags beside the numbers mean."""
    flags = ", ".join(f"`{name}`" for name in flag_names(plan, written(plan)).values())
    quality = plan.schema.quality
    low, high = (f"{100 * threshold:.4g}%" for threshold in (quality.caution, quality.unreliable))
    return (
        f"How far a number can be relied on stands beside it ({flags}): `{QUALITY_WORDS[1]}` if its standard error is "
        f"more than {low} of it, `{QUALITY_WORDS[2]}` if more than {high}, or if it is no more than noise."
    )


def _attributes(schema: Schema) -> str:
    rows = []
    for each in schema.declared.attributes:
        unit = f" ({each.unit_of_measure})" if each.unit_of_measure else ""
        told = " ".join((each.description or "").split())
        rows.append([prose(each.name), prose(f"{each.title or ''}{unit}".strip()), f"{each.size:,}", prose(told)])
    return _grid(("attribute", "title", "values:", "description"), rows)


def _citation(plan: Plan) -> str:
    schema = plan.schema
    words = (schema.shown_name, schema.period, schema.source)
    told = ". ".join(word.rstrip(".") for word in words if word is not None)
    return (
        f"> {prose(told)}. Differentially private tables ({plan.privacy}), plan {plan.digest[:16]}, made with hushcube."
    )


def _points(told: Iterable[str]) -> str:
    return "\n".join(f"- {each}" for each in told)


def _grid(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown; numbers, whose heads end in a colon, stand to the right."""
    sides = ["---:" if head.endswith(":") else "---" for head in heads]
    return "\n".join(f"| {' | '.join(row)} |" for row in ([head.rstrip(":") for head in heads], sides, *rows))


def paragraphs(text: str) -> list[str]:
    """A text of several lines as Markdown in which nothing is markup.

    >>> paragraphs("one\\ntwo\\n\\n# three\\n1. four")
    ['one\\ntwo', '\\\\# three\\n1\\\\. four']
    """
    blocks = (block.split("\n") for block in re.split(r"\n\s*\n", text) if block.strip())
    return ["\n".join(_plain(prose(line.strip())) for line in block) for block in blocks]


def _plain(line: str) -> str:
    """A line that begins no heading, list or rule."""
    return re.sub(r"^([0-9]*)([#+=.)-])", r"\1\\\2", line)
