"""A cube on disk: what people read, and beside it an ordinary release of each part.

    manifest.json          `cube`: what was asked for; the guarantee; the parts; checksums; the list of tables
    tables/*.parquet       one row per cell: the attributes, then `count`, `sum(x)` and their standard errors, `avg(x)`
                           with the ends of its 95% interval (null where the count is no more than noise)
    parts/count, parts/01  releases of the counts, and of each measure's whole numbers, as any other release
    cube.json, schema.yaml, PRIVACY.md

Everything is written to a temporary folder beside the target and renamed at the end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hushcube.bundle.cube import CubeRelease
from hushcube.bundle.folder import fill, open_bundle
from hushcube.bundle.manifest import FORMAT, MANIFEST, check_files, checksums, read_manifest, seal
from hushcube.bundle.published_table import Table
from hushcube.bundle.reading import damaged, folder_inside, read_text
from hushcube.bundle.stamp import file_stamp, stamp
from hushcube.bundle.statement import cube_statement
from hushcube.durable import check_output, new_folder
from hushcube.errors import BadInput
from hushcube.model.marginal import Marginal
from hushcube.model.schema import COUNT
from hushcube.planning.plan import Asked, Plan
from hushcube.progress import Progress

NEEDED: Final = ("cube.json", "schema.yaml", "PRIVACY.md")


def write_cube(release: CubeRelease, folder: Path, *, progress: Progress | None = None) -> None:
    """Write a cube to a new folder; an interruption leaves nothing behind."""
    from hushcube import __version__

    check_output(folder)
    plan = release.plan
    with new_folder(folder) as work:
        places = _places(plan)
        for name, part in {COUNT: release.count, **release.sums}.items():
            (work / places[name]).mkdir(parents=True)
            fill(part, work / places[name], progress)
        (work / "tables").mkdir()
        entries = [_write_table(release, m, work, at) for at, m in enumerate(plan.workload.published)]
        (work / "cube.json").write_text(plan.to_json(), encoding="utf-8")
        (work / "schema.yaml").write_text(plan.schema.to_yaml(), encoding="utf-8")
        (work / "PRIVACY.md").write_text(cube_statement(plan, private=release.private), encoding="utf-8")
        manifest = {
            "format": FORMAT,
            "hushcube": __version__,
            **stamp(private=release.private),
            **_plan_fields(plan),
            "parts": places,
            "checksums": checksums(work),
            "tables": entries,
        }
        (work / MANIFEST).write_bytes(seal(manifest, work))


def _plan_fields(plan: Plan) -> dict[str, Any]:
    """What the manifest repeats of the plan."""
    asked = [str(asked) for asked in plan.asked]
    return {
        "name": plan.schema.name,
        "cube": asked,
        "privacy": plan.privacy.to_dict(),
        "plan_digests": dict(plan.digests),
        "schema": plan.schema.to_dict(),
    }


def _places(plan: Plan) -> dict[str, str]:
    """The folder of each part."""
    return {COUNT: f"parts/{COUNT}", **{name: f"parts/{i:02}" for i, name in enumerate(plan.sums, 1)}}


def cube_table(release: CubeRelease, marginal: Marginal) -> pa.Table:
    """All numbers of the cells of a marginal, one row per cell."""
    names = [release.schema.names[i] for i in marginal]
    count = release.count.table(names)
    grid = np.indices(count.values.shape).reshape(len(names), -1) if names else np.zeros((0, 1), int)
    columns: dict[str, Any] = {
        name: pa.array(np.array(labels, dtype=object)[at], pa.string())
        for name, labels, at in zip(names, count.labels, grid, strict=True)
    }
    columns |= _numbers(Asked(COUNT), count)
    for asked in release.plan.asked:
        if asked.kind != COUNT:
            columns |= _numbers(asked, release.table(names, str(asked)))
    return pa.table(columns)


def _numbers(asked: Asked, table: Table) -> dict[str, Any]:
    if not table.is_average:
        numbers: Sequence[Any] = [table.values.reshape(-1), table.std_errors.reshape(-1)]
    else:
        ends = (table.values, table.low, table.high)
        numbers = [pa.array(values.reshape(-1), from_pandas=True) for values in ends]
    return dict(zip(asked.columns, numbers, strict=True))


def _write_table(release: CubeRelease, marginal: Marginal, work: Path, number: int) -> dict[str, Any]:
    names = [release.schema.names[i] for i in marginal]
    safe = re.sub(r"[^A-Za-z0-9_-]+", "_", "-".join(names))[:60] or "total"
    file = f"tables/{number:04}-{safe}.parquet"
    table = cube_table(release, marginal)
    stamped = table.replace_schema_metadata(file_stamp(private=release.private))
    pq.write_table(stamped, work / file, compression="zstd")
    return {"attributes": names, "file": file, "cells": table.num_rows}


def is_cube(folder: Path) -> bool:
    """Whether a folder holds a cube rather than a release of counts."""
    return "cube" in read_manifest(folder)


def open_cube(folder: Path, *, verify: bool = True) -> CubeRelease:
    """Open a cube; unless told not to, every file's checksum is verified."""
    manifest = read_manifest(folder)
    try:
        if verify:
            check_files(folder, manifest, NEEDED)
        plan = Plan.from_json(read_text(folder, "cube.json"))
        for name, value in {**_plan_fields(plan), "parts": _places(plan)}.items():
            if manifest.get(name) != value and (name in manifest or manifest["format"] == FORMAT):
                raise damaged(MANIFEST, f"`{name}` does not say what cube.json says")
        places = manifest["parts"].items()
        parts = {name: open_bundle(folder_inside(folder, place), verify=False) for name, place in places}
        count = parts.pop(COUNT)
        if any(part.private is not manifest["private"] for part in (count, *parts.values())):
            raise damaged("manifest.json", "does not say of its noise what the parts say")
        if {COUNT: count.plan.digest, **{n: r.plan.digest for n, r in parts.items()}} != plan.digests:
            raise damaged("parts", "are not those of cube.json")
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        raise damaged("manifest.json", "does not fit the cube and its parts") from None
    except BadInput as problem:
        raise damaged(problem.field, problem.problem) from None
    return CubeRelease(plan, count, parts)
