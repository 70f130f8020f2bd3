"""In a second thread: the next item is made while this one is used, or one piece of work is done beside another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import TypeVar

Item = TypeVar("Item")


def ahead(items: Iterable[Item], stop: Callable[[], None] = lambda: None) -> Iterator[Item]:
    """The items in their order; `stop` breaks off the one that is being made when nobody wants it any more.

    It pays where making and using leave Python's lock for long, as array operations, compression and databases do.

    >>> list(ahead(n * n for n in range(4)))
    [0, 1, 4, 9]
    """
    source = iter(items)
    with ThreadPoolExecutor(1) as thread:
        try:
            pending = thread.submit(_next, source)
            while made := pending.result():
                pending = thread.submit(_next, source)
                yield from made
        except BaseException:
            stop()
            raise


def _next(source: Iterator[Item]) -> tuple[Item, ...]:
    """The next item alone; nothing at the end, because a StopIteration cannot leave a thread's result."""
    for item in source:
        return (item,)
    return ()


@contextmanager
def beside(work: Callable[[Callable[[], bool]], None]) -> Iterator[None]:
    """Do some work while the body is carried out; in the end both are done, or what went wrong is raised.

    The work is given a function that says whether the body has failed: it had better give up then, since it is waited
    for.

    >>> done = []
    >>> with beside(lambda failed: done.append("this")):
    ...     other = "that"
    >>> done, other
    (['this'], 'that')
    """
    failed = Event()
    with ThreadPoolExecutor(1) as thread:
        pending = thread.submit(work, failed.is_set)
        try:
            yield
            pending.result()
        except BaseException:
            failed.set()
            raise
