"""How long a person waits for `hushcube --help`, against an empty Python."""

from __future__ import annotations

import subprocess
import sys
import time


def main(repeats=9):
    rows = []
    empty = _best([sys.executable, "-c", "pass"], repeats)
    for name, command in (("hushcube --help", ["--help"]), ("hushcube plan --help", ["plan", "--help"])):
        seconds = _best([sys.executable, "-m", "hushcube", *command], repeats)
        rows.append({"command": name, "seconds": seconds, "empty_python_seconds": empty, "ratio": seconds / empty})
        print(rows[-1], flush=True)
    return rows


def _best(command, repeats):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return min(times)


if __name__ == "__main__":
    main()
