"""The verbs around a release: measure once and publish, open it, add faces, synthesize people."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from hushcube import interrupts
from hushcube.bundle.change import add_face, check_change
from hushcube.bundle.earlier_edition import face_with_edition
from hushcube.bundle.folder import open_bundle
from hushcube.bundle.manifest import steadily
from hushcube.bundle.part import PublishedFace
from hushcube.bundle.release import Release
from hushcube.bundle.writing import write_people
from hushcube.durable import check_file, check_output, new_file
from hushcube.errors import BadInput, after
from hushcube.faces.value import FaceValue, read_face
from hushcube.planning.plan import Plan
from hushcube.progress import Clock, Progress, silent
from hushcube.strategies import check_strategy
from hushcube.verbs.charging import paying

if TYPE_CHECKING:
    from hushcube.faces.maker import Face
    from hushcube.ledger.ledger import Ledger
    from hushcube.private.engines import BadRows

_WHOLE: Final = FaceValue()


def release(
    plan: Plan | str | Path,
    data: object,
    *,
    out: str | Path | None = None,
    query: str | None = None,
    engine: str | None = None,
    bad_rows: BadRows = "refuse",
    seed: int | None = None,
    face: FaceValue | str | None = None,
    time_limit: float | None = None,
    ledger: Ledger | str | Path | None = None,
    account: str | None = None,
    part: str | None = None,
    key: str | None = None,
    progress: Progress | None = None,
    tell_owner: Callable[[str], None] | None = None,
) -> Release:
    """Measure a plan on data, once, and publish: in memory, or as a new folder `out`.

    `data` is a path (CSV, Parquet, DuckDB), a table of Postgres (`postgresql://HOST/DATABASE#TABLE`) or Spark, or a
    pandas, polars or Arrow frame; `engine="spark"` reads Parquet files with Spark. With a `seed` the noise can be
    repeated by anyone who knows it: the release is stamped NOT PRIVATE. A `face` adds tables at face value; whatever
    can be refused is refused before anything is measured, and a folder is published before the face is made.
    Rows that cannot be read or do not fit the schema refuse the release, unless `bad_rows="missing"` counts them as
    missing. `tell_owner` is called with remarks that are for the owner of the data only: how many rows there were.

    With a `ledger` the release is charged to an `account` of it (or to its `part`) before anything is measured. The
    same `key` never charges or draws twice: it goes on where nothing was drawn, and else opens what was published.
    Without a key it is that of the account, the plan and the folder, so that a repeated command has the same one.
    """
    from hushcube.faces.checking import check_face
    from hushcube.private.engines import open_source
    from hushcube.private.measure import carry_out, check
    from hushcube.private.noise import SeededEntropy

    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
        fix = "give such a number, or none: seeds are for tests"
        raise BadInput("seed", "is not a whole number of at least 0", fix)
    plan = plan if isinstance(plan, Plan) else Plan.read(plan)
    for design in plan.designs.values():
        check_strategy(design)
    folder, asked = None if out is None else Path(out), face
    if face is not None:
        face = face_with_edition(read_face(face, plan.count.schema), plan.count)
        check_face(plan.count, face, Clock(time_limit))
    with paying(plan, ledger, account, part, key, data=(data, query), folder=folder, seed=seed) as payment:
        repeated = payment.is_published(tell_owner)
        if not repeated:
            if folder is not None:
                check_output(folder)
            source = payment.holding(open_source(data, query=query, engine=engine, bad_rows=bad_rows))
            check(plan)
            payment.charge(tell_owner)
            with payment.carrying_out(tell_owner):
                entropy = None if seed is None else SeededEntropy(seed)
                done, measured = carry_out(
                    plan,
                    source,
                    entropy=entropy,
                    progress=progress,
                    tell_owner=tell_owner,
                    before_noise=payment.begin,
                )
                published = Release.of(done, measured, payment.receipt)
                if folder is not None:
                    published.save(folder, progress=progress)
                    payment.publish(done)
    if folder is None:
        return published if face is None else recover(published, face, time_limit=time_limit, progress=progress)
    if face is None or (repeated and face.name in open(folder, verify=False).faces):
        with after(spent(folder)):
            return open(folder, verify=False)
    add = f"add the face with `hushcube recover {folder} --face {quote(str(asked))}`"
    with after(f"{spent(folder, 'unbiased release')}; {add}"):
        interrupts.resume()
        return recover(folder, face, time_limit=time_limit, progress=progress)


def recover(
    release: Release | str | Path,
    face: FaceValue | str = _WHOLE,
    *,
    out: str | Path | None = None,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> Release:
    """A release with one more face of its counts, from its stored measurements; costs no budget.

    A folder gets the face in its place, or stays as it is beside the new one, `out`; a release in memory stays there.
    """
    clock = Clock(time_limit, progress or silent)
    if isinstance(release, Release):
        return release.with_face(PublishedFace.of(_make_face(release, face, clock)))
    folder, new = Path(release), None if out is None else Path(out)
    check_change(folder, in_place=new is None)
    made = _make_face(open_bundle(folder), face, clock)
    add_face(folder, PublishedFace.of(made), out=new, progress=progress)
    with after(f"the face {made.name} is published in {new or folder}"):
        return open(new or folder, verify=False)


def _make_face(release: Release, face: FaceValue | str, clock: Clock) -> Face:
    from hushcube.faces.face import make_face

    counts = release.plan.count
    value = face_with_edition(read_face(face, counts.schema), counts)
    return make_face(counts, release.source.measurement(), value, clock)


@dataclass(frozen=True, eq=False)
class SyntheticPeople:
    """Made-up people: `codes` are positions (people, attributes) in the schema's labels."""

    codes: NDArray[np.integer]
    report: dict[str, Any]
    private: bool
    """False where the noise of their release came from a seed."""


def synthesize(
    release: Release | str | Path,
    face: FaceValue | str = _WHOLE,
    *,
    out: str | Path | None = None,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> SyntheticPeople:
    """People whose tables match a release; those of its face-valid face, where they are asked for as they are."""
    if out is not None:
        check_file(Path(out))

    def read() -> tuple[Release, NDArray[np.integer] | None]:
        opened = release if isinstance(release, Release) else open_bundle(Path(release))
        published = opened.faces.get(_WHOLE.name) if face in (_WHOLE, str(_WHOLE)) else None
        return opened, None if published is None or published.read_people is None else published.read_people()

    opened, codes = read() if isinstance(release, Release) else steadily(Path(release), read)
    report: dict[str, Any] = {"found_by": "the face-valid face"}
    clock = Clock(time_limit, progress or silent)
    if codes is None:
        made = _make_face(opened, face, clock)
        if made.people is None:
            raise BadInput("face", "has no people", "ask for the kind integral")
        codes, report = made.people, made.report
    people = SyntheticPeople(codes, report, opened.private)
    if out is not None:
        with new_file(Path(out)) as file:
            write_people(people.codes, opened.schema, file, private=opened.private)
    return people


def spent(folder: str | Path, what: str = "release") -> str:
    """What is true once a release is published, whatever happens then."""
    return f"the {what} is published in {folder} and its budget is spent: do not release the data again"


def open(folder: str | Path, *, verify: bool = True) -> Release:  # noqa: A001 - what a reader does with a folder
    """Open a published folder; every checksum is verified unless told otherwise."""
    return open_bundle(Path(folder).absolute(), verify=verify)  # wherever one goes then
