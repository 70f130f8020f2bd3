"""Spark sessions: in this process, on a cluster, or on a Spark Connect server.

    local[*]                 Java on this machine, with all its cores
    spark://host:7077        a cluster's master; the driver runs here
    sc://host:15002          Spark Connect: nothing runs here, and no Java is needed

A session that the program has already is used and left alone; one of ours is stopped at the end. What Java
prints is thrown away, because the logs of failed tasks quote data. Whatever the owner's spark-defaults.conf or
environment says goes before the settings here.
"""

from __future__ import annotations

import atexit
import functools
import logging
import os
import signal
import socket
import subprocess
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Final
from urllib.parse import urlsplit

from hushcube.durable import temporary_folder
from hushcube.errors import DataError, HushcubeError, MissingDependency
from hushcube.resources import exhausted

LOCAL: Final = "local[*]"
_PORTS: Final = {"spark": 7077, "sc": 15002}
_REACH_SECONDS: Final = 10
_RETRIES: Final = 4  # Spark's own 15 mean ten minutes of silence when a server is gone; these mean seconds
_SETTINGS: Final = {
    "spark.app.name": "hushcube",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.maxResultSize": "0",
    "spark.log.level": "OFF",
}
_LOCAL_SETTINGS: Final = {
    # Nothing listens beyond this machine, and a group-by of few rows does not make 200 tasks.
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "8",
}


@contextmanager
def session(address: str) -> Iterator[Any]:
    """A session at `local[*]`, `spark://...` or `sc://...`."""
    scheme = address.partition("://")[0]
    if scheme in _PORTS:
        _reach(address, scheme)
    with _connect(address) if scheme == "sc" else _classic(address) as spark:
        yield spark


@contextmanager
def spoken(problem: str, fix: str, *, answered: bool = True) -> Iterator[None]:
    """Turn what Spark raises into an error without any of its text; `problem` is that it refuses.

    Only calls of Spark belong inside, so that every exception is Spark's, Java's or the network's. A server that has
    not `answered` before cannot stop answering.
    """
    try:
        with _silence():
            yield
    except HushcubeError:
        raise
    except Exception as error:
        text = ""
        with suppress(Exception):  # Java itself is asked for its words
            text = str(error)
        if (lacking := exhausted(error, "the disk where Spark keeps what does not fit memory", text=text)) is not None:
            raise lacking from None
        if answered and _gone(error):
            problem, fix = "Spark stopped answering", "see its own logs, and start again: nothing was written"
        raise DataError("data", problem, fix) from None


@contextmanager
def _silence() -> Iterator[None]:
    """No logs, which repeat what the server says, and no warnings about versions of pandas, which is not used here."""
    before = logging.root.manager.disable
    logging.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _gone(error: Exception) -> bool:
    """Whether the other side is no longer there, rather than there and refusing."""
    kinds = {base.__name__ for base in type(error).__mro__}
    if "Py4JJavaError" in kinds:
        return False
    if kinds & {"OSError", "EOFError", "Py4JError", "RetriesExceeded", "RpcError"}:
        return True
    code = getattr(error, "getGrpcStatusCode", None)
    return callable(code) and getattr(code(), "name", "") in ("UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED")


def _reach(address: str, scheme: str) -> None:
    """Fail at once where nobody listens: Spark itself would try for one minute, Spark Connect for ten."""
    hosts = address.partition("://")[2].partition("/")[0]
    for part in hosts.split(","):
        try:
            url = urlsplit(f"//{part}")
            host, port = url.hostname, url.port or _PORTS[scheme]
        except ValueError:
            host = None
        if not host:
            fix = f"write {scheme}://HOST:{_PORTS[scheme]}#TABLE"
            raise DataError("data", f"{scheme}://{hosts} is not an address", fix)
        with suppress(OSError), socket.create_connection((host, port), _REACH_SECONDS):
            return
    fix = "check host and port, and that the server is running"
    raise DataError("data", f"nobody answers at {scheme}://{hosts}", fix)


@contextmanager
def _connect(address: str) -> Iterator[Any]:
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # its library in C knows nothing of Python's logs
    try:
        with _silence():
            from pyspark.sql.connect.client.retries import DefaultPolicy
            from pyspark.sql.connect.session import SparkSession
    except ImportError:  # pyspark's own, where grpc or pandas is missing, is one too
        raise MissingDependency("pyspark[connect]", "Spark Connect", "spark") from None
    fix = "check its version, the token in SPARK_CONNECT_AUTHENTICATE_TOKEN, and whether it uses TLS: /;use_ssl=true"
    with spoken("the Spark Connect server refuses", fix, answered=False):
        spark: Any = SparkSession(connection=address)
        spark.client.set_retry_policies([DefaultPolicy(max_retries=_RETRIES)])
        _ = spark.version  # the first call
    try:
        yield spark
    finally:
        with _silence(), suppress(Exception):  # a server that is gone has no session left to end
            spark.stop()


@contextmanager
def _classic(master: str) -> Iterator[Any]:
    try:
        with _silence():
            from pyspark import SparkContext
            from pyspark.sql import SparkSession
    except ImportError:
        raise MissingDependency("pyspark", "Spark", "spark") from None
    context: Any = SparkContext._active_spark_context
    if context is not None:
        if context.master != master and not (master == LOCAL and context.master.startswith("local")):
            fix = "stop it first, or give one of its data frames as the data"
            raise DataError("data", f"this program has a Spark session already, and not at {master}", fix)
        with spoken("the Spark session of this program cannot be used", "start another one"):
            spark: Any = SparkSession(context).newSession()
        yield spark
        return
    started = context = _start(master)
    try:
        with spoken("Spark cannot start a session", "check the settings in spark-defaults.conf"):
            started = spark = SparkSession(context)
        yield spark
    finally:
        for each in (started, context):  # where Java is gone already, the session fails before it ends the context
            with _silence(), suppress(Exception):
                each.stop()


def _start(master: str) -> Any:
    from pyspark import SparkConf, SparkContext, java_gateway

    launch: Any = java_gateway.launch_gateway
    with spoken("Java cannot be started for Spark", "install Java 17 or later, or set JAVA_HOME; or use sc://"):
        gateway: Any = SparkContext._gateway
        if gateway is not None and gateway.proc.poll() is not None:  # it was killed
            gateway = SparkContext._gateway = SparkContext._jvm = None
        if gateway is None:  # Java stays when a session ends, for the next one
            nowhere = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            with _memory():
                gateway = launch(popen_kwargs=nowhere)
        conf = SparkConf(_jvm=gateway.jvm)
    settings = _SETTINGS | {"spark.sql.warehouse.dir": f"file://{_folder()}", "spark.local.dir": _folder()}
    if master == LOCAL:
        settings |= _LOCAL_SETTINGS
    conf.setMaster(master)
    for key, value in settings.items():
        conf.setIfMissing(key, value)
    handler = signal.getsignal(signal.SIGINT)
    try:
        with spoken(f"Spark cannot start at {master}", "check the master, its version, and the settings for Spark"):
            return SparkContext(gateway=gateway, conf=conf)
    finally:  # Spark leaves a handler of Ctrl-C that ends its jobs; a session of ours ends them anyway
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)


@contextmanager
def _memory() -> Iterator[None]:
    """Java may have half of the machine's memory: Spark's own default of 1 GB fails where groups are many."""
    name = "SPARK_DRIVER_MEMORY"  # of all ways to say it the weakest
    half = f"{max(1024, os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') // 2**21)}m"
    own = name not in os.environ
    os.environ.setdefault(name, half)
    try:
        yield
    finally:
        if own:
            del os.environ[name]


@functools.cache
def _folder() -> str:
    """Where Java keeps what does not fit its memory: rows, so that it goes with this process even if Java is killed."""
    until_exit = ExitStack()
    atexit.register(until_exit.close)
    return str(until_exit.enter_context(temporary_folder()))
