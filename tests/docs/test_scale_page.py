"""The benchmark behind docs/scale.md runs on a few rows, and writes its figures below the mark."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MARK = "<!-- figures: written by `make engines` -->"


@pytest.mark.slow
@pytest.mark.service
def test_the_benchmark_of_engines_writes_its_section(tmp_path):
    page = tmp_path / "scale.md"
    page.write_text(f"# Large data\n\n{MARK}\n\nold figures\n")
    command = [sys.executable, "-m", "benchmarks.engines", "--quick", "--no-spark", "--page", str(page)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    head, figures = page.read_text().split(MARK)
    assert head == "# Large data\n\n" and "old figures" not in figures
    for title in ("### DuckDB", "### The same tables by SQL", "### After counting"):
        assert f"{title}\n\n| " in figures
    assert "at most 4 rows of a person" in figures and "refused" not in figures
    assert MARK in (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
