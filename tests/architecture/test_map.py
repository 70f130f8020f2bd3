"""ARCHITECTURE.md and CONTRIBUTING.md name what exists: every path, every test, every command."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "hushcube"
MAPS = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"]


def text_of(page):
    return page.read_text(encoding="utf-8")


def functions_in(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("page", MAPS, ids=lambda page: page.name)
def test_every_path_and_test_exists(page):
    named = re.findall(r"`([\w./-]+(?:/[\w.-]+|\.py|\.md|\.toml))(?:::(test_\w+))?`", text_of(page))
    assert len(named) > 15
    for name, test in named:
        homes = [place for place in (ROOT / name, PACKAGE / name, PACKAGE / "private" / name) if place.exists()]
        assert homes, f"{page.name} names {name}"
        if test:
            assert test in functions_in(homes[0]), f"{page.name} names {name}::{test}"


def test_every_room_has_its_line():
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert set(re.findall(r"^\| `src/hushcube/(\w+)` \|", text_of(MAPS[0]), flags=re.M)) == rooms


def test_every_line_of_what_to_add_has_a_test():
    section = text_of(MAPS[0]).split("## To add something")[1].split("\n## ")[0]
    rows = [row.strip("|").split("|") for row in section.splitlines() if row.startswith("| a")]
    assert [re.search(r"\*\*(.+?)\*\*", row[0]).group(1) for row in rows][:8] == [
        "strategy", "design", "face", "engine", "workload word", "option", "guarantee", "noise law",
    ]  # fmt: skip
    for row in rows:
        assert re.search(r"`tests/[\w/.]+", row[2]), row[0]


def test_every_folder_of_tests_has_its_line():
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and any(path.glob("**/test_*.py"))}
    assert set(re.findall(r"^\| `tests/(\w+)` \|", text_of(MAPS[1]), flags=re.M)) == folders


def test_every_command_exists_and_has_its_line():
    made = set(re.findall(r"^([a-z]+):", text_of(ROOT / "Makefile"), flags=re.M)) - {"clean"}
    assert set(re.findall(r"^\| `make ([a-z]+)` \|", text_of(MAPS[1]), flags=re.M)) == made
