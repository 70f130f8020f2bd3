"""Verify a published release: that it is whole, says what it is, and keeps what its faces promise.

    files          the files are those of the manifest, which fits the plan
    privacy        the plan's cost is within its guarantee, and PRIVACY.md says so
    measurements   the unbiased tables are what the plan's recovery gives from the noisy numbers
    errors         standard errors are those that the plan predicts
    labels         every table has all its cells, in schema order
    FACE: cells, sums, forms, people, facts      the promise of each face
    sum(MEASURE): cells, sums                    what is published of each measure

Only published files are read. This is no signature: whoever rewrites a whole release can make one that verifies.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hushcube.bundle import earlier_cubes
from hushcube.bundle.checks.face import FaceChecks
from hushcube.bundle.checks.files import Opened, check_checksums, open_release
from hushcube.bundle.checks.measure import MeasureChecks
from hushcube.bundle.checks.sums import tolerance
from hushcube.bundle.checks.tables import noise_scale
from hushcube.bundle.checks.verdict import Check, Findings, Verdict
from hushcube.bundle.earlier_cubes import is_earlier_cube
from hushcube.bundle.folder import open_bundle, read_measurement
from hushcube.bundle.index import index_margins
from hushcube.bundle.manifest import MANIFEST, STATEMENT, measurement_files, read_manifest, state_of
from hushcube.bundle.part import RecoveredTables
from hushcube.bundle.reading import folder_inside, parquet, read_text
from hushcube.bundle.release import Release
from hushcube.bundle.stamp import NOT_PRIVATE
from hushcube.bundle.tables import table_margins
from hushcube.errors import BadInput, BundleError
from hushcube.model.arrays import Marginal
from hushcube.model.schema import COUNT, Schema
from hushcube.progress import Progress, silent

__all__ = ["Check", "Verdict", "verify"]


def verify(folder: str | Path, progress: Progress | None = None, *, allow_seeded: bool = False) -> Verdict:
    """Check everything that can be checked; raises BundleError where there is no manifest, so no release at all.

    Noise from a seed protects nobody, so that such a release fails unless it is expected (`allow_seeded`). A release
    that gets a face meanwhile is looked at again.
    """
    folder = Path(folder)
    while True:
        before = state_of(folder)
        verdict = _verify(folder, progress or silent, allow_seeded=allow_seeded)
        if verdict.holds or state_of(folder) == before:
            return verdict


def _verify(folder: Path, tell: Progress, *, allow_seeded: bool) -> Verdict:
    files = Findings("files", "the files are those of the manifest, and the manifest fits the plan")
    privacy = Findings("privacy", "the plan's cost is within its guarantee, and PRIVACY.md says so")
    try:
        manifest = read_manifest(folder)
    except BundleError as problem:
        if problem.field != MANIFEST:  # there is none
            raise
        files.add(f"{problem.field}: {problem.problem}")
        return Verdict((files.check(),), None)
    if is_earlier_cube(manifest):
        return _verify_earlier_cube(folder, manifest, tell, allow_seeded=allow_seeded)
    private = _flag(manifest)
    broken = check_checksums(folder, manifest, files, tell)
    opened = open_release(folder, manifest, broken, files, privacy)
    if private is False and not allow_seeded:
        privacy.add(NOT_PRIVATE)
    if opened is None:
        return Verdict((files.check(), privacy.check()), private)
    measurements = Findings("measurements", "the unbiased tables are what the plan recovers from the measurements")
    errors = Findings("errors", "standard errors are those that the plan predicts")
    labels = Findings("labels", "every table has all its cells, in schema order")
    recovered = _recovered(opened, measurement_files(opened.plan, manifest["format"]), measurements)
    _check_margins(opened, manifest, errors)
    findings = [files, privacy, measurements, errors, labels]
    for face in opened.entries:
        findings += FaceChecks(opened, face, recovered.get(COUNT), (labels, errors, measurements), tell).run()
    for name in opened.plan.sums:
        whole = recovered if recovered.keys() >= {COUNT, name} else None
        findings += MeasureChecks(opened, name, whole, (errors, measurements), tell).run()
    return Verdict(tuple(finding.check() for finding in findings), private)


def _check_margins(opened: Opened, manifest: dict[str, Any], errors: Findings) -> None:
    """The margins in the indexes of packs are those that the plan predicts."""
    for pack in (entry for entry in manifest.get("tables", ()) if isinstance(entry, dict) and "index" in entry):
        try:
            rows, found = index_margins(opened.folder, pack, opened.plan.schema)
            expected = table_margins(opened.plan.count, rows)
        except (BundleError, KeyError, TypeError, IndexError):
            continue  # an index that cannot be read is reported as a file
        errors.checked += len(rows)
        wrong = ~np.isclose(found, expected, rtol=1e-9, atol=0.0, equal_nan=True)
        if wrong.any():
            errors.add(f"{pack['index']}: {int(wrong.sum()):,} margins are not those that the plan predicts")


def _flag(manifest: dict[str, Any]) -> bool | None:
    """What a manifest says about its noise, if it says anything."""
    private = manifest.get("private")
    return private if isinstance(private, bool) else None


def _recovered(opened: Opened, files: dict[str, str], measurements: Findings) -> dict[str, RecoveredTables]:
    """The tables that the measurements of each part give, if they can be read."""
    found: dict[str, RecoveredTables] = {}
    for name, file in files.items():
        design = opened.plan.designs[name]
        try:
            measured = read_measurement(opened.folder, file, design, private=opened.private)
            found[name] = RecoveredTables(design, measured)
        except BundleError as problem:
            if file not in opened.broken:
                measurements.add(f"{file}: {problem.problem}")
    return found


def _are_alike(found: pa.Table, expected: pa.Table, noise: float) -> bool:
    """Whether two tables hold the same; numbers but for rounding, which differs between one table and many at once."""
    same = (_same_column(*columns, noise) for columns in zip(found.columns, expected.columns, strict=True))
    return found.schema == expected.schema and all(same)


def _same_column(found: pa.ChunkedArray, expected: pa.ChunkedArray, noise: float) -> bool:
    if not pa.types.is_floating(expected.type):
        return bool(found.equals(expected))
    if found.is_null() != expected.is_null():
        return False
    numbers, wanted = (column.drop_null().to_numpy() for column in (found, expected))
    return bool((np.abs(numbers - wanted) <= tolerance(wanted[None], noise=noise)).all())


def _verify_earlier_cube(folder: Path, manifest: dict[str, Any], tell: Progress, *, allow_seeded: bool) -> Verdict:
    """The parts like any release, and what is made of them."""
    files = Findings("cube files", "the files are those of the manifest, and the parts are those of the cube")
    tables = Findings("cube tables", "counts, sums and averages are those of the parts")
    broken = check_checksums(folder, manifest, files, tell, earlier_cubes.NEEDED)
    try:
        cube = open_bundle(folder, verify=False)
    except BundleError as problem:
        files.add(f"{problem.field}: {problem.problem}")
        return Verdict((files.check(),), _flag(manifest))
    if STATEMENT not in broken and read_text(folder, STATEMENT) != earlier_cubes.statement_of(cube):
        files.add("PRIVACY.md: is not the statement that the cube gives")
    _check_schema(folder, cube, broken, files)
    listed, noise = _listed(manifest, cube, files), _noise_scale(cube)
    for marginal in cube.plan.workload.published:
        tables.checked += 1
        file = listed.get(marginal)
        if file is None:
            continue
        try:
            numbers = earlier_cubes.cube_table(cube, marginal)
            with parquet(folder, file) as found:
                fits = found.metadata.num_rows == numbers.num_rows and _are_alike(found.read(), numbers, noise)
        except BundleError:
            if file not in broken:
                tables.add(f"{cube.schema.describe(marginal)}: its table, or one of a part, cannot be read")
            continue
        if not fits:
            tables.add(f"{file}: does not hold the numbers of the parts")
    checks = [files.check(), tables.check()]
    for name, place in manifest["parts"].items():
        part = verify(folder_inside(folder, place), tell, allow_seeded=allow_seeded)
        checks += [replace(check, name=f"{name}: {check.name}") for check in part.checks]
    return Verdict(tuple(checks), cube.private)


def _noise_scale(cube: Release) -> float:
    """As for a release; sums are those of whole numbers times a step, around a center."""
    steps = [max(float(m.resolution), abs(float(m.center)), 1.0) for m in cube.schema.measures]
    return max(noise_scale(part) for part in cube.plan.designs.values()) * max(steps, default=1.0)


def _check_schema(folder: Path, cube: Release, broken: frozenset[str], files: Findings) -> None:
    try:
        if Schema.from_yaml(read_text(folder, "schema.yaml")) != cube.plan.schema.declared:
            files.add("schema.yaml: does not declare the schema of cube.json")
    except (ValueError, BadInput):
        if "schema.yaml" not in broken:
            files.add("schema.yaml: cannot be read")


def _listed(manifest: dict[str, Any], cube: Release, files: Findings) -> dict[Marginal, str]:
    """The file of each table; a list that does not fit the cube is reported."""
    schema = cube.schema
    asked = {tuple(schema.names[i] for i in m): m for m in cube.plan.workload.published}
    found: dict[Marginal, str] = {}
    entries = manifest.get("tables")
    for number, entry in enumerate(entries if isinstance(entries, list) else [], 1):
        try:
            marginal, file = asked[tuple(entry["attributes"])], entry["file"]
            if entry["cells"] != schema.cells(marginal) or file not in manifest["checksums"] or marginal in found:
                raise ValueError
            found[marginal] = file
        except (KeyError, TypeError, ValueError, AttributeError):
            files.add(f"manifest.json: entry {number:,} of `tables` is none of the cube's tables, or is there twice")
    for names in (names for names, marginal in asked.items() if marginal not in found):
        files.add(f"manifest.json: does not list the table {'*'.join(names) or 'total'}")
    return found
