"""Run other libraries on the same jobs, at equal privacy, and write docs/peers.md: `make peers`.

    python -m benchmarks.peers [--install] [--only LIBRARY ...] [--parts PART ...]

Each library has an environment of its own, `.venv-peers/NAME`, because they need different versions of numpy;
`--install` makes those that are missing. A library that is not there, or that has no such job, is skipped, and the page
says why. The page is written after each part; `--parts` runs some of them again, and keeps the figures of the others.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from benchmarks.__main__ import table
from benchmarks.peers.judge import compared, judge
from benchmarks.peers.one_job import UNSUITED, Job

HERE, ROOT = Path(__file__).parent, Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "peers.md"
MARK = "<!-- figures: written by `make peers` -->"
OURS = "hushcube"
PEERS = {
    OURS: "hushcube",
    "opendp": "OpenDP",
    "mbi": "mbi (private-pgm)",
    "diffprivlib": "diffprivlib",
    "tumult": "Tumult Analytics",
}
LIMIT = 300
"""Seconds that a library may take for a job."""


class Skipped(Exception):
    """Why a library did not run."""


@dataclass(frozen=True)
class Task:
    """A job in words."""

    title: str
    data: str
    order: int
    guarantee: dict[str, float]

    def job(self) -> Job:
        """All tables of so many attributes."""
        sizes, codes = people(self.data)
        return Job(sizes, tuple(combinations(range(len(sizes)), self.order)), codes, **self.guarantee)


TASKS = {
    "histograms": Task("Adult-8, one-way histograms, epsilon = 1", "adult8", 1, {"epsilon": 1.0}),
    "epsilon": Task("Adult-8, all two-way tables, epsilon = 1", "adult8", 2, {"epsilon": 1.0}),
    "rho": Task("Adult-8, all two-way tables, rho = 1/2", "adult8", 2, {"rho": 0.5}),
    "binary": Task("NLTCS, all two-way tables, rho = 1/2", "nltcs", 2, {"rho": 0.5}),
}
REFERENCES = "references"
PARTS = (*TASKS, REFERENCES)


def people(data: str) -> tuple[tuple[int, ...], np.ndarray]:
    """Sizes and rows of a shared data set; skewed made-up rows of the same sizes where it is not there."""
    from tests.datasets import adult8_schema, coded, nltcs_schema

    try:
        schema = {"adult8": adult8_schema, "nltcs": nltcs_schema}[data]()
        return schema.sizes, coded(f"{data}.parquet", schema).astype(np.int64)
    except pytest.skip.Exception:
        sizes, rows = {"adult8": ((9, 16, 7, 15, 6, 5, 2, 2), 32_561), "nltcs": ((2,) * 16, 21_574)}[data]
        random = np.random.default_rng(7)
        return sizes, np.stack([(n * random.random(rows) ** 2).astype(np.int64) for n in sizes], axis=1)


def interpreter(peer: str, *, install: bool = False) -> str:
    """The Python of a library's environment."""
    if peer == OURS:
        return sys.executable
    folder = ROOT / ".venv-peers" / peer
    python, ready = folder / "bin" / "python", folder / "ready"
    if not ready.exists():
        if not install:
            raise Skipped("it is not installed: run `make peers`")
        needed = HERE / "requirements" / f"{peer}.txt"
        for command in (
            [sys.executable, "-m", "venv", "--clear", str(folder)],
            [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(needed)],
        ):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                problems = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
                raise Skipped(f"it cannot be installed here ({(problems or ['no reason given'])[-1]})")
        ready.touch()
    return str(python)


def run(python: str, program: Path, job: Job) -> dict:
    """What a library took for a job, and how far off its tables are."""
    with tempfile.TemporaryDirectory() as name:
        job.write(Path(name))
        command = [python, str(program), name]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False, cwd=name)
        except subprocess.TimeoutExpired:
            raise Skipped(f"it took more than {LIMIT} seconds") from None
        if done.returncode == UNSUITED:
            raise Skipped(done.stdout.strip())
        if done.returncode:
            raise Skipped(f"it failed ({(done.stderr.strip().splitlines() or ['no reason given'])[-1][:200]})")
        told = json.loads(done.stdout.splitlines()[-1])
        with np.load(Path(name) / "answers.npz") as file:
            answers = [file[str(i)] for i in range(len(file.files))]
        return told | judge(job, answers)


def task_rows(task: Task, pythons: dict[str, str | Skipped]) -> list[dict]:
    """A row for each library."""
    job, rows = task.job(), []
    for peer, python in pythons.items():
        row: dict = {"tool": PEERS[peer]}
        try:
            if isinstance(python, Skipped):
                raise python
            row |= run(python, HERE / f"with_{peer}.py", job)
        except Skipped as reason:
            row["skipped"] = str(reason)
        rows.append(row)
        print({key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()}, flush=True)
    return compared(rows, PEERS[OURS])


def references() -> list[dict]:
    """Figures that others published or that were seen before, beside ours of this run."""
    import hushcube as hc
    from benchmarks.scale import child

    ours = child("benchmarks.scale", "ours", "100")
    schema = hc.Schema(tuple(hc.Attribute(name=f"a{i}", codes=n) for i, n in enumerate((9, 16, 7, 15, 6, 5, 2, 2))))
    total = hc.plan(schema, "<=2-way", epsilon=1, neighbours="add-remove").count.errors.total_variance(exact=False)
    hundred, both = "100 attributes of 10 values, `<=3-way`", ours["measure"] + ours["recover"]
    told = (
        (f"{hundred}: plan, seconds", "ResidualPlanner, fast selection", 11.0, ours["plan"]),
        (f"{hundred}: measure and recover, seconds", "ResidualPlanner+, memory fixed", 297.0, both),
        ("Adult-8 `<=2-way`, epsilon = 1: total variance", "HDMM, its optimiser", 1.126e6, total),
    )
    names = ("figure", "reference, not run here", "its figure", "hushcube")
    return [dict(zip(names, each, strict=True)) | {"ratio": each[2] / each[3]} for each in told]


def part(name: str, pythons: dict[str, str | Skipped]) -> str:
    """A section of the page."""
    title, rows = (
        ("Reference figures", references())
        if name == REFERENCES
        else (TASKS[name].title, task_rows(TASKS[name], pythons))
    )
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}."
    return f"<!-- part: {name} -->\n\n## {title}\n\n{machine}\n\n{table(rows)}\n"


def with_part(page: str, name: str, section: str) -> str:
    """The page with one section new; the others, and the text above the mark, stay."""
    head, _, figures = page.partition(MARK)
    kept = {each.split(" ", 1)[0]: each.rstrip() for each in figures.split("<!-- part: ")[1:]}
    kept[name] = section.removeprefix("<!-- part: ").rstrip()
    return head + MARK + "".join(f"\n\n<!-- part: {kept[each]}" for each in PARTS if each in kept) + "\n"


def main(install: bool, only: list[str], parts: list[str]) -> None:
    pythons: dict[str, str | Skipped] = {}
    for peer in PEERS:
        if peer == OURS or not only or peer in only:
            try:
                pythons[peer] = interpreter(peer, install=install)
            except Skipped as reason:
                pythons[peer] = reason
    for name in parts or PARTS:
        print(f"== {name}", flush=True)
        section = part(name, pythons)
        PAGE.write_text(with_part(PAGE.read_text(encoding="utf-8"), name, section), encoding="utf-8")
    print(f"wrote {PAGE.name}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__.splitlines()[0])
    parser.add_argument("--install", action="store_true", help="make the environments that are missing")
    parser.add_argument("--only", nargs="*", default=[], choices=[peer for peer in PEERS if peer != OURS])
    parser.add_argument("--parts", nargs="*", default=[], choices=PARTS)
    chosen = parser.parse_args()
    main(chosen.install, chosen.only, chosen.parts)
