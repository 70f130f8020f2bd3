import signal
import sys
from contextlib import suppress

import pytest

from hushcube import interrupts


def pytest_addoption(parser):
    parser.addoption("--one-of-each", action="store_true", help="run one case of each test in tests/contract")


def pytest_collection_modifyitems(config, items):
    """Slow tests start first, so that no worker is left with one at the end."""
    if config.getoption("one_of_each"):
        seen = set()
        left_out = [item for item in items if _is_repeated(item, seen)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def _is_repeated(item, seen):
    """Whether another case of the same contract is run."""
    if item.path.parent.name != "contract":
        return False
    test = (item.path, item.originalname)
    repeated = test in seen
    seen.add(test)
    return repeated


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
