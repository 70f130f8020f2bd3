"""The two-minute start as a notebook: every cell runs, and what notebooks show has error bars and no script."""

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "examples" / "quick_start.py"
_CELL = re.compile(r"^# %%(?P<markdown> \[markdown\])?\n", re.MULTILINE)


def notebook_of(script: str):
    """The notebook of a script whose cells begin with `# %%`."""
    import nbformat

    marks = list(_CELL.finditer(script))
    ends = [mark.start() for mark in marks[1:]] + [len(script)]
    cells = []
    for mark, end in zip(marks, ends, strict=True):
        text = script[mark.end() : end].strip()
        if mark["markdown"]:
            cells.append(
                nbformat.v4.new_markdown_cell("\n".join(line.removeprefix("# ") for line in text.splitlines()))
            )
        else:
            cells.append(nbformat.v4.new_code_cell(text))
    return nbformat.v4.new_notebook(cells=cells)


def run(notebook, place, monkeypatch):
    """Run a notebook in a folder, by the Python of the tests."""
    from nbclient import NotebookClient

    kernel = place / "jupyter" / "kernels" / "python3"
    kernel.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "Python", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(place / "jupyter"))
    return NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(place)}}).execute()


@pytest.mark.filterwarnings("default")  # other people's packages
def test_the_two_minute_start_runs_as_a_notebook(tmp_path, monkeypatch):
    pytest.importorskip("nbclient")
    for name in ("encounters.yaml", "encounters.csv"):
        (tmp_path / name).write_text((ROOT / "examples" / name).read_text())
    notebook = run(notebook_of(SCRIPT.read_text()), tmp_path, monkeypatch)
    shown = [
        output["data"]
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "text/plain" in output.get("data", {})
    ]
    assert len(shown) >= 8 and (tmp_path / "published" / "PRIVACY.md").exists()
    pages = [data["text/html"] for data in shown if "text/html" in data]
    assert len(pages) >= 7
    assert not any(re.search(r"<script|javascript:|\son\w+=", page) for page in pages)
    assert sum("<svg" in page for page in pages) >= 2
    assert all(len(data["text/plain"]) < 2_000 for data in shown)
