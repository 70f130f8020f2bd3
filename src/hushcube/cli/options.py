"""Options that several verbs share, and reading the files they name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hushcube.cli.command import Decorated, explaining, option
from hushcube.errors import BadInput
from hushcube.progress import Progress

if TYPE_CHECKING:
    from hushcube.model.schema import Schema
    from hushcube.planning.question import Comparison
    from hushcube.strategies import Choice


WHAT = "What to publish"
GUARANTEE = "Guarantee"
HOW = "How"
BEFORE = "Before spending"
DATA = "Data"
OUTPUT = "Output"

_TABLES = (
    option("--schema", group=WHAT, metavar="FILE", help="The schema file (YAML)."),
    option("--workload", group=WHAT, multiple=True, metavar="WORDS", help="Tables: 2-way, 'age*sex'; repeatable."),
    option("--queries", group=WHAT, metavar="[A*B:]FILE", help="A matrix of queries over the cells of a table."),
)
_MEASURES = (
    option(
        "--measure",
        "measures",
        group=WHAT,
        multiple=True,
        metavar="WORDS",
        help="sum(NAME) or avg(NAME) beside the counts; repeatable.",
    ),
    option("--shares", group=WHAT, metavar="NAME=SHARE,...", help="Parts of the budget for count and each measure."),
)
_PRIVACY = (
    option("--epsilon", group=GUARANTEE, metavar="NUMBER", help="Pure or, with --delta, approximate privacy."),
    option("--rho", group=GUARANTEE, metavar="NUMBER", help="Zero-concentrated privacy."),
    option("--delta", group=GUARANTEE, metavar="NUMBER", help="Probability that --epsilon may fail."),
    option("--neighbours", group=GUARANTEE, metavar="RELATION", help="add-remove or replace-one; no default."),
    option(
        "--rows-per-person",
        group=GUARANTEE,
        type=int,
        metavar="NUMBER",
        help="The most rows of one person.  [default: the schema's, or 1]",
    ),
)
_WAYS = (
    option(
        "--strategy",
        group=HOW,
        multiple=True,
        metavar="NAME[:OPTION=...]",
        is_eager=True,
        callback=explaining,
        help="auto (the best), all, or one of `--strategy help`; repeatable.",
    ),
    option("--budgets", group=HOW, metavar="RULE", help="optimal or uniform."),
    option("--recovery", group=HOW, metavar="WAY", help="gls, ols or none."),
    option("--objective", group=HOW, metavar="WHAT", help="Least total or max variance.  [default: total]"),
    option("--effort", group=HOW, metavar="LEVEL", help="How long to search: low, default or high."),
)
_GOALS = (
    option(
        "--relative-error", group=HOW, metavar="SHARE", help="Stop when relative errors are this small; means ireduct."
    ),
    option("--above", group=HOW, metavar="COUNT", help="The counts for which --relative-error is wanted."),
)
SOURCES = (
    option(
        "--data", group=DATA, metavar="SOURCE", help="File, glob, DATABASE.duckdb#TABLE, postgresql:// or spark://."
    ),
    option("--query", group=DATA, metavar="SQL", help="A query whose rows are the data, run by DuckDB (on --data)."),
)
FACE = option(
    "--face",
    group=HOW,
    metavar="KIND[:OPTION=...]",
    is_eager=True,
    callback=explaining,
    help="consistent, nonnegative or integral (whole numbers); see `--face help`.",
)
TIME_LIMIT = option(
    "--time-limit", group=HOW, type=float, metavar="SECONDS", help="Give up on the face after that long."
)


def taking(*options: Callable[[Any], Any]) -> Callable[[Decorated], Decorated]:
    """Some options, in this order."""

    def decorate(command: Decorated) -> Decorated:
        for own in reversed(options):
            command = own(command)
        return command

    return decorate


planning = taking(*_TABLES, *_MEASURES, *_PRIVACY, *_WAYS, *_GOALS)
"""The options of `plan`, which `release` takes too."""
comparing = taking(*_TABLES, *_PRIVACY, *_WAYS)
"""Those of them that `evaluate` takes."""


as_json = option("--json", "as_json", group=OUTPUT, is_flag=True, help="Print one JSON document and nothing else.")


def make_comparison(
    options: dict[str, Any], measured: dict[str, Any], progress: Progress | None = None, *, settle: bool = True
) -> Comparison:
    """Plan as the shared options, and those of measures, say."""
    from hushcube.verbs.planning import compare

    amounts = {name: options[name] for name in ("epsilon", "rho", "delta")}
    return compare(**asked(options), **measured, **amounts, progress=progress, settle=settle)


def asked_measures(options: dict[str, Any], measures: Sequence[str], shares: str | None) -> dict[str, Any]:
    """What is summed and averaged, as the verbs take it."""
    if options["queries"] is not None and (measures or shares is not None):
        raise BadInput("--queries", "cannot be combined with --measure", "ask for tables with --workload")
    return {
        "measures": measures,
        "shares": None if shares is None else dict(_share(part) for part in shares.split(",")),
    }


def _share(text: str) -> tuple[str, str]:
    name, equals, share = text.partition("=")
    if not equals:
        raise BadInput("--shares", f"{text[:40]!r} has no =", "write for example `--shares count=0.3,wage=0.7`")
    return name.strip(), share.strip()


def asked(options: dict[str, Any]) -> dict[str, Any]:
    """What the shared options say besides the budget, as the verbs take it."""
    from hushcube.model.matrix_files import read_matrix
    from hushcube.model.schema import Schema

    if options["schema"] is None:
        raise BadInput("--schema", "is not given", "name a schema file; `hushcube schema draft` drafts one")
    if not options["workload"] and options["queries"] is None:
        raise BadInput("--workload", "is not given", "name the tables to publish, for example `--workload 2-way`")
    schema = Schema.read(options["schema"])
    return {
        "schema": schema,
        "workload": options["workload"],
        "queries": None if options["queries"] is None else read_matrix(options["queries"], schema, "queries"),
        "neighbours": options["neighbours"],
        "rows_per_person": options["rows_per_person"],
        "strategy": chosen_strategy(options),
        "budgets": options["budgets"],
        "recovery": options["recovery"],
        **how(options),
    }


def how(options: dict[str, Any]) -> dict[str, Any]:
    """What is made least, and how long that may take; what is not given keeps its default."""
    return {name: options[name] for name in ("objective", "effort") if options[name] is not None}


def chosen_strategy(options: dict[str, Any]) -> Choice:
    """The strategy, or the strategies to compare; a wanted relative error becomes an option of theirs."""
    from hushcube.strategies import read_strategy
    from hushcube.strategies.adaptive import with_target

    words = options["strategy"]
    target = {name: options[name] for name in ("relative_error", "above") if options.get(name) is not None}
    if not target:
        return words if len(words) > 1 else words[0] if words else "auto"
    if len(words) > 1:
        raise BadInput("--relative-error", "goes with one strategy only", "name one of ireduct and iresamp")
    return with_target(read_strategy(words[0] if words else "ireduct"), target)


def public_files(options: dict[str, Any], schema: Schema) -> list[str]:
    """The files whose contents a release of the plan publishes, with its schema and its plan."""
    from hushcube.strategies import read_strategies

    folder = Path(options["schema"]).parent
    matrices = [] if options["queries"] is None else [options["queries"]]
    named, _ = read_strategies(chosen_strategy(options))
    matrices += [file for strategy in named for file in strategy.files]
    return [options["schema"], *(str(folder / name) for name in schema.label_files), *matrices]


def check_limit(seconds: float | None) -> float | None:
    """The seconds that are allowed."""
    if seconds is not None and not seconds > 0:
        raise BadInput("--time-limit", "is not above 0", "give a number of seconds, such as 60")
    return seconds


def new_file(path: str, option: str = "--out") -> Path:
    """A file that can be written and is not there yet, before any work is done for it."""
    from hushcube.durable import check_file

    check_file(Path(path), option)
    return Path(path)


def write_file(content: str | bytes, target: Path, option: str = "--out") -> None:
    """Write a file whole or not at all."""
    from hushcube import durable

    with durable.new_file(target, option) as file:
        file.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
