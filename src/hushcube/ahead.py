"""In other threads: items are made while one is used, or one piece of work is done beside another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import Queue
from threading import Event, Lock
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


def gathered(sources: Iterable[Iterable[Item]], threads: int = 2) -> Iterator[Item]:
    """The items of all sources in any order: each thread makes those of one source at a time, a few of them ahead.

    >>> sorted(gathered(range(n) for n in range(4)))
    [0, 0, 0, 1, 1, 2]
    """
    waiting, turn, unwanted = iter(sources), Lock(), Event()
    made: Queue[tuple[Item, ...]] = Queue(threads)

    def make() -> None:
        try:
            while not unwanted.is_set():
                with turn:
                    source = next(waiting, None)
                if source is None:
                    return
                for item in source:
                    made.put((item,))
                    if unwanted.is_set():
                        return
        except BaseException:
            unwanted.set()
            raise
        finally:
            made.put(())  # nothing: this thread has ended

    with ThreadPoolExecutor(threads) as pool:
        makers = [pool.submit(make) for _ in range(threads)]
        left = threads
        try:
            while left:
                if item := made.get():
                    yield from item
                else:
                    left -= 1
        finally:
            unwanted.set()
            while left:  # whoever waits to hand over an item is let go
                left -= not made.get()
    for maker in makers:
        maker.result()


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
