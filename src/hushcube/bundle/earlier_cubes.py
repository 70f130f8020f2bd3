"""Cubes as format 3 had them: what people read, and beside it a release of counts for each part.

    manifest.json          `cube`: what was asked for; the guarantee; the parts; checksums; the list of tables
    tables/*.parquet       one row per cell: the attributes, then `count`, `sum(x)` and their standard errors, `avg(x)`
                           with the ends of its 95% interval (null where the count is no more than noise)
    parts/count, parts/01  releases of the counts, and of each measure's whole numbers, as any other of format 3
    cube.json, schema.yaml, PRIVACY.md

They are read and verified, and no longer written.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from hushcube.bundle.manifest import MANIFEST, PLANNED, check_files
from hushcube.bundle.reading import damaged, inside, read_text
from hushcube.bundle.release import Release
from hushcube.bundle.statement import STATEMENT
from hushcube.bundle.tables import Entry
from hushcube.errors import BadInput
from hushcube.model.arrays import Marginal
from hushcube.model.schema import COUNT
from hushcube.model.workload import Quantity
from hushcube.planning.plan import Plan

CUBE: Final = "cube.json"
NEEDED: Final = (CUBE, "schema.yaml", STATEMENT)


def is_earlier_cube(manifest: Entry) -> bool:
    """Whether a manifest is one of a cube of format 3."""
    return "cube" in manifest and manifest["format"] < PLANNED


def open_earlier_cube(
    folder: Path, manifest: Entry, open_part: Callable[[Path, bool], Release], *, verify: bool
) -> Release:
    """Open a cube; unless told not to, every file's checksum is verified."""
    try:
        if verify:
            check_files(folder, manifest, NEEDED)
        plan = Plan.from_json(read_text(folder, CUBE))
        told = {
            "name": plan.schema.name,
            "privacy": plan.privacy.to_dict(),
            "plan_digests": {name: design.digest for name, design in plan.designs.items()},
            "schema": plan.schema.to_dict(),
            "parts": {COUNT: f"parts/{COUNT}", **{name: f"parts/{i:02}" for i, name in enumerate(plan.sums, 1)}},
        }
        for name, value in told.items():
            if manifest.get(name) != value:
                raise damaged(MANIFEST, f"`{name}` does not say what cube.json says")
        if [q for word in manifest["cube"] if (q := Quantity.parse(word, plan.schema)).measure] != list(plan.asked):
            raise damaged(MANIFEST, "`cube` does not say what cube.json says")
        parts = {}
        for name, place in manifest["parts"].items():
            part = open_part(inside(folder, place, is_folder=True), False)
            if part.plan.asked or part.plan.count.digest != plan.designs[name].digest:
                raise damaged("parts", "are not those of cube.json")
            parts[name] = part.parts[COUNT]
        if any(part.private is not manifest["private"] for part in parts.values()):
            raise damaged(MANIFEST, "does not say of its noise what the parts say")
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        raise damaged(MANIFEST, "does not fit the cube and its parts") from None
    except BadInput as problem:
        raise damaged(problem.field, problem.problem) from None
    return Release(plan, parts)


def cube_table(release: Release, marginal: Marginal) -> pa.Table:
    """All numbers of the cells of a marginal, one row per cell."""
    names = [release.schema.names[i] for i in marginal]
    labels = release.table(names).columns()
    columns: dict[str, Any] = {name: pa.array(labels[name], pa.string()) for name in names}
    for quantity in release.plan.quantities:
        table, word = release.table(names, str(quantity)), str(quantity)
        if table.is_average:
            ends = {word: table.values, f"{word} low_95": table.low, f"{word} high_95": table.high}
            columns |= {name: pa.array(values.reshape(-1), from_pandas=True) for name, values in ends.items()}
        else:
            columns |= {word: table.values.reshape(-1), f"{word} std_error": table.std_errors.reshape(-1)}
    return pa.table(columns)
