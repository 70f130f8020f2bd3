"""`hushcube recover`: another face of a release, from its stored measurements, without new budget."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hushcube.cli.command import option, verb
from hushcube.cli.options import FACES, HOW, OUTPUT, as_json, taking
from hushcube.cli.output import print_about, progress_bar
from hushcube.errors import BadInput
from hushcube.shown import number
from hushcube.text import visible

if TYPE_CHECKING:
    from hushcube.model.schema import Schema


@verb("recover")
@click.argument("folder", metavar="BUNDLE")
@taking(*FACES)
@option("--like", "BUNDLE", "An earlier edition to guess tables from (method=entropy).", group=HOW)
@option("--out", "FOLDER", "Write a new bundle there and leave BUNDLE as it is.", group=OUTPUT)
@as_json
def command(
    folder: str, face: str | None, time_limit: float | None, like: str | None, out: str | None, as_json: bool
) -> None:
    """Add a face to a release: tables that add up, without negative cells, or in whole numbers.

    Everything is computed from the stored noisy measurements: no data is read, no budget is spent.
    The unbiased tables and their standard errors stay.

    \b
    hushcube recover published                                  (whole numbers)
    hushcube recover published --face nonnegative:facts=facts.yaml
    hushcube recover published --face consistent:norm=l1 --out published-l1
    hushcube recover published --face integral:method=entropy --like published-last-year
    """
    import hushcube as hc
    from hushcube.bundle.change import check_change
    from hushcube.durable import check_output
    from hushcube.faces.value import read_face
    from hushcube.verbs.releasing import recover

    if out is not None:
        check_output(Path(out))
    check_change(Path(folder), in_place=out is None)
    value = read_face(face or "integral", hc.open(folder).schema)
    if like is not None:
        if value.like is not None:
            raise BadInput("--like", "is given twice, once with the face", "give it once")
        value = value.with_options({"like": like})
    with progress_bar() as progress:
        published = recover(folder, value, out=out, time_limit=time_limit, progress=progress)
    made = published.face(value.name)
    place = out or folder

    def text() -> None:
        click.echo(f"added the face {made.name} to {place}: {describe(made.description['report'], published.schema)}")
        shown, checked = f"hushcube show {place} --face {made.name}", f"hushcube verify {place}"
        click.echo(f"look at it with: {shown}  |  check it with: {checked}")

    document = {"out": place, "face": made.name, **made.told}
    print_about(published.private, as_json=as_json, document=lambda: document, text=text)


def describe(report: dict[str, Any], schema: "Schema") -> str:
    """What came out, in a line."""
    parts = [f"found by {report['found_by']}"]
    if "distance" in report:
        parts.append(f"distance {number(report['distance'])} from the noisy tables")
    if (certificate := report.get("certificate")) is not None:
        parts.append(_proof(certificate["share_of_noise"], report))
    if "full_table" in report:
        parts.append("held together by one full table")
    if report.get("stopped") == "time":
        parts.append("the best within the time limit")
    if "people" in report:
        parts.append(f"{report['people']:,} synthetic {visible(schema.unit_noun)}")
    if (errors := report.get("measured_errors")) is not None:
        share = number(100 * errors["mean_share"])
        parts.append(f"tables off by {share}% of all {visible(schema.unit_noun)} on average (measured)")
    if (bound := report.get("bound")) is not None:
        parts.append(
            f"theorem {bound['theorem']}: L1 error of every table at most {number(bound['largest_l1_error'])} "
            f"(sharper: {number(bound['largest_l1_error_sharper'])}) with probability {bound['probability']:g}"
        )
    if "phantom_people" in report:
        parts.append(f"{report['phantom_people']:,} phantom {visible(schema.unit_noun)} added to the total")
    return ", ".join(parts)


def _proof(share: float, report: dict[str, Any]) -> str:
    """How near tables are to the nearest, or how far they were moved where a bound beyond the noise says nothing.

    Tables that follow firm guesses are near to the nearest long before that is proved.
    """
    if share > 1 and (moved := report.get("rms_from_fit")) is not None:
        return f"moved by {number(moved)} a cell to add up without negative cells"
    return f"proved within {number(100 * share)}% of the noise from the nearest"
