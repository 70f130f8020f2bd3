"""Options that several verbs share, and reading the files they name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

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
ACCOUNT = "Account"
OUTPUT = "Output"
SHAPES = "A GeoJSON file with a shape for each value of an attribute, to draw maps; repeatable."
REQUIRED = "An error that was required, shown beside the expected one; repeatable."


def _check_limit(_context: click.Context, _parameter: click.Parameter, seconds: float | None) -> float | None:
    if seconds is not None and not seconds > 0:
        raise BadInput("--time-limit", "is not above 0", "give a number of seconds, such as 60")
    return seconds


_TABLES = (
    option("--schema", "FILE", "The schema file (YAML).", group=WHAT),
    option("--workload", "WORDS", "Tables: 2-way, 'age*sex'; repeatable.", group=WHAT, multiple=True),
    option("--queries", "[A*B:]FILE", "A matrix of queries over the cells of a table.", group=WHAT),
)
_SUMS = "sum(NAME) or avg(NAME) beside the counts; repeatable."
_MEASURES = (
    option("--measure", "WORDS", _SUMS, "measures", group=WHAT, multiple=True),
    option("--shares", "NAME=SHARE,...", "Parts of the budget for count and each measure.", group=WHAT),
)
_ROWS = "The most rows of one person.  [default: the schema's, or 1]"


def _amounts(again: str = "", **attributes: Any) -> tuple[Callable[[Any], Any], ...]:
    return (
        option("--epsilon", "NUMBER", f"Pure or, with --delta, approximate privacy{again}.", **attributes),
        option("--rho", "NUMBER", f"Zero-concentrated privacy{again}.", **attributes),
        option("--delta", "NUMBER", f"Probability that --epsilon may fail{again}.", **attributes),
    )


def _rules(again: str = "", **attributes: Any) -> tuple[Callable[[Any], Any], ...]:
    return (
        option("--budgets", "RULE", f"optimal or uniform{again}.", **attributes),
        option("--recovery", "WAY", f"gls, ols, answers, none, or weights{again}: 'a: a=1/2, a*b=1/2'.", **attributes),
    )


_RELATION = (
    option("--neighbours", "RELATION", "add-remove or replace-one; no default.", group=GUARANTEE),
    option("--rows-per-person", "NUMBER", _ROWS, group=GUARANTEE, type=int),
)
_EXPLAINED: dict[str, Any] = {"group": HOW, "is_eager": True, "callback": explaining}
_STRATEGY = "auto (the best), all, or one of `--strategy help`; repeatable."
_NAMED = option("--strategy", "NAME[:OPTION=...]", _STRATEGY, multiple=True, **_EXPLAINED)
_SEARCH = (
    option("--objective", "WHAT", "Least total or max variance.  [default: total]", group=HOW),
    option("--effort", "LEVEL", "How long to search: low, default or high.", group=HOW),
)
_PURPOSE = option(
    "--for",
    "WHAT",
    "unbiased tables (the default), or face-valid ones.",
    "purpose",
    group=HOW,
    type=click.Choice(["unbiased", "face-valid"]),
)
_LIKE = option("--like", "BUNDLE", "An earlier edition to guess tables from (selective).", group=HOW)
_BALANCE = option("--balance", None, "Tables count alike: coarse ones are not the worst.", group=HOW, is_flag=True)
_MEASURED = "What to measure: 'a*b=0.3,c*d=0.7', or without shares; means given."
_GOALS = (
    option("--measure-tables", "TABLES", _MEASURED, group=HOW),
    option("--relative-error", "SHARE", "Stop when relative errors are this small; means ireduct.", group=HOW),
    option("--above", "COUNT", "The counts for which --relative-error is wanted.", group=HOW),
)
SOURCES = (
    option("--data", "SOURCE", "File, glob, DATABASE.duckdb#TABLE, postgresql:// or spark://.", group=DATA),
    option("--query", "SQL", "A query whose rows are the data, run by DuckDB (on --data).", group=DATA),
)
READING = (
    option("--engine", "NAME", "spark: read Parquet files with Spark.  [default: duckdb]", group=DATA),
    option(
        "--bad-rows",
        "RULE",
        "refuse (the default), or count what does not fit as missing.",
        group=DATA,
        type=click.Choice(["refuse", "missing"]),
        default="refuse",
    ),
)
"""How the rows of a source are read."""
_FACE = "consistent, nonnegative or integral (whole numbers); see `--face help`."
_LIMIT = "Make do with the best face found in that long."
FACES = (
    option("--face", "KIND[:OPTION=...]", _FACE, **_EXPLAINED),
    option("--time-limit", "SECONDS", _LIMIT, group=HOW, type=float, callback=_check_limit),
)


def taking(*options: Callable[[Any], Any]) -> Callable[[Decorated], Decorated]:
    """Some options, in this order."""

    def decorate(command: Decorated) -> Decorated:
        for own in reversed(options):
            command = own(command)
        return command

    return decorate


planning = taking(
    *_TABLES,
    *_MEASURES,
    *_amounts(group=GUARANTEE),
    *_RELATION,
    _NAMED,
    *_rules(group=HOW),
    *_SEARCH,
    _BALANCE,
    _PURPOSE,
    _LIKE,
    *_GOALS,
)
"""The options of `plan`, which `release` takes too."""
_SEVERAL: dict[str, Any] = {"again": "; repeatable", "multiple": True}
comparing = taking(
    *_TABLES,
    *_amounts(group=GUARANTEE, **_SEVERAL),
    *_RELATION,
    _NAMED,
    *_rules(group=HOW, **_SEVERAL),
    option(
        "--face", "KIND[:OPTION=...]", f"unbiased, or: {_FACE[:-1]}; repeatable.", "faces", multiple=True, **_EXPLAINED
    ),
    *_SEARCH,
)
"""Those of them that `evaluate` takes, several of some."""
as_json = option("--json", None, "Print one JSON document and nothing else.", "as_json", group=OUTPUT, is_flag=True)


def typed(parameters: Iterable[str]) -> list[str]:
    """Those of some parameters that were typed, as they are spelled."""
    context = click.get_current_context()
    spelled = {own.name: own.opts[0] for own in context.command.params}
    return [spelled[name] for name in parameters if context.get_parameter_source(name) is not ParameterSource.DEFAULT]


def check_data(data: str | None, query: str | None) -> None:
    """Refuse a verb that is to read data without a word about which."""
    if data is None and query is None:
        raise BadInput("--data", "is not given", "name the data, for example `--data people.parquet`")


def make_comparison(options: dict[str, Any], progress: Progress, *, settle: bool = True) -> Comparison:
    """Plan as the shared options say."""
    from hushcube.verbs.planning import compare

    amounts = {name: options[name] for name in ("epsilon", "rho", "delta")}
    return compare(**asked(options), **amounts, progress=progress, settle=settle)


def asked(options: dict[str, Any]) -> dict[str, Any]:
    """What the shared options say besides the budget, as the verbs take it."""
    from hushcube.model.matrix_files import read_matrix
    from hushcube.model.schema import Schema

    check_schema(options)
    if not options["workload"] and options["queries"] is None:
        raise BadInput("--workload", "is not given", "name the tables to publish, for example `--workload 2-way`")
    measures, shares = options.get("measures", ()), options.get("shares")
    if options["queries"] is not None and (measures or shares is not None):
        raise BadInput("--queries", "cannot be combined with --measure", "ask for tables with --workload")
    schema = Schema.read(options["schema"])
    same = {name: options[name] for name in ("workload", "neighbours", "rows_per_person", "budgets", "recovery")}
    return {
        **same,
        **how(options),
        "schema": schema,
        "queries": None if options["queries"] is None else read_matrix(options["queries"], schema, "queries"),
        "measures": measures,
        "shares": None if shares is None else dict(map(_share, shares.split(","))),
        "strategy": chosen_strategy(options),
        "measure_tables": options.get("measure_tables"),
    }


def check_schema(options: dict[str, Any]) -> None:
    """Refuse to go on without a schema."""
    if options["schema"] is None:
        raise BadInput("--schema", "is not given", "name a schema file; `hushcube schema draft` drafts one")


def _share(text: str) -> tuple[str, str]:
    name, equals, share = text.partition("=")
    if not equals:
        raise BadInput("--shares", f"{text[:40]!r} has no =", "write for example `--shares count=0.3,wage=0.7`")
    return name.strip(), share.strip()


def how(options: dict[str, Any]) -> dict[str, Any]:
    """What is made least, and how long that may take; what is not given keeps its default."""
    return {
        name: options[name]
        for name in ("objective", "effort", "balance", "purpose", "like")
        if options.get(name) is not None
    }


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
    labels = (str(folder / name) for name in schema.label_files)
    matrices = [file for strategy in read_strategies(chosen_strategy(options))[0] for file in strategy.files]
    others = filter(None, [options["queries"], options.get("like")])
    return [options["schema"], *labels, *others, *matrices]
