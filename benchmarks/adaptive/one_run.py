"""What every contender's program does: read a job, time one run of a method, write its tables, say what it took.

    python -m PROGRAM FOLDER METHOD SEED

Contenders have a process each, so that none adds to the memory of another. Nothing but numpy and the standard library
is imported here: rivals run in an environment of their own. Imports and the reading of the job are not timed.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.one_job import Job

Tables = Mapping[tuple[int, ...], np.ndarray]
About = dict[str, Any]
Method = Callable[[Job, int], tuple[Tables, About]]
"""A job under rho and a seed -> the tables asked for, by their attributes, and what else a row should hold."""


def serve(methods: Mapping[str, Method]) -> None:
    """Run the method on the command line once."""
    folder, method, seed = Path(sys.argv[1]), methods[sys.argv[2]], int(sys.argv[3])
    job = Job.read(folder)
    clock, busy = time.perf_counter(), _busy()
    tables, about = method(job, seed)
    took = {"seconds": time.perf_counter() - clock, "cpu_seconds": _busy() - busy}
    np.savez(folder / "answers.npz", **{str(i): tables[r] for i, r in enumerate(job.tables)})
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1e6
    print(json.dumps({**took, "peak_GB": peak, **about}))


def _busy() -> float:
    """Processor seconds, those of ended children included."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
