"""One step ahead of whoever uses the items."""

import threading

import pytest

from hushcube.ahead import ahead, beside, gathered


def test_what_is_read_ahead_is_broken_off_when_nobody_wants_it():
    """Else Ctrl-C would wait for a batch that may take hours."""
    stopped = threading.Event()

    def reader():
        yield "first"
        assert stopped.wait(60)

    items = ahead(reader(), stopped.set)
    assert next(items) == "first"
    items.close()
    assert stopped.is_set()


def test_the_next_item_is_made_while_one_is_used():
    second = threading.Event()

    def items():
        yield 1
        second.set()
        yield 2

    found = ahead(items())
    assert next(found) == 1 and second.wait(60)
    assert list(found) == [2]


def test_what_goes_wrong_is_raised_where_the_item_is_wanted():
    def items():
        yield 1
        raise KeyError("two")

    found = ahead(items())
    assert next(found) == 1
    with pytest.raises(KeyError, match="two"):
        next(found)


def test_items_may_be_empty_or_none():
    assert list(ahead([None, (), 0])) == [None, (), 0] and not list(ahead([]))


def test_items_of_several_sources_are_made_at_a_time():
    both = threading.Barrier(2, timeout=60)

    def source(name):
        both.wait()
        yield from [name] * 3

    assert sorted(gathered([source("a"), source("b")])) == [*"aaabbb"]
    assert not list(gathered([])) and sorted(gathered([[], [1], [], [2, 3]], 3)) == [1, 2, 3]


def test_makers_are_let_go_when_nobody_wants_their_items():
    ended = []

    def source():
        try:
            yield from range(10**9)
        finally:
            ended.append(True)

    items = gathered(source() for _ in range(10))
    assert next(items) == 0
    items.close()
    assert len(ended) <= 2  # those that were begun


def test_what_goes_wrong_in_one_source_ends_them_all():
    def wrong():
        yield 1
        raise KeyError("two")

    with pytest.raises(KeyError, match="two"):
        list(gathered([iter(lambda: 0, 1), wrong()]))


def test_work_is_done_beside_the_body():
    begun, done = threading.Event(), threading.Event()

    def work(_failed):
        begun.set()
        assert done.wait(60)

    with beside(work):
        assert begun.wait(60)
        done.set()


def test_what_goes_wrong_beside_is_raised_in_the_end():
    def work(_failed):
        raise KeyError("beside")

    reached = []
    with pytest.raises(KeyError, match="beside"), beside(work):
        reached.append(True)
    assert reached


def test_the_work_is_told_that_the_body_has_failed_and_the_bodys_failure_is_raised():
    given_up = threading.Event()

    def work(failed):
        while not failed():
            given_up.wait(0.001)
        given_up.set()
        raise KeyError("beside")

    with pytest.raises(ValueError, match="body"), beside(work):
        raise ValueError("body")
    assert given_up.is_set()
