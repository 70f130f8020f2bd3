"""The short form of the interruptions; `python -m faults.interrupts` is the long one."""

import signal

import pytest

from faults.interrupts import LINUX, RELEASES, interrupted, make_desk

pytestmark = pytest.mark.skipif(not LINUX, reason="whether a program listens is read from /proc")
MOMENTS = [
    ("csv", signal.SIGINT, [0.0, 0.02, 0.1, 0.3, 0.5, 0.8]),
    ("database", signal.SIGTERM, [0.05, 0.4, 0.7]),
    ("face", signal.SIGTERM, [0.6, 1.0]),
    ("csv", signal.SIGHUP, [0.2]),
]


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    return make_desk(tmp_path_factory.mktemp("interrupted"))


@pytest.mark.parametrize(("release", "number", "moments"), MOMENTS, ids=lambda x: str(getattr(x, "name", x)))
def test_a_request_leaves_all_or_nothing(desk, release, number, moments):
    faults = []
    for moment in moments:
        outcome = interrupted(desk, RELEASES[release], number, moment)
        if outcome.fault:
            faults.append(f"after {moment} s: {outcome.fault}")
    assert faults == []
