"""The options of `recover`, which `release` and `synth` take too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from hushcube.cli.options import Command
from hushcube.errors import BadInput, FactsError

if TYPE_CHECKING:
    from hushcube.faces.value import FaceValue
    from hushcube.model.schema import Schema

_FACE = click.option(
    "--face-value",
    "kind",
    metavar="[KIND]",
    is_flag=False,
    flag_value="integral",
    help="A second face: consistent (adds up), nonnegative, or integral (whole numbers too; without KIND).",
)
_KNOBS = (
    click.option("--norm", metavar="NAME", help="The distance that is least: l2, l1 or linf.  [default: l2]"),
    click.option(
        "--method",
        metavar="NAME",
        help="full-table, local (any domain), barak or shift; auto takes the full table where it fits.",
    ),
    click.option("--weights", metavar="RULE", help="l1, linf, barak: tables weigh equal, or by the noise's deviation."),
    click.option(
        "--barak-objective",
        metavar="WHAT",
        help="barak: max-coefficient, total-coefficient, max-marginal or total-marginal.",
    ),
    click.option("--probability", type=float, help="shift: with which no cell is negative.  [default: 0.95]"),
    click.option("--facts", metavar="FILE", help="Public facts (YAML): structural zeros and known totals."),
    click.option("--time-limit", type=float, metavar="SECONDS", help="Stop, and change nothing, after that long."),
)


def face_options(command: Command) -> Command:
    """--face-value and its knobs."""
    return _FACE(face_knobs(command))


def face_knobs(command: Command) -> Command:
    """The knobs of a face."""
    for option in reversed(_KNOBS):
        command = option(command)
    return command


def take(options: dict[str, Any]) -> dict[str, Any]:
    """Take the face's options out of a command's; those that were given."""
    names = ("kind", "norm", "method", "weights", "barak_objective", "probability", "facts", "time_limit")
    context = click.get_current_context()
    found = {name: options.pop(name) for name in names if name in options}
    return {k: v for k, v in found.items() if context.get_parameter_source(k) is not ParameterSource.DEFAULT}


def refuse_without_face(given: dict[str, Any]) -> None:
    """Knobs of a face that nobody asked for."""
    if given and "kind" not in given:
        option = next(iter(given)).replace("_", "-")
        raise BadInput(f"--{option}", "stands without --face-value", "add --face-value, or leave it out")


def read_face(given: dict[str, Any], schema: Schema, **fixed: Any) -> FaceValue:
    """The face that the options ask for."""
    from hushcube.faces.value import FaceValue
    from hushcube.model.facts import Facts
    from hushcube.model.files import read_text

    knobs = {k.removeprefix("barak_"): v for k, v in given.items() if k not in ("facts", "time_limit")}
    if "facts" in given:
        knobs["facts"] = Facts.from_yaml(read_text(given["facts"], FactsError, "facts"), schema)
    return FaceValue(**knobs, **fixed)


def time_limit(given: dict[str, Any]) -> float | None:
    """The seconds that are allowed."""
    seconds = given.get("time_limit")
    if seconds is not None and not seconds > 0:
        raise BadInput("--time-limit", "is not above 0", "give a number of seconds, such as 60")
    return None if seconds is None else float(seconds)
