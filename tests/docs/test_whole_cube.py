"""The whole cube: the benchmark runs on a small one, and the figures of its page keep their targets."""

from pathlib import Path

import numpy as np
from benchmarks import cube10

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"


def test_the_benchmark_runs_on_a_small_cube():
    told = cube10.ours("bmax", 2) | cube10.floor(2)
    assert told["tables"] == 4 and told["cells"] == 170 / 1e6 and told["floor"] > 0
    assert all(told[stage] > 0 for stage in cube10.STAGES)


def test_there_is_a_stand_in_where_the_data_is_not(monkeypatch, tmp_path):
    monkeypatch.setenv("HUSHCUBE_SHARED_DATA", str(tmp_path))
    codes = np.stack(cube10.people(10).columns, axis=1)
    assert codes.shape == (32_561, 10) and (codes.max(axis=0) < np.array(cube10.SIZES)).all()


def test_the_page_keeps_the_targets():
    lines = PAGE.read_text(encoding="utf-8").split("## The whole cube\n")[1].split("\n## ")[0].splitlines()
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    told = {(row["dimensions"], row["strategy"]): row for row in (dict(zip(head, row, strict=True)) for row in rows)}
    for strategy, most in (("bmax", 60), ("workload", 300)):
        row = told["10", strategy]
        assert float(row["seconds"]) < most and float(row["peak GB"]) < 8
