"""A stored answer of 1,000 cells, read by 10 clients that keep their connections: requests a second, and their times.

The server is `hushcube serve` in a process of its own, with a rate that does not limit them; the clients are one more
process. `python -m benchmarks.server`.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import hushcube as hc

CLIENTS, SECONDS = 10, 5.0
SCHEMA = hc.Schema.from_yaml(
    "name: thousand\nattributes:\n"
    + "".join(f"  - {{name: {name}, range: [0, 9]}}\n" for name in ("tens", "hundreds", "thousands"))
)


def lay_out(folder):
    """A session that knows a table of 1,000 cells, and a token for each client."""
    rows = np.random.default_rng(1).integers(0, 10, (3, 50_000))
    pa.parquet.write_table(pa.table(dict(zip(SCHEMA.names, map(pa.array, rows), strict=True))), folder / "rows.parquet")
    with hc.Ledger.create(folder / "ledger.db") as ledger:
        ledger.create_account("rows", rho=1, neighbours="add-remove")
        source = folder / "rows.parquet"
        with hc.Session.open(SCHEMA, ledger=ledger, account="rows", data=source, folder=folder / "cube") as session:
            session.ask("*".join(SCHEMA.names), std_error=10)
    tokens = hc.Tokens(folder / "tokens.json")
    return [tokens.create(f"reader-{number}", role="reader", accounts=["rows"]) for number in range(CLIENTS)]


async def client(port, token, until, took, sizes):
    """One connection, request after request, as fast as answers come."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    asked = "GET /sessions/cube/answer?question=tens*hundreds*thousands HTTP/1.1\r\n"
    asked = (asked + f"Host: localhost\r\nAuthorization: Bearer {token}\r\n\r\n").encode()
    while (start := time.perf_counter()) < until:
        writer.write(asked)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        body = await reader.readexactly(length)
        if b" 429 " in head.split(b"\r\n")[0]:
            await asyncio.sleep(0.005)
            continue
        if not head.startswith(b"HTTP/1.1 200 "):
            raise RuntimeError(body)
        took.append(time.perf_counter() - start)
        sizes.add(length)
    writer.close()


async def load(port, tokens):
    took, sizes = [], set()
    until = time.perf_counter() + SECONDS
    await asyncio.gather(*(client(port, token, until, took, sizes) for token in tokens))
    return np.array(took), sizes


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tokens = lay_out(folder)
        command = [sys.executable, "-m", "hushcube", "serve", folder / "cube", "--tokens", folder / "tokens.json"]
        command += ["--audit", folder / "audit.jsonl", "--port", "0", "--rate", "100000"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            port = int(server.stdout.readline().strip().rsplit(":", 1)[1])
            try:
                took, (size,) = asyncio.run(load(port, tokens))
            finally:
                server.terminate()
    return [
        {
            "clients": CLIENTS,
            "cells": 1000,
            "bytes": size,
            "requests_a_second": len(took) / SECONDS,
            "median_ms": 1000 * float(np.median(took)),
            "99%_ms": 1000 * float(np.quantile(took, 0.99)),
        }
    ]


if __name__ == "__main__":
    for row in main():
        print(row)
