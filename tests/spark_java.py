"""A Spark session for the tests, with a Spark Connect server in it on loopback: one Java process for all of them."""

from __future__ import annotations

import functools
import os
import re
import shutil
import socket
import subprocess
import tempfile
import warnings

import pytest

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
"""Java compiles less: tests are short."""
PLAIN = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.log.level": "OFF",
}


@functools.cache
def missing_java() -> str:
    """Why Spark cannot be started here; nothing where it can."""
    home = os.environ.get("JAVA_HOME")
    program = os.path.join(home, "bin", "java") if home else shutil.which("java")  # noqa: PTH118
    try:
        told = subprocess.run([program or "java", "-version"], capture_output=True, text=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError):
        return "Spark needs Java 17 or later: install it, for example openjdk-17-jre-headless, or set JAVA_HOME"
    found = re.search(r'version "(\d+)', told)
    if not found or int(found[1]) < 17:
        return f"Spark needs Java 17 or later, and JAVA_HOME or the PATH has {found[1] if found else 'another one'}"
    return ""


def need_spark() -> None:
    """Skip where Spark cannot run, and say why."""
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'hushcube[spark]'")
    if reason := missing_java():
        pytest.skip(reason)


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


class Running:
    """The one session of this process; it is started when first needed."""

    def __init__(self) -> None:
        self.session = None

    def start(self):
        """The session; `connect_port` is where its Spark Connect server listens."""
        need_spark()
        if self.session is None:
            from pyspark.sql import SparkSession

            self.folder, port = tempfile.mkdtemp(prefix="hushcube-tests-spark-"), free_port()
            settings = PLAIN | {
                "spark.driver.extraJavaOptions": QUICK,
                "spark.sql.warehouse.dir": f"{self.folder}/warehouse",
                "spark.local.dir": self.folder,
                "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
                "spark.connect.grpc.binding.address": "127.0.0.1",
                "spark.connect.grpc.binding.port": str(port),
            }
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.session = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
            self.session.connect_port = port
        return self.session

    def stop(self) -> None:
        """End it; the next test that needs it starts another."""
        if self.session is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.session.stop()
            self.session = None
            shutil.rmtree(self.folder, ignore_errors=True)


RUNNING = Running()
