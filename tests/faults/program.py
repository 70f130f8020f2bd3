"""The program under test, imported once and forked for every run, so that thousands of runs take minutes."""

import ctypes
import os
import shutil
import signal
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

TIMEOUT = 60
SCHEMA = "attributes:\n- {name: sex, values: [F, M]}\n- {name: age, size: 3}\n"
DATA = "sex,age\n" + "F,0\nM,1\nM,2\n" * 20
ASKED = ["--schema", "HOME/people.yaml", "--workload", "1-way", "--epsilon", "1", "--neighbours", "add-remove"]
RELEASE = ["release", *ASKED, "--strategy", "workload", "--data", "HOME/people.csv", "--out"]
FACE = ["recover", "DESK/published", "--face"]
FACES = {"consistent": "consistent", "nonnegative": "nonnegative", "integral": "face-valid"}
"""What is asked for, and what the face is called."""


@dataclass
class Run:
    """A command that was started."""

    child: int
    told: IO[bytes]
    log: IO[bytes]

    def wait(self) -> tuple[int, str, list[list[str]]]:
        """Its exit code (minus a signal's number), its words, and its file-system calls where they are counted."""
        code = os.waitstatus_to_exitcode(os.waitpid(self.child, 0)[1])
        with self.told, self.log:
            self.told.seek(0), self.log.seek(0)
            calls = [line.split("\t") for line in self.log.read().decode().splitlines()]
            return code, self.told.read().decode(), calls


class Program:
    """Forks run commands; HOME and DESK in their words are a folder of inputs, and the folder that is watched."""

    def __init__(self, folder: Path, library: Path | None = None) -> None:
        self.home, self.desk = folder / "home", folder / "desk"
        self._arm = None if library is None else ctypes.CDLL(str(library)).arm
        (self.home / "temporary").mkdir(parents=True)
        (self.home / "people.yaml").write_text(SCHEMA)
        (self.home / "people.csv").write_text(DATA)
        _import_all()
        self.desk.mkdir()
        (self.desk / "LICENCE.txt").write_text("x")
        shutil.copytree(self.desk, self.home / "plain")
        for command in ([*RELEASE, "DESK/published"], [*FACE, "consistent"], [*FACE, "integral"]):
            self.done(command)
        (self.desk / "published" / "LICENCE.txt").write_text("x")
        shutil.copytree(self.desk, self.home / "published")

    def fresh(self, template: str) -> None:
        """The folder with a licence in it, or with a release as well (`published`)."""
        shutil.rmtree(self.desk, ignore_errors=True)
        shutil.copytree(self.home / template, self.desk)

    def done(self, command: list[str]) -> list[list[str]]:
        """Run a command that must work; its file-system calls."""
        code, told, calls = self.run(command)
        if code:
            raise RuntimeError(told)
        return calls

    def run(self, command: list[str], call: int = 0, fault: int = 0) -> tuple[int, str, list[list[str]]]:
        """Run a command, with a fault at one call."""
        return self.start(command, call, fault).wait()

    def start(self, command: list[str], call: int = 0, fault: int = 0) -> Run:
        """Start a command."""
        words = [word.replace("HOME", str(self.home)).replace("DESK", str(self.desk)) for word in command]
        told, log = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - closed when waited for
        child = os.fork()
        if child == 0:
            self._child(words, call, fault, told.fileno(), log.fileno())
        return Run(child, told, log)

    def _child(self, words: list[str], call: int, fault: int, told: int, log: int) -> None:
        code = 99
        try:
            os.dup2(told, 1), os.dup2(told, 2)
            os.environ["TMPDIR"] = str(self.home / "temporary")
            tempfile.tempdir = None
            signal.alarm(TIMEOUT)
            from hushcube.cli import main

            sys.argv = ["hushcube", *words]
            if self._arm:
                self._arm(os.fsencode(self.desk), call, fault, log)
            main()
        except SystemExit as problem:
            code = problem.code or 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            if self._arm:
                self._arm(b"", 0, 0, -1)
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            os._exit(code)


def _import_all() -> None:
    """All that the verbs import, so that a fork starts where the work does."""
    import duckdb  # noqa: F401
    import pyarrow.csv
    import pyarrow.parquet  # noqa: F401

    from hushcube.cli import plan, recover, release, show, synth, verify  # noqa: F401
    from hushcube.private import engines, measure  # noqa: F401


def names(folder: Path) -> set[str]:
    """All names below a folder."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def faults_of(folder: Path) -> tuple[list[str], dict]:
    """What is wrong with a release, and its manifest."""
    import json

    from hushcube.bundle.verify import verify
    from hushcube.errors import BadInput

    try:
        verdict = verify(folder)
    except BadInput as problem:
        return [str(problem)], {"faces": {}}
    problems = [f"{check.name}: {problem}" for check in verdict.checks for problem in check.problems]
    return problems, json.loads((folder / "manifest.json").read_text())
