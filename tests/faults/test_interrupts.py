"""The short form of the interruptions; `python -m faults.interrupts` is the long one."""

import os
import signal
import subprocess
import sys
import time

import duckdb
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


def test_rows_on_disk_go_with_the_program(tmp_path):
    """Ended while DuckDB sorts more than fits memory; what a program leaves that is killed, the next one removes."""
    temporary, new = tmp_path / "temporary", tmp_path / "new"
    temporary.mkdir()
    schema = tmp_path / "s.yaml"
    schema.write_text("attributes:\n  - {name: x, size: 2}\nunit: id\nmax_rows: 1\n")
    duckdb.execute(
        f"COPY (SELECT i % 2 AS x, hash(i % 1500000)::VARCHAR AS id FROM range(3000000) t(i)) TO '{tmp_path}/p.parquet'"
    )
    code = "from hushcube.private.engines import source; source.MEMORY = 48 << 20; "
    budget = ["--workload", "1-way", "--epsilon", "1", "--neighbours", "add-remove"]
    command = [sys.executable, "-c", f"{code}from hushcube.cli import main; main()", "release", *budget]
    command += ["--schema", str(schema), "--data", str(tmp_path / "p.parquet"), "--out", str(new)]
    for number, code, folders in ((signal.SIGKILL, -9, 1), (signal.SIGTERM, 143, 0)):
        with subprocess.Popen(
            command, env={**os.environ, "TMPDIR": str(temporary)}, stderr=subprocess.PIPE, text=True
        ) as run:
            mine = f"*/duckdb_temp_{run.pid}_*.tmp"
            while run.poll() is None and not list(temporary.glob(mine)):
                time.sleep(0.005)
            run.send_signal(number)
            told = run.communicate(timeout=60)[1]
        assert run.returncode == code, told
        assert len(list(temporary.iterdir())) == folders and not new.exists()
