"""What can go wrong around Spark, through the command line: a clear error, exit code 2, and nothing written."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hushcube.cli import run
from hushcube.verbs.charging import NOBODY_COUNTS
from spark_java import PLAIN, QUICK, free_port, need_spark

pytestmark = pytest.mark.service


pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'hushcube[spark]'")
TOKEN = "only-for-tests"
COUNTED = f"3 rows were read and counted (exact, for the owner of the data only)\n{NOBODY_COUNTS}\n"
BUDGET = ["--epsilon", "1", "--neighbours", "add-remove"]


@pytest.fixture
def desk(tmp_path, monkeypatch, capfd):
    """A plan, a small file, and a pattern of files whose billion rows take a while; they are one file, linked."""
    for name in ("desk", "tmp"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "desk")
    Path("s.yaml").write_text("name: s\nattributes:\n  - {name: a, size: 2}\n")
    pq.write_table(pa.table({"a": [0, 1, 1]}), "x.parquet")
    pq.write_table(pa.table({"a": np.zeros(10_000_000, np.int8)}), "slow0.parquet")
    for i in range(1, 100):
        os.link("slow0.parquet", f"slow{i}.parquet")
    assert run(["plan", "--schema", "s.yaml", "--workload", "a", *BUDGET, "--out", "plan.json"]) == 0
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    options = f"--conf spark.driver.extraJavaOptions='{QUICK} -Djava.io.tmpdir={tmp_path}/tmp' pyspark-shell"
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", options)
    capfd.readouterr()
    before = sorted(Path().iterdir())
    yield tmp_path / "desk"
    assert sorted(Path().iterdir()) == before


def refused(capfd, data, *options, code=2):
    """What a release says that must fail."""
    assert run(["release", "plan.json", "--data", data, "--out", "published", *options]) == code
    out, err = capfd.readouterr()
    assert out == "" and err.startswith("hushcube: ") and err.count("\n") == 1
    return err


def started(data, *options):
    """A release in a program of its own."""
    command = [sys.executable, "-m", "hushcube", "release", "plan.json", "--data", data, "--out", "published", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(process):
    """What it printed; it does not outlive the test."""
    try:
        return process.communicate(timeout=100)
    finally:
        process.kill()


def counting(process):
    """Wait until the Java process of a program counts, by the names of its threads; its id."""
    end = time.monotonic() + 90
    while time.monotonic() < end and process.poll() is None:
        for java in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
            if any(name.startswith("Executor task l") for name in threads(java)):
                return int(java)
        time.sleep(0.1)
    process.kill()
    raise AssertionError(f"Spark does not count: {process.communicate()}")


def threads(pid):
    for path in Path(f"/proc/{pid}/task").glob("*/comm"):
        try:
            yield path.read_text()
        except OSError:
            continue


def gone(pid):
    """Whether a process ends within seconds."""
    for _ in range(100):
        if not Path(f"/proc/{pid}").exists():
            return True
        time.sleep(0.1)
    return False


linux = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="processes are found through /proc")


def test_no_java(desk, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(desk / "no"))
    process = started("x.parquet", "--engine", "spark")
    out, err = finished(process)
    assert (process.returncode, out) == (2, "")
    assert err == (
        "hushcube: --data: Java cannot be started for Spark. "
        "Fix: install Java 17 or later, or set JAVA_HOME; or use sc://.\n"
    )


def test_no_pyspark(desk, monkeypatch, capfd):
    for module in [name for name in sys.modules if name.partition(".")[0] == "pyspark"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert "pip install 'hushcube[spark]'" in refused(capfd, "x.parquet", "--engine", "spark", code=1)


def test_nobody_there(desk, capfd):
    for scheme in ("spark", "sc"):
        assert "nobody answers" in refused(capfd, f"{scheme}://127.0.0.1:{free_port()}#t")


@linux
def test_java_killed_in_the_middle_is_an_error_and_a_request_to_stop_ends_all_of_it(desk):
    need_spark()
    for how, code, told in (
        (signal.SIGKILL, 2, "Spark stopped answering"),
        (signal.SIGINT, 130, "interrupted"),
        (signal.SIGTERM, 143, "interrupted"),
    ):
        process = started("slow*.parquet", "--engine", "spark")
        java = counting(process)
        os.kill(java if how == signal.SIGKILL else process.pid, how)
        out, err = finished(process)
        assert (process.returncode, out) == (code, ""), err
        assert err.strip().startswith("hushcube: ") and told in err and err.strip().count("\n") == 0
        assert gone(java)
        assert not list(desk.parent.glob("tmp/hushcube-*"))


@pytest.fixture
def server(desk, tmp_path):
    """A Spark Connect server with a password, in a process of its own; its process, and its address."""
    need_spark()
    import pyspark

    port, home = free_port(), Path(pyspark.__file__).parent
    settings = PLAIN | {
        "spark.driver.extraJavaOptions": QUICK,
        "spark.local.dir": str(tmp_path / "tmp"),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.authenticate.token": TOKEN,
    }
    options = [x for key, value in settings.items() for x in ("--conf", f"{key}={value}")]
    command = [str(home / "bin" / "spark-submit"), "--master", "local[1]", *options]
    service = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    environment = {key: value for key, value in os.environ.items() if key != "PYSPARK_SUBMIT_ARGS"}
    nowhere = subprocess.DEVNULL
    process = subprocess.Popen(
        [*command, *service],
        stdout=nowhere,
        stderr=nowhere,
        cwd=tmp_path / "tmp",
        env=environment | {"SPARK_HOME": str(home)},
    )
    yield process, f"sc://localhost:{port}"
    process.kill()
    process.wait(30)


@linux
def test_a_master_with_one_worker(desk, tmp_path, monkeypatch):
    """Three Java processes besides the driver's: a master, a worker, and what that starts."""
    need_spark()
    import pyspark

    home, port = Path(pyspark.__file__).parent, free_port()
    own = {"SPARK_HOME": str(home), "SPARK_DAEMON_JAVA_OPTS": QUICK, "SPARK_LOCAL_IP": "127.0.0.1"}
    place = ["--host", "127.0.0.1", "--webui-port", "0"]
    address, running = f"spark://127.0.0.1:{port}", []
    daemons = {
        "master.Master": [*place, "--port", str(port)],
        "worker.Worker": [*place, "-c", "1", "-m", "1g", "-d", str(tmp_path / "tmp"), address],
    }
    options = {"spark.driver.extraJavaOptions": QUICK, "spark.executor.extraJavaOptions": QUICK} | PLAIN
    settings = " ".join(f"--conf {key}='{value}'" for key, value in options.items())
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"{settings} --conf spark.executor.memory=512m pyspark-shell")
    try:
        for name, arguments in daemons.items():
            command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
            log = (tmp_path / "tmp" / f"{name}.log").open("w")
            running.append(
                subprocess.Popen(command, stdout=log, stderr=log, cwd=tmp_path / "tmp", env=os.environ | own)
            )
            log.close()
        for _ in range(100):  # until the master listens
            process = started(f"{address}#parquet:x.parquet")
            out, err = finished(process)
            if "nobody answers" not in err:
                break
            time.sleep(0.2)
        assert (process.returncode, err) == (0, COUNTED) and "published" in out
        shutil.rmtree("published")
    finally:
        for each in running:
            each.terminate()
            each.wait(30)


@linux
def test_a_connect_server_refuses_strangers_and_dies_in_the_middle(server, desk, monkeypatch, capfd):
    process, address = server
    end = time.monotonic() + 90
    while "nobody answers" in (told := refused(capfd, f"{address}#t")) and time.monotonic() < end:
        time.sleep(0.5)
    assert "SPARK_CONNECT_AUTHENTICATE_TOKEN" in told  # it answers, and asks for a token
    monkeypatch.setenv("SPARK_CONNECT_AUTHENTICATE_TOKEN", "an-unspeakable-guess")
    told = refused(capfd, f"{address}#t")
    assert "SPARK_CONNECT_AUTHENTICATE_TOKEN" in told and "unspeakable" not in told
    monkeypatch.setenv("SPARK_CONNECT_AUTHENTICATE_TOKEN", TOKEN)
    assert "has no table 'nobody'" in refused(capfd, f"{address}#nobody")
    assert run(["release", "plan.json", "--data", f"{address}#parquet:{desk}/x.parquet", "--out", "fine"]) == 0
    capfd.readouterr()
    shutil.rmtree("fine")
    counts = started(f"{address}#parquet:{desk}/slow*.parquet")
    before = busy(process.pid)
    while busy(process.pid) < before + 300 and counts.poll() is None:  # three seconds of its time
        time.sleep(0.1)
    process.kill()
    out, err = finished(counts)
    assert (counts.returncode, out) == (2, "")
    assert "Spark stopped answering" in err and err.count("\n") == 1


def busy(pid):
    """Hundredths of a second that a process has computed for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
