"""A private Postgres server on loopback, in a folder of its own; started for tests, ended by its process."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

PASSWORD = "only for tests: 1'\"2"


class Server:
    """`initdb` and `postgres` run as the user `postgres` where the tests run as root, which Postgres refuses."""

    def __init__(self, connections: int = 20) -> None:
        pytest.importorskip("psycopg", reason="psycopg is not installed")
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
        place = shutil.which("initdb") or (found and str(found[-1] / "initdb"))
        if not place:
            pytest.skip("there is no Postgres server here: no initdb")
        self.programs = Path(place).resolve().parent
        self.user = {"user": "postgres", "group": "postgres", "extra_groups": ()} if os.geteuid() == 0 else {}
        self.folder = Path(tempfile.mkdtemp(prefix="hushcube-postgres-"))
        self.process: subprocess.Popen | None = None
        if self.user:
            shutil.chown(self.folder, "postgres")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.connections = connections
        self._initialise()
        self.start()

    def _initialise(self) -> None:
        secret = self.folder / "secret"
        secret.write_text(PASSWORD + "\n")
        if self.user:
            shutil.chown(secret, "postgres")
        options = ["-D", str(self.folder / "data"), "-A", "scram-sha-256", "--pwfile", str(secret), "-U", "owner"]
        command = [str(self.programs / "initdb"), *options, "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder, **self.user)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = ["-D", str(self.folder / "data"), "-p", str(self.port), "-k", str(self.folder)]
        settings = ["listen_addresses=127.0.0.1", "fsync=off", "shared_buffers=64MB"]
        settings.append(f"max_connections={self.connections}")
        command = [str(self.programs / "postgres"), *options, *(x for each in settings for x in ("-c", each))]
        log = (self.folder / "log").open("a")
        self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, **self.user)
        log.close()
        end = time.monotonic() + 30
        while time.monotonic() < end and self.process.poll() is None:
            try:
                self.connect().close()
            except Exception:
                time.sleep(0.05)
            else:
                return
        raise RuntimeError((self.folder / "log").read_text()[-2000:])

    def connect(self):
        """A connection of the owner of everything."""
        import psycopg

        return psycopg.connect(
            host="127.0.0.1", port=self.port, user="owner", password=PASSWORD, dbname="postgres", autocommit=True
        )

    def address(self, table: str, user: str = "owner") -> str:
        """What a user gives as the data."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/postgres#{table}"

    def kill(self) -> None:
        """At once, as when the machine dies."""
        self._end(signal.SIGQUIT)

    def _end(self, how: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(30)
            self.process = None

    def close(self) -> None:
        """End it and remove its folder."""
        self._end(signal.SIGINT)
        shutil.rmtree(self.folder, ignore_errors=True)
