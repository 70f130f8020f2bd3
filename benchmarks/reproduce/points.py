"""Points are measured one by one, in processes side by side, and kept.

A point is a line of a file, its job and what it came to: a run that was stopped goes on where it was, and a page can be
written again without measuring anything.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.reproduce.figure import Figure, Row


class Kept:
    """Points by their jobs, kept in a file if there is one."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._found: dict[str, Row] = {}
        for line in file.read_text(encoding="utf-8").splitlines() if file and file.exists() else ():
            try:
                job, came_to = json.loads(line)
            except ValueError:  # it was being written when the run was stopped
                continue
            self._found[_key(job)] = came_to

    def __contains__(self, job: Row) -> bool:
        return _key(job) in self._found

    def row(self, job: Row) -> Row:
        """A job and what it came to."""
        return {**job, **self._found[_key(job)]}

    def add(self, job: Row, came_to: Row) -> None:
        """Keep what a job came to."""
        self._found[_key(job)] = came_to
        if self._file is not None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps([job, came_to]) + "\n")


def _key(job: Row) -> str:
    return json.dumps(job, sort_keys=True)


def measured(figure: Figure, kept: Kept, *, quick: bool) -> list[Row]:
    """The rows of a figure; what is kept is not measured again."""
    jobs = [{"figure": figure.name, **job} for job in figure.jobs(quick)]
    left = [job for job in jobs if job not in kept]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns) as progress:
        task = progress.add_task(figure.name, total=len(jobs), completed=len(jobs) - len(left))
        for job, came_to in _came_to(figure, left, quick=quick):
            kept.add(job, came_to)
            progress.advance(task)
    return [kept.row(job) for job in jobs]


def _came_to(figure: Figure, jobs: Sequence[Row], *, quick: bool) -> Iterator[tuple[Row, Row]]:
    if quick or not jobs:
        for job in jobs:
            yield job, _timed(figure.measure, job)
    elif figure.alone:
        for job in jobs:
            yield from _side_by_side(figure, [job], 1)
    else:
        yield from _side_by_side(figure, jobs, os.cpu_count() or 1)


def _side_by_side(figure: Figure, jobs: Sequence[Row], workers: int) -> Iterator[tuple[Row, Row]]:
    with ProcessPoolExecutor(min(workers, len(jobs)), multiprocessing.get_context("fork")) as pool:
        running = {pool.submit(_timed, figure.measure, job): job for job in jobs}
        try:
            for done in as_completed(running):
                yield running[done], done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _timed(measure: Callable[[Row], Row], job: Row) -> Row:
    start = time.process_time()
    found = measure(job)
    return {**found, "busy": round(time.process_time() - start, 3)}
