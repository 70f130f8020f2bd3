"""`hushcube advise`: what several budgets would bring, before anything is decided."""

from __future__ import annotations

from typing import Any

import click

from hushcube.cli.command import option, verb
from hushcube.cli.options import BEFORE, GUARANTEE, HOW, OUTPUT, WHAT, as_json
from hushcube.cli.output import note, print_json, print_page, progress_bar
from hushcube.durable import new_file
from hushcube.errors import BadInput
from hushcube.verbs.charting import new_picture

_EPSILON = "Budgets to look at, e.g. 0.1,1.  [default: 0.1,0.3,1,3]"
_DELTA = "What to look at beside epsilon.  [default: 1e-9]"
_LIKE = "An earlier release that says how people are spread."


@verb("advise")
@click.argument("schema")
@option("--workload", "WORDS", "Tables: 2-way, 'age*sex'; repeatable.", group=WHAT, multiple=True)
@option("--epsilon", "NUMBERS", _EPSILON, group=GUARANTEE)
@option("--rho", "NUMBERS", "The same for zero-concentrated privacy.", group=GUARANTEE)
@option("--delta", "NUMBER", _DELTA, group=GUARANTEE)
@option("--neighbours", "RELATION", "add-remove or replace-one; no default.", group=GUARANTEE)
@option("--rows-per-person", "NUMBER", "The most rows of one person.", group=GUARANTEE, type=int)
@option("--people", "NUMBER", "How many there are, spread evenly unless --like says more.", group=BEFORE, type=int)
@option("--like", "FOLDER", _LIKE, group=BEFORE)
@option("--effort", "LEVEL", "How long to search: low, default or high.", group=HOW, default="default")
@option("--chart", "FILE", "Draw it, .png or .svg.", group=OUTPUT)
@as_json
def command(
    schema: str,
    workload: tuple[str, ...],
    epsilon: str | None,
    rho: str | None,
    chart: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """See what several budgets would bring. No data is read, and nothing is spent.

    \b
    hushcube advise people.yaml --workload "<=2-way" --neighbours add-remove --people 50000
    hushcube advise people.yaml --workload 2-way --neighbours add-remove --rho 0.01,0.1 --like published
    """
    from hushcube.verbs.advising import advise

    if not workload:
        raise BadInput("--workload", "is not given", "name the tables to publish, for example `--workload 2-way`")
    picture = None if chart is None else new_picture(chart, "--chart")
    budgets: dict[str, Any] = {
        name: [word.strip() for word in text.split(",")]
        for name, text in (("epsilon", epsilon), ("rho", rho))
        if text is not None
    }
    with progress_bar() as progress:
        found = advise(schema, list(workload), **budgets, **options, progress=progress)
    if picture is not None:
        with new_file(picture, "--chart") as file:
            file.write_bytes(found.picture(picture))
    if as_json:
        print_json(found.to_dict())
    else:
        print_page(found.page())
    if picture is not None:
        note(f"drew the chart {picture}")
