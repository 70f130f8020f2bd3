"""hushcube for Python users: plan, release, open. The same steps as the command line's verbs.

>>> from hushcube import Attribute, Schema
>>> from hushcube.api import plan
>>> schema = Schema((Attribute(name="sex", values=("F", "M")), Attribute(name="age", range=(0, 9))))
>>> p = plan(schema, "<=2-way", rho="0.5", neighbours="add-remove")
>>> p.strategy, p.law
('residual', 'gaussian')
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

import numpy as np
from numpy.typing import NDArray

from hushcube import interrupts
from hushcube.bundle.change import add_face, check_change
from hushcube.bundle.cube import CubeRelease
from hushcube.bundle.cube_bundle import open_cube, write_cube
from hushcube.bundle.folder import open_bundle, write
from hushcube.bundle.manifest import steadily
from hushcube.bundle.published_face import PublishedFace
from hushcube.bundle.release import Release
from hushcube.designs.design import Budgets, Design, Recovery
from hushcube.designs.options import Options
from hushcube.designs.request import Request
from hushcube.durable import check_file, check_output, new_file
from hushcube.errors import BadInput, after
from hushcube.faces.value import FaceValue
from hushcube.model.form import QueryTable
from hushcube.model.privacy import Number, Privacy, exact_number
from hushcube.model.queries import query_table
from hushcube.model.schema import COUNT, Schema
from hushcube.model.workload import Workload, public_part
from hushcube.planning.inverse import Found, find_budget
from hushcube.planning.plan import Plan, make_cube, plain
from hushcube.planning.planner import Comparison
from hushcube.planning.planner import compare as compare_plans
from hushcube.planning.targets import Target
from hushcube.planning.what_if import Amount, Scenario
from hushcube.planning.what_if import what_if as compare_budgets
from hushcube.progress import Clock, Progress, silent
from hushcube.strategies import check_strategy

if TYPE_CHECKING:
    from hushcube.private.engines import BadRows

Queries = QueryTable | tuple[Sequence[str] | None, Any]
"""A matrix of queries: the attributes of a table (None: all), and rows over its cells, dense or sparse."""
_DEFAULT: Final = Options()
_WHOLE: Final = FaceValue()


def compare(
    schema: Schema,
    workload: str | Sequence[str],
    *,
    queries: Queries | None = None,
    neighbours: str,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
    rows_per_person: int | None = None,
    strategy: str = "all",
    budgets: Budgets | None = None,
    recovery: Recovery | None = None,
    options: Options = _DEFAULT,
    progress: Progress | None = None,
    settle: bool = True,
) -> Comparison:
    """Every applicable plan with its predicted error, and the best one; no data, no cost.

    With the strategy `auto`, a plan that is proven to be the best ends the comparison, unless it may not `settle`.
    """
    rows = schema.rows_per_person(rows_per_person)
    privacy = Privacy.of(epsilon=epsilon, rho=rho, delta=delta, neighbours=neighbours, rows_per_person=rows)
    request = Request(_workload(workload, schema, queries, options), privacy, options)
    return compare_plans(
        request, strategy=strategy, budgets=budgets, recovery=recovery, progress=progress, settle=settle
    )


def plan(
    schema: Schema,
    workload: str | Sequence[str],
    *,
    queries: Queries | None = None,
    neighbours: str,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
    rows_per_person: int | None = None,
    strategy: str = "auto",
    budgets: Budgets | None = None,
    recovery: Recovery | None = None,
    options: Options = _DEFAULT,
) -> Design:
    """The plan of one strategy, or of the best one; no data, no cost."""
    return compare(
        schema,
        workload,
        queries=queries,
        neighbours=neighbours,
        epsilon=epsilon,
        rho=rho,
        delta=delta,
        rows_per_person=rows_per_person,
        strategy=strategy,
        budgets=budgets,
        recovery=recovery,
        options=options,
    ).chosen


def plan_cube(
    schema: Schema,
    workload: str | Sequence[str],
    measures: str | Sequence[str],
    *,
    neighbours: str,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
    rows_per_person: int | None = None,
    shares: Mapping[str, Number] | None = None,
    strategy: str = "auto",
    budgets: Budgets | None = None,
    recovery: Recovery | None = None,
    options: Options = _DEFAULT,
) -> Plan:
    """Plan counts, sums and averages of the same tables under one guarantee; no data, no cost.

    `measures` are words such as `avg(wage)` and `sum(days)`; `shares` divides the guarantee among `count` and the
    measures, or else it is divided so that averages err least.
    """
    rows = schema.rows_per_person(rows_per_person)
    privacy = Privacy.of(epsilon=epsilon, rho=rho, delta=delta, neighbours=neighbours, rows_per_person=rows)
    needed = public_part(schema, workload)
    asked = Workload.parse(workload, plain(needed))

    def make(part: Privacy) -> Design:
        request = Request(asked, part, options)
        return compare_plans(request, strategy=strategy, budgets=budgets, recovery=recovery).chosen

    given = None if shares is None else {name: exact_number("shares", share) for name, share in shares.items()}
    return make_cube(privacy, needed, [measures] if isinstance(measures, str) else measures, given, make)


def release_cube(
    plan: Plan,
    data: object,
    *,
    out: str | Path | None = None,
    query: str | None = None,
    engine: str | None = None,
    bad_rows: BadRows = "refuse",
    seed: int | None = None,
    progress: Progress | None = None,
    tell_owner: Callable[[str], None] | None = None,
) -> CubeRelease:
    """Measure a cube on data, once: counts, sums and averages of the same rows, in memory or as a new folder `out`."""
    from hushcube.private.engines import open_source
    from hushcube.private.measure import carry_out_cube
    from hushcube.private.noise import SeededEntropy

    _check_seed(seed)
    for part in plan.parts.values():
        check_strategy(part)
    folder = None if out is None else Path(out)
    if folder is not None:
        check_output(folder)
    entropy = None if seed is None else SeededEntropy(seed)
    source = open_source(data, query=query, engine=engine, bad_rows=bad_rows)
    parts = carry_out_cube(plan, source, entropy=entropy, progress=progress, tell_owner=tell_owner)
    releases = {name: Release.of(*part) for name, part in parts.items()}
    published = CubeRelease(plan, releases.pop(COUNT), releases)
    if folder is None:
        return published
    write_cube(published, folder, progress=progress)
    with after(spent(folder)):
        return open_cube(folder, verify=False)


def find_plan(
    schema: Schema,
    workload: str | Sequence[str],
    *,
    queries: Queries | None = None,
    targets: Sequence[str | Target],
    guarantee: Amount = "epsilon",
    neighbours: str,
    delta: Number | None = None,
    rows_per_person: int | None = None,
    strategy: str = "auto",
    budgets: Budgets | None = None,
    recovery: Recovery | None = None,
    options: Options = _DEFAULT,
    progress: Progress | None = None,
) -> Found:
    """The smallest epsilon or rho found to meet all targets, and the plan that does; no data, no cost.

    Plans are made for the workload as a whole; one made for the targets alone might need less (`Found.searched`).

    >>> from hushcube import Attribute, Schema
    >>> schema = Schema((Attribute(name="sex", values=("F", "M")), Attribute(name="age", range=(0, 9))))
    >>> found = find_plan(schema, "<=2-way", targets=["age*sex: stderr<=20"], neighbours="add-remove")
    >>> found.budget, round(found.reached[0], 2)
    ('0.0707', 20.0)
    """
    if guarantee not in get_args(Amount):
        raise BadInput("guarantee", f"{guarantee!r} is unknown", "choose epsilon or rho")
    rows = schema.rows_per_person(rows_per_person)
    privacy = Privacy.of(**{guarantee: 1}, delta=delta, neighbours=neighbours, rows_per_person=rows)
    request = Request(_workload(workload, schema, queries, options), privacy, options)
    return find_budget(request, targets, strategy=strategy, budgets=budgets, recovery=recovery, progress=progress)


def what_if(
    schema: Schema,
    workload: str | Sequence[str],
    *,
    queries: Queries | None = None,
    neighbours: str,
    epsilon: Sequence[Number] | None = None,
    rho: Sequence[Number] | None = None,
    delta: Number | None = None,
    rows_per_person: int | None = None,
    strategy: str = "auto",
    budgets: Budgets | None = None,
    recovery: Recovery | None = None,
    options: Options = _DEFAULT,
    progress: Progress | None = None,
) -> tuple[Scenario, ...]:
    """The best plan under each of several budgets, epsilon or rho; no data, no cost."""
    kind = {name: 1 for name, values in (("epsilon", epsilon), ("rho", rho)) if values is not None}
    rows = schema.rows_per_person(rows_per_person)
    privacy = Privacy.of(**kind, delta=delta, neighbours=neighbours, rows_per_person=rows)
    request = Request(_workload(workload, schema, queries, options), privacy, options)
    values = list(epsilon if epsilon is not None else rho or ())
    return compare_budgets(request, values, strategy=strategy, budgets=budgets, recovery=recovery, progress=progress)


def release(
    plan: Design,
    data: object,
    *,
    out: str | Path | None = None,
    query: str | None = None,
    engine: str | None = None,
    bad_rows: BadRows = "refuse",
    seed: int | None = None,
    face: FaceValue | None = None,
    time_limit: float | None = None,
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
    """
    from hushcube.faces.face import check_face
    from hushcube.private.engines import open_source
    from hushcube.private.measure import carry_out
    from hushcube.private.noise import SeededEntropy

    _check_seed(seed)
    check_strategy(plan)
    folder = None if out is None else Path(out)
    if folder is not None:
        check_output(folder)
    if face is not None:
        check_face(plan, face, Clock(time_limit))
    source = open_source(data, query=query, engine=engine, bad_rows=bad_rows)
    entropy = None if seed is None else SeededEntropy(seed)
    published = Release.of(*carry_out(plan, source, entropy=entropy, progress=progress, tell_owner=tell_owner))
    if folder is None:
        return published if face is None else recover(published, face, time_limit=time_limit, progress=progress)
    write(published, folder, progress=progress)
    if face is None:
        with after(spent(folder)):
            return open_bundle(folder, verify=False)
    add = f"add the face with `hushcube recover {folder}` and the options of the face"
    with after(f"{spent(folder, 'unbiased release')}; {add}"):
        interrupts.resume()
        return recover(folder, face, time_limit=time_limit, progress=progress)


def recover(
    release: Release | str | Path,
    face: FaceValue = _WHOLE,
    *,
    out: str | Path | None = None,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> Release:
    """A release with one more face, from its stored measurements; costs no budget.

    A folder gets the face in its place, or stays as it is beside the new one, `out`; a release in memory stays there.
    """
    from hushcube.faces.face import make_face

    clock = Clock(time_limit, progress or silent)
    if isinstance(release, Release):
        made = make_face(release.plan, release.source.measurement(), face, clock)
        return release.with_face(PublishedFace.of(made))
    folder, new = Path(release), None if out is None else Path(out)
    check_change(folder, in_place=new is None)
    opened = open_bundle(folder)
    made = make_face(opened.plan, opened.source.measurement(), face, clock)
    add_face(folder, PublishedFace.of(made), out=new, progress=progress)
    with after(f"the face {made.name} is published in {new or folder}"):
        return open_bundle(new or folder, verify=False)


@dataclass(frozen=True, eq=False)
class SyntheticPeople:
    """Made-up people: `codes` are positions (people, attributes) in the schema's labels."""

    codes: NDArray[np.integer]
    report: dict[str, Any]
    private: bool
    """False where the noise of their release came from a seed."""


def synthesize(
    release: Release | str | Path,
    face: FaceValue = _WHOLE,
    *,
    out: str | Path | None = None,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> SyntheticPeople:
    """People whose tables match a release; those of its face-valid face, where they are asked for as they are."""
    from hushcube.bundle.people import write_people
    from hushcube.faces.face import make_face

    if out is not None:
        check_file(Path(out))

    def read() -> tuple[Release, NDArray[np.integer] | None]:
        opened = release if isinstance(release, Release) else open_bundle(Path(release))
        published = opened.faces.get(face.name) if face == _WHOLE else None
        return opened, None if published is None or published.read_people is None else published.read_people()

    opened, codes = read() if isinstance(release, Release) else steadily(Path(release), read)
    report: dict[str, Any] = {"found_by": "the face-valid face"}
    clock = Clock(time_limit, progress or silent)
    if codes is None:
        made = make_face(opened.plan, opened.source.measurement(), face, clock)
        if made.people is None:
            raise BadInput("face", "has no people", "ask for the kind integral")
        codes, report = made.people, made.report
    people = SyntheticPeople(codes, report, opened.private)
    if out is not None:
        clock.check("writing synthetic people")
        with new_file(Path(out)) as file:
            write_people(people.codes, opened.schema, file, private=opened.private)
    return people


def spent(folder: str | Path, what: str = "release") -> str:
    """What is true once a release is published, whatever happens then."""
    return f"the {what} is published in {folder} and its budget is spent: do not release the data again"


def _check_seed(seed: int | None) -> None:
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
        raise BadInput(
            "seed", "is not a whole number of at least 0", "give such a number, or none: seeds are for tests"
        )


def open_release(folder: str | Path, *, verify: bool = True) -> Release:
    """Open a published folder; every checksum is verified unless told otherwise."""
    return open_bundle(Path(folder), verify=verify)


def _workload(words: str | Sequence[str], schema: Schema, queries: Queries | None, options: Options) -> Workload:
    """What is asked for, of a schema that holds nothing of mapping files that is not needed."""
    matrix = () if options.matrix is None else [attribute.name for attribute in options.matrix.attributes]
    needed = public_part(schema, words, matrix if queries is None else None)
    if queries is None:
        return Workload.parse(words, needed)
    if isinstance(queries, QueryTable):
        own = tuple(needed[attribute.name] for attribute in queries.attributes)
        return Workload.parse(words, needed, replace(queries, attributes=own))
    return Workload.parse(words, needed, query_table(needed, *queries))
