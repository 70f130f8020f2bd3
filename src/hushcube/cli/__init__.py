"""The command line: one file per verb, imported when it is used.

Exit codes: 0 done, 1 failed, 2 bad input (nothing spent, nothing written), 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

import click

from hushcube import __version__

_VERBS = {
    "demo": "Plan, release and show the built-in Titanic data.",
    "evaluate": "Compare methods with the exact counts of real data, for its owner: NOT private.",
    "plan": "Compare strategies and see the error of every table before any data is touched.",
    "recover": "Add a face to a release: non-negative, whole numbers, other norms; costs no budget.",
    "release": "Measure a plan on data, once, and publish the tables.",
    "schema": "Check a schema file, or draft one from data.",
    "show": "Print a table of a release, with error bars.",
    "synth": "Write synthetic people whose tables match a release.",
    "verify": "Check a release: checksums, roll-ups, signs, whole numbers, people, public facts.",
}


class _Verbs(click.Group):
    """A group that knows its verbs' names and imports only the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's interface
        return sorted(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's interface
        if cmd_name not in _VERBS:
            return None
        command: click.Command = import_module(f"hushcube.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's interface
        with formatter.section("Verbs"):
            formatter.write_dl(sorted(_VERBS.items()))


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="hushcube")
def cli() -> None:
    """Publish data cubes and contingency tables with differential privacy.

    Declare the schema, the tables you want and the budget; see the error before spending anything; release once.
    Every table adds up, and every cell has an error bar.
    """


def main() -> None:
    """Run the command line and turn errors into exit codes."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run a command; returns the exit code."""
    from hushcube.errors import BadInput, HushcubeError

    try:
        code = cli.main(args=arguments, prog_name="hushcube", standalone_mode=False)
    except click.exceptions.Abort:
        return _fail("interrupted: nothing was published", 130)
    except click.ClickException as problem:
        problem.show()
        return 2
    except KeyboardInterrupt:
        return _fail("interrupted: nothing was published", 130)
    except BadInput as problem:
        return _fail(str(problem), 2)
    except HushcubeError as problem:
        return _fail(str(problem), 1)
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - the reader went away; so do we, quietly
        return 1
    except MemoryError:
        return _fail("there is not enough memory. Fix: ask for smaller marginals, or use a larger machine.", 1)
    except Exception as problem:
        if os.environ.get("HUSHCUBE_DEBUG"):
            raise
        # a message could hold a value from the data, so only the kind of error is shown
        return _fail(f"unexpected {type(problem).__name__}. Fix: run again with HUSHCUBE_DEBUG=1 and report it.", 1)
    return code if isinstance(code, int) else 0  # click returns the code of an Exit


def _fail(message: str, code: int) -> int:
    click.echo(f"hushcube: {message}", err=True)
    return code
