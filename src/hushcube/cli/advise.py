"""`hushcube advise`: what several budgets would bring, before anything is decided."""

from __future__ import annotations

import re
from typing import Any

import click

from hushcube.cli.command import option, verb
from hushcube.cli.options import BEFORE, DATA, GUARANTEE, HOW, OUTPUT, SOURCES, WHAT, as_json, taking
from hushcube.cli.output import note, print_json, print_page, progress_bar
from hushcube.durable import new_file
from hushcube.errors import BadInput
from hushcube.verbs.charting import new_picture

_EPSILON = "Budgets to look at, e.g. 0.1,1.  [default: 0.1,0.3,1,3]"
_DELTA = "What to look at beside epsilon.  [default: 1e-9]"
_MAX_ROWS = "What bounds would leave out of the data: NOT PRIVATE.  [default: 1,2,5,10]"
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
@taking(*SOURCES)
@option("--max-rows", "NUMBERS", _MAX_ROWS, group=DATA)
@option("--effort", "LEVEL", "How long to search: low, default or high.", group=HOW, default="default")
@option("--chart", "FILE", "Draw it, .png or .svg.", group=OUTPUT)
@as_json
def command(
    schema: str,
    workload: tuple[str, ...],
    epsilon: str | None,
    rho: str | None,
    max_rows: str | None,
    chart: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """See what several budgets would bring. Nothing is spent, and no data is read without --data.

    With --data its owner sees what several bounds on the rows of a person would leave out, NOT PRIVATE.

    \b
    hushcube advise people.yaml --workload "<=2-way" --neighbours add-remove --people 50000
    hushcube advise people.yaml --workload 2-way --neighbours add-remove --rho 0.01,0.1 --like published
    hushcube advise stays.yaml --workload 2-way --neighbours add-remove --data stays.csv --max-rows 1,3,10
    """
    from hushcube.verbs.advising import advise
    from hushcube.verbs.bounding import WARNING

    if not workload:
        raise BadInput("--workload", "is not given", "name the tables to publish, for example `--workload 2-way`")
    picture = None if chart is None else new_picture(chart, "--chart")
    budgets: dict[str, Any] = {
        name: [word.strip() for word in text.split(",")]
        for name, text in (("epsilon", epsilon), ("rho", rho))
        if text is not None
    }
    with progress_bar() as progress:
        found = advise(schema, list(workload), **budgets, **options, max_rows=_numbers(max_rows), progress=progress)
    if not found.private:
        note(WARNING)
    if picture is not None:
        with new_file(picture, "--chart") as file:
            file.write_bytes(found.picture(picture))
    if as_json:
        print_json(found.to_dict())
    else:
        print_page(found.page())
    if picture is not None:
        note(f"drew the chart {picture}{'' if found.private else ', which is NOT PRIVATE either'}")


def _numbers(text: str | None) -> list[Any] | None:
    """Whole numbers; what is none is left to the verb, which refuses it."""
    words = None if text is None else [word.strip() for word in text.split(",")]
    return words and [int(word) if re.fullmatch("[0-9]{1,9}", word) else word for word in words]
