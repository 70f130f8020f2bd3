"""Verify a published release: that it is whole, says what it is, and keeps what its faces promise.

    files          the files are those of the manifest, which fits the plan
    privacy        the plan's cost is within its guarantee, and PRIVACY.md says so
    measurements   the unbiased tables are what the plan's recovery gives from the noisy numbers
    errors         standard errors are those that the plan predicts
    labels         every table has all its cells, in schema order
    quality        flags are those of the numbers beside them, by the thresholds of the schema
    FACE: cells, sums, forms, people, facts      the promise of each face
    FACE: estimates                              estimated errors are those that its tables and the measurement give
    sum(MEASURE): cells, sums                    what is published of each measure

Only published files are read. This is no signature: whoever rewrites a whole release can make one that verifies.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from hushcube.bundle import earlier_cubes
from hushcube.bundle.checks.cells import CellChecks, Shared
from hushcube.bundle.checks.files import Opened, check_checksums, check_schema, open_release
from hushcube.bundle.checks.sums import tolerance
from hushcube.bundle.checks.tables import noise_scale
from hushcube.bundle.checks.verdict import Check, Verdict
from hushcube.bundle.earlier_cubes import is_earlier_cube
from hushcube.bundle.folder import index_margins, open_bundle, packs_of, read_measurement
from hushcube.bundle.manifest import FLAGGED, MANIFEST, measurement_files, read_manifest, state_of
from hushcube.bundle.part import RecoveredTables
from hushcube.bundle.reading import inside, parquet, read_text
from hushcube.bundle.release import Release
from hushcube.bundle.statement import NOT_PRIVATE, STATEMENT, earlier_cube_statement
from hushcube.bundle.tables import Entry, table_margins
from hushcube.errors import BundleError
from hushcube.faces.value import UNBIASED
from hushcube.model.arrays import Marginal
from hushcube.model.schema import COUNT
from hushcube.progress import Progress, silent


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
    files = Check("files", "the files are those of the manifest, and the manifest fits the plan")
    privacy = Check("privacy", "the plan's cost is within its guarantee, and PRIVACY.md says so")
    try:
        manifest = read_manifest(folder)
    except BundleError as problem:
        if problem.field != MANIFEST:  # there is none
            raise
        files.add(f"{problem.field}: {problem.problem}")
        return Verdict((files,), None)
    private = manifest["private"] if isinstance(manifest.get("private"), bool) else None
    if is_earlier_cube(manifest):
        return _verify_earlier_cube(folder, manifest, private, tell, allow_seeded=allow_seeded)
    broken = check_checksums(folder, manifest, files, tell)
    opened = open_release(folder, manifest, broken, files, privacy)
    if private is False and not allow_seeded:
        privacy.add(NOT_PRIVATE)
    if opened is None:
        return Verdict((files, privacy), private)
    measurements = Check("measurements", "the unbiased tables are what the plan recovers from the measurements")
    errors = Check("errors", "standard errors are those that the plan predicts")
    labels = Check("labels", "every table has all its cells, in schema order")
    flags = Check("quality", "flags are those of the numbers beside them, by the thresholds of the schema")
    recovered = _recovered(opened, measurement_files(opened.plan, manifest["format"]), measurements)
    _check_margins(opened, manifest, errors)
    shared = Shared(opened, recovered, measurements, errors, labels, flags, tell)
    every = [*((face, COUNT) for face in opened.entries), *((UNBIASED, name) for name in opened.plan.sums)]
    cells = [check for face, part in every for check in CellChecks(shared, face, part).run()]
    flagged = [flags] if opened.version >= FLAGGED else []
    return Verdict((files, privacy, measurements, errors, labels, *flagged, *cells), private)


def _check_margins(opened: Opened, manifest: Entry, errors: Check) -> None:
    """The margins in the indexes of packs are those that the plan predicts."""
    for pack in packs_of(manifest):
        try:
            rows, found = index_margins(opened.folder, pack, opened.plan.schema)
            expected = table_margins(opened.plan.count, rows)
        except (BundleError, KeyError, TypeError, IndexError):
            continue  # an index that cannot be read is reported as a file
        errors.checked += len(rows)
        wrong = ~np.isclose(found, expected, rtol=1e-9, atol=0.0, equal_nan=True)
        if wrong.any():
            errors.add(f"{pack['index']}: {int(wrong.sum()):,} margins are not those that the plan predicts")


def _recovered(opened: Opened, files: dict[str, str], measurements: Check) -> dict[str, RecoveredTables]:
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


def _same_column(found: pa.ChunkedArray, expected: pa.ChunkedArray, noise: float) -> bool:
    """Whether columns hold the same; numbers but for rounding, which differs between one table and many at once."""
    if not pa.types.is_floating(expected.type):
        return bool(found.equals(expected))
    if found.is_null() != expected.is_null():
        return False
    numbers, wanted = (column.drop_null().to_numpy() for column in (found, expected))
    return bool((np.abs(numbers - wanted) <= tolerance(wanted[None], noise=noise)).all())


def _verify_earlier_cube(
    folder: Path, manifest: Entry, private: bool | None, tell: Progress, *, allow_seeded: bool
) -> Verdict:
    """The parts like any release, and what is made of them."""
    files = Check("cube files", "the files are those of the manifest, and the parts are those of the cube")
    tables = Check("cube tables", "counts, sums and averages are those of the parts")
    broken = check_checksums(folder, manifest, files, tell, earlier_cubes.NEEDED)
    try:
        cube = open_bundle(folder, verify=False)
    except BundleError as problem:
        files.add(f"{problem.field}: {problem.problem}")
        return Verdict((files,), private)
    told = earlier_cube_statement(cube.plan, private=cube.private)
    if STATEMENT not in broken and read_text(folder, STATEMENT) != told:
        files.add("PRIVACY.md: is not the statement that the cube gives")
    check_schema(folder, cube.plan, earlier_cubes.CUBE, broken, files)
    listed = _listed(manifest, cube, files)
    # sums are those of whole numbers times a step, around a center
    steps = [max(float(m.resolution), abs(float(m.center)), 1.0) for m in cube.schema.measures]
    noise = max(map(noise_scale, cube.plan.designs.values())) * max(steps, default=1.0)
    for marginal in cube.plan.workload.published:
        tables.checked += 1
        file = listed.get(marginal)
        if file is None:
            continue
        try:
            numbers = earlier_cubes.cube_table(cube, marginal)
            with parquet(folder, file) as opened:
                fits = opened.metadata.num_rows == numbers.num_rows and opened.schema_arrow == numbers.schema
                columns = zip(opened.read().columns, numbers.columns, strict=True) if fits else ()
                fits = fits and all(_same_column(*pair, noise) for pair in columns)
        except BundleError:
            if file not in broken:
                tables.add(f"{cube.schema.describe(marginal)}: its table, or one of a part, cannot be read")
            continue
        if not fits:
            tables.add(f"{file}: does not hold the numbers of the parts")
    checks = [files, tables]
    for name, place in manifest["parts"].items():
        part = verify(inside(folder, place, is_folder=True), tell, allow_seeded=allow_seeded)
        checks += [replace(check, name=f"{name}: {check.name}") for check in part.checks]
    return Verdict(tuple(checks), cube.private)


def _listed(manifest: Entry, cube: Release, files: Check) -> dict[Marginal, str]:
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
