"""The runs of an experiment, side by side in processes.

Runs are independent and each has its own noise: what they come to depends neither on how many go on at once, nor on
which of them are known from a file. Processes are forked, so that they share the counts and plans of the one that
starts them; where the system cannot fork, runs follow one another.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from itertools import product
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Any

from hushcube import interrupts
from hushcube.errors import ResourceError
from hushcube.experiments.errors import RunErrors
from hushcube.experiments.kept import keeping
from hushcube.experiments.trial import Trial

Order = tuple[int, int]
"""A setting and a run of it, by their numbers."""
Work = Callable[[int, int], RunErrors]
"""What such a run comes to."""


def repeated(
    work: Work, names: Sequence[str], keys: Sequence[str], about: Mapping[str, Any], trial: Trial
) -> list[list[RunErrors]]:
    """What the runs of each setting come to; those that are kept, by the keys of settings, are not run again."""
    orders: list[Order] = [(at, run) for run, at in product(range(trial.runs), range(len(keys)))]
    with keeping(trial.keep, about) as kept:
        found = {(at, run): known for at, run in orders if kept and (known := kept.get(keys[at], run)) is not None}
        left = [order for order in orders if order not in found]
        try:
            with closing(side_by_side(work, left, trial.workers or os.cpu_count() or 1)) as done:
                for (at, run), errors in done:
                    if kept:
                        kept.add(keys[at], run, errors)
                    found[at, run] = errors
                    trial.progress(names[at], len(found) / len(orders))
        except BaseException as problem:
            if kept:
                told = f"{len(found):,} of {len(orders):,} runs are kept in {kept.path}, and the same command goes on"
                problem.add_note(told)
            raise
    return [[found[at, run] for run in range(trial.runs)] for at in range(len(keys))]


def side_by_side(work: Work, orders: Sequence[Order], workers: int) -> Generator[tuple[Order, RunErrors], None, None]:
    """Orders, with what they come to, as they are done; processes end when it is closed."""
    if (workers := min(workers, len(orders))) <= 1 or "fork" not in multiprocessing.get_all_start_methods():
        for order in orders:
            interrupts.check()
            yield order, work(*order)
        return
    left = list(reversed(orders))
    crew: dict[Connection, ForkProcess] = {}
    busy: dict[Connection, Order] = {}

    def employ(connection: Connection) -> None:
        if left:
            busy[connection] = left.pop()
            connection.send(busy[connection])

    try:
        with interrupts.held():
            for _ in range(workers):
                _hire(work, crew)
        for connection in crew:
            employ(connection)
        while busy:
            ready = wait(list(busy))
            for connection in [own for own in crew if own in ready]:
                yield busy.pop(connection), _received(connection)
                interrupts.check()
                employ(connection)
    finally:
        with interrupts.held():
            for process in crew.values():
                process.kill()  # whatever it is doing: it has no files, and its last result is not wanted
                process.join()


def _hire(work: Work, crew: dict[Connection, ForkProcess]) -> None:
    """One more process, which waits for orders."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_obey, args=(work, theirs, [ours, *crew]), daemon=True)
    process.start()
    theirs.close()
    crew[ours] = process


def _obey(work: Work, orders: Connection, others: Sequence[Connection]) -> None:
    """In a process of its own: carry out orders until it is killed, or nobody gives any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that gives orders decides when to stop
    for each in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_DFL)
    for connection in others:  # otherwise it would not notice that nobody is left
        connection.close()
    while True:
        try:
            order = orders.recv()
        except EOFError:
            return
        try:
            came_to: RunErrors | BaseException = work(*order)
        except BaseException as problem:  # to be raised where the order came from
            came_to = problem
        orders.send(came_to)


def _received(connection: Connection) -> RunErrors:
    try:
        came_to = connection.recv()
    except EOFError:
        fix = "use fewer `workers`, or a machine with more of it"
        raise ResourceError("memory", "ran out: a process that ran a setting was killed", fix) from None
    if isinstance(came_to, BaseException):
        raise came_to
    return came_to  # type: ignore[no-any-return] # connections are untyped
