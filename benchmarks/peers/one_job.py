"""What every program that runs a library does: read one job, time its answer, write its tables, say what it took.

Such a program runs in the environment of its library: nothing but numpy and the standard library is imported here.

A job is a folder: `job.json` (sizes, tables as lists of attributes, `epsilon` or `rho`) and `codes.npy`, the rows. One
row more or less must not show: add-remove neighbours. Importing and starting (Spark, for one) are not what is timed.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

UNSUITED = 3
"""The exit code of a library that has no such job; the reason is what it prints."""


@dataclass(frozen=True)
class Job:
    """Tables of some rows, under one guarantee: pure epsilon or rho-zCDP."""

    sizes: tuple[int, ...]
    tables: tuple[tuple[int, ...], ...]
    codes: Any
    epsilon: float | None = None
    rho: float | None = None

    @classmethod
    def read(cls, folder: Path) -> Job:
        """The job in a folder."""
        told = json.loads((folder / "job.json").read_text())
        tables = tuple(tuple(table) for table in told.pop("tables"))
        return cls(tuple(told.pop("sizes")), tables, np.load(folder / "codes.npy"), **told)

    def write(self, folder: Path) -> None:
        """Write it for a program."""
        told = {"sizes": self.sizes, "tables": self.tables, "epsilon": self.epsilon, "rho": self.rho}
        (folder / "job.json").write_text(json.dumps(told))
        np.save(folder / "codes.npy", self.codes)

    def shape(self, table: Sequence[int]) -> tuple[int, ...]:
        """The values of each attribute of a table."""
        return tuple(self.sizes[i] for i in table)

    def exact(self, table: Sequence[int]) -> Any:
        """The counts themselves."""
        shape = self.shape(table)
        cells = np.ravel_multi_index([self.codes[:, i] for i in table], shape)
        return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)

    @property
    def share(self) -> float:
        """The guarantee divided among the tables."""
        return (self.epsilon or self.rho or 0.0) / len(self.tables)


def unsuited(reason: str) -> None:
    """Stop: the library has no such job."""
    print(reason)
    sys.exit(UNSUITED)


def serve(version: str, answer: Callable[[Job], Sequence[Any]]) -> None:
    """Answer the job in the folder on the command line."""
    folder = Path(sys.argv[1])
    job = Job.read(folder)
    start = time.perf_counter()
    tables = answer(job)
    seconds = time.perf_counter() - start
    np.savez(folder / "answers.npz", **{str(i): np.asarray(table, np.float64) for i, table in enumerate(tables)})
    print(json.dumps({"version": version, "seconds": seconds, "peak_GB": peak_kilobytes() / 1e6}))


def peak_kilobytes() -> int:
    """The high-water mark of this process, and of those that it started and that still run, such as Java."""
    processes = Path("/proc")
    if not (processes / "self" / "status").exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    told = {}
    for status in processes.glob("[0-9]*/status"):
        try:
            lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        except OSError:  # it has ended meanwhile
            continue
        told[int(lines["Pid"])] = int(lines["PPid"]), int(lines.get("VmHWM", "0 kB").split()[0])
    own = {int((processes / "self").resolve().name)}
    while more := {pid for pid, (parent, _) in told.items() if parent in own} - own:
        own |= more
    return sum(told[pid][1] for pid in own if pid in told)
