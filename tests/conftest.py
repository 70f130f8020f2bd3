import signal
import sys
from contextlib import suppress

import pytest

from hushcube import interrupts


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
