"""The command line: one file per verb, imported when it is used.

Exit codes: 0 done, 1 failed, 2 bad input (nothing spent, nothing written), 128 plus the signal's number if interrupted.

Nothing heavy is imported here, so that requests to stop are heard from the first moment.
"""

from __future__ import annotations

import os
import sys

from hushcube import interrupts


def main() -> None:
    """Run the command line and turn errors into exit codes."""
    interrupts.listen()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # more would wait for work at full speed, beside our own threads
    code = run(sys.argv[1:])
    interrupts.ignore()
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run a command; returns the exit code."""
    try:
        interrupts.resume()
        from hushcube.cli.command import call

        interrupts.check()  # an import is not broken off
        code = call(arguments)
        interrupts.check()
        interrupts.hold()
        return code
    except BaseException as problem:
        interrupts.hold()
        from hushcube.cli.failures import explain

        return explain(problem)
