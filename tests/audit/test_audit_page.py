"""The audit runs its parts, keeps their figures, and writes them below the mark of its page."""

import sys
from types import SimpleNamespace

import pytest

from audit import __main__ as audit
from audit.page import MARK, PARTS

FOUND = {
    "title": "Bits",
    "attacked": "All bits.",
    "how": "By hand.",
    "false_alarms": "one in a million.",
    "figures": {"bits flipped": 1234},
    "table": {"columns": ["bit", "caught by"], "rows": [["first", "a|b"]]},
    "violations": 0,
}


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run the audit with one part of our own; returns the exit code, the page, and what was asked of the part."""
    page = tmp_path / "audit.md"
    page.write_text(f"# The audit\n\n{MARK}\n\nold figures\n")
    monkeypatch.setattr(audit, "PARTS", {"bits": "bits_of_an_audit"})

    def check(*arguments, **changed):
        scales = []
        part = SimpleNamespace(figures=lambda scale: scales.append(scale) or {**FOUND, **changed})
        monkeypatch.setitem(sys.modules, "bits_of_an_audit", part)
        code = audit.main(["--page", str(page), "--kept", str(tmp_path / "kept"), *arguments])
        return code, page.read_text(), scales

    return check


def test_the_figures_replace_what_stood_below_the_mark(run):
    code, text, scales = run("bits", "--scale", "short")
    head, figures = text.split(MARK)
    assert (code, head, scales) == (0, "# The audit\n\n", ["short"])
    assert "old figures" not in figures
    for line in ("## Bits", "| bits flipped | 1,234 |", "| violations | 0 |", "| first | a\\|b |"):
        assert f"\n{line}\n" in figures
    assert "False alarms: one in a million." in figures and "figures of the short form" in figures
    assert "short form" not in run("bits")[1]


def test_the_page_can_be_written_again_without_running_anything(run):
    first = run()[1]
    assert run("--write") == (0, first, [])


def test_several_parts_run_side_by_side_and_stand_in_the_order_of_the_page(run, monkeypatch):
    monkeypatch.setattr(audit, "PARTS", {"bits": "bits_of_an_audit", "bytes": "bytes_of_an_audit"})
    monkeypatch.setitem(
        sys.modules, "bytes_of_an_audit", SimpleNamespace(figures=lambda scale: {**FOUND, "title": "Bytes"})
    )
    code, text, _ = run()
    assert code == 0 and text.index("## Bits") < text.index("## Bytes")


def test_a_violation_fails_the_audit(run):
    assert run(violations=1)[0] == 1


def test_every_part_of_the_page_can_be_run():
    from importlib import import_module

    assert all(callable(import_module(module).figures) for module in PARTS.values())
