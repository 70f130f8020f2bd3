"""Options that several verbs share, and reading the files they name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hushcube.cli.matrices import read_matrix
from hushcube.errors import BadInput
from hushcube.progress import Progress

if TYPE_CHECKING:
    from hushcube.designs.options import Options
    from hushcube.model.schema import Schema
    from hushcube.planning.question import Comparison

Command = TypeVar("Command", bound=Callable[..., Any])

STRATEGIES = (
    "auto (the best by predicted error), all (every variant, compared), identity, workload, base, all-cuboids, bmax, "
    "pmost, cluster, fourier, residual, wavelet, hierarchy, matrix (rows of your own), sketch, covering; for small "
    "relative errors: dwork, twophase, iresamp, ireduct"
)
RULE = {
    "sanity_bound": ("COUNT", "Relative errors are errors over max(count, this): a number, or 0.01% of --people."),
    "lambda_max": ("SCALE", "Noise to start with: a number, or a share such as 10% of --people."),
    "lambda_step": ("SCALE", "ireduct: scales go down in equal steps: a number, or a share of --people."),
    "lambda_factor": ("FACTOR", "ireduct: scales go down by this factor, without --lambda-step.  [default: 0.99]"),
    "start_share": ("SHARE", "Share of epsilon to start with, without --lambda-max.  [default: 0.05]"),
    "first_share": ("SHARE", "twophase: share of epsilon for the first phase.  [default: 0.07]"),
    "caution": ("SHARE", "Counts below this share of their noise are taken for it; 0 as in the paper.  [default: 0.1]"),
    "pick": ("WHAT", "Make the average relative error small, or that of the worst cell: average or worst."),
    "people": ("NUMBER", "How many people there are, if that is public."),
    "people_epsilon": ("NUMBER", "Part of epsilon that pays for a noisy number of people."),
    "relative_error": ("SHARE", "Stop when relative errors are at most this, with --above; means ireduct."),
    "above": ("COUNT", "The counts for which --relative-error is wanted."),
}
"""The options of methods for small relative errors: what they take, and what they say."""


def measuring(command: Command) -> Command:
    """The options of cubes: what is summed and averaged beside the counts."""
    for option in (
        click.option(
            "--shares",
            metavar="NAME=SHARE,...",
            help="Parts of the budget for count and each measure.  [default: so that averages err least]",
        ),
        click.option(
            "--measure",
            "measures",
            multiple=True,
            metavar="WORDS",
            help="Publish sum(NAME) or avg(NAME) of the schema's measures beside the counts; repeatable.",
        ),
    ):
        command = option(command)
    return command


def planning(command: Command) -> Command:
    """The options of `plan`, which `release` takes too."""
    for option in reversed(
        (
            click.option("--schema", metavar="FILE", help="The schema file (YAML)."),
            click.option(
                "--workload",
                multiple=True,
                metavar="WORDS",
                help="Tables to publish, e.g. 2-way or age*sex; repeatable.",
            ),
            click.option(
                "--queries",
                metavar="[A*B:]FILE",
                help="A matrix of queries over the cells of a table (all attributes unless named): "
                ".csv, .json, .npy, .npz or .mtx.",
            ),
            click.option("--epsilon", metavar="NUMBER", help="Budget of pure or, with --delta, approximate privacy."),
            click.option("--rho", metavar="NUMBER", help="Budget of zero-concentrated privacy."),
            click.option("--delta", metavar="NUMBER", help="Probability that the bound of --epsilon may fail."),
            click.option("--neighbours", metavar="RELATION", help="add-remove or replace-one; there is no default."),
            click.option(
                "--rows-per-person",
                type=int,
                help="Most rows that one person may have.  [default: the schema's max_rows, or 1]",
            ),
            click.option("--strategy", metavar="NAME", help=f"{STRATEGIES}.  [default: auto]"),
            click.option("--budgets", metavar="RULE", help="optimal or uniform."),
            click.option("--recovery", metavar="WAY", help="gls, ols or none."),
            click.option("--effort", metavar="LEVEL", help="How long covering searches: low, default or high."),
            click.option("--objective", metavar="WHAT", help="Make the total or the max variance least."),
            click.option(
                "--threshold", metavar="VARIANCE", help="pmost: a variance, or a share such as 50% of bmax's."
            ),
            click.option("--fan-out", type=int, help="hierarchy: children of a node; searched unless given."),
            click.option("--buckets", type=int, help="sketch: buckets of one repetition."),
            click.option("--repetitions", type=int, help="sketch: how often cells are thrown into buckets."),
            click.option("--estimate", metavar="HOW", help="sketch: average or median over the repetitions."),
            click.option("--matrix", metavar="[A*B:]FILE", help="matrix: the integer rows to measure; as --queries."),
            *(
                click.option(
                    f"--{name.replace('_', '-')}", metavar=kind, help=told, type=int if name == "people" else None
                )
                for name, (kind, told) in RULE.items()
            ),
        )
    ):
        command = option(command)
    return command


as_json = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document and nothing else on standard output."
)


def make_comparison(
    options: dict[str, Any], measured: dict[str, Any], progress: Progress | None = None, *, settle: bool = True
) -> Comparison:
    """Plan as the shared options, and those of measures, say."""
    from hushcube.api import compare

    amounts = {name: options[name] for name in ("epsilon", "rho", "delta")}
    return compare(**asked(options), **measured, **amounts, progress=progress, settle=settle)


def asked_measures(options: dict[str, Any], measures: Sequence[str], shares: str | None) -> dict[str, Any]:
    """What is summed and averaged, as the functions of `hushcube.api` take it."""
    if options["queries"] is not None and (measures or shares is not None):
        raise BadInput("--queries", "stands beside --measure", "ask for tables with --workload")
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
    """What the shared options say besides the budget, as the functions of `hushcube.api` take it."""
    from hushcube.model.schema import Schema

    if options["schema"] is None:
        raise BadInput("--schema", "is not given", "name a schema file; `hushcube schema draft` drafts one")
    if not options["workload"] and options["queries"] is None:
        raise BadInput("--workload", "is not given", "name the tables to publish, for example `--workload 2-way`")
    schema = Schema.read(options["schema"])
    return {
        "schema": schema,
        "workload": options["workload"],
        "queries": None if options["queries"] is None else read_matrix(options["queries"], schema, "--queries"),
        "neighbours": options["neighbours"],
        "rows_per_person": options["rows_per_person"],
        "strategy": options["strategy"] or ("auto" if options["relative_error"] is None else "ireduct"),
        "budgets": options["budgets"],
        "recovery": options["recovery"],
        "options": read_options(options, schema),
    }


def public_files(options: dict[str, Any], schema: Schema) -> list[str]:
    """The files whose contents a release of the plan publishes, with its schema and its plan."""
    folder = Path(options["schema"]).parent
    matrices = (options[name] for name in ("queries", "matrix") if options[name] is not None)
    return [options["schema"], *(str(folder / name) for name in schema.label_files), *matrices]


def read_options(options: dict[str, Any], schema: Schema) -> Options:
    """The planner's knobs; what is not given keeps its default."""
    from hushcube.designs.options import Options, Threshold
    from hushcube.designs.refinement import Rule

    knobs = ("effort", "objective", "fan_out", "buckets", "repetitions", "estimate")
    given = {name: options[name] for name in knobs if options[name] is not None}
    threshold = None if options["threshold"] is None else Threshold.parse(options["threshold"])
    matrix = None if options["matrix"] is None else read_matrix(options["matrix"], schema, "--matrix")
    rule = Rule.of(**{name: options[name] for name in RULE})
    return Options(**given, threshold=threshold, matrix=matrix, rule=rule)


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
