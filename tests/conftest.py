import signal
import sys
from collections import Counter
from contextlib import suppress

import pytest
from hypothesis import settings

from hushcube import interrupts


def pytest_addoption(parser):
    text = "run one case of each contract, every fifth of a law, every second of others, a quarter of examples"
    parser.addoption("--few", action="store_true", help=text)


def pytest_configure(config):
    if config.getoption("few"):
        settings.register_profile("few", max_examples=settings.default.max_examples // 4)
        settings.load_profile("few")


def pytest_collection_modifyitems(config, items):
    """Slow tests and services start first: no worker is left with one at the end, and few start a service twice."""
    if config.getoption("few"):
        before = Counter()
        left_out = {item for item in items if _is_left_out(item, before)}
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]
    items.sort(key=lambda item: not any(item.iter_markers("slow")) and not any(item.iter_markers("service")))


def _is_left_out(item, before):
    """A contract that several engines keep is one test, wherever it is collected."""
    if not isinstance(item, pytest.Function):
        return False
    test = (item.function.__module__, item.originalname)
    before[test] += 1
    kind = item.path.parent.name
    return before[test] > 1 if kind == "contract" else before[test] % (5 if kind == "laws" else 2) != 1


@pytest.fixture
def listening(monkeypatch):
    """What the command line installs, for one test; returns a library that swallows the request that it gets."""
    before = {number: signal.getsignal(number) for number in interrupts._SIGNALS}
    monkeypatch.setattr(interrupts, "_noted", [])
    monkeypatch.setattr(interrupts, "_waiting", False)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    interrupts.listen()
    interrupts.resume()

    def swallow(number):
        with suppress(KeyboardInterrupt):
            signal.raise_signal(number)

    yield swallow
    for number, handler in before.items():
        signal.signal(number, handler)
