"""The threat table of docs/privacy.md: every line has a defence, and a test that exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
THREATS = (
    "a publisher's mistake",
    "a malicious author of a schema or a plan",
    "a curious analyst",
    "a reader of the temporary folder",
    "a database with hostile labels",
    "a hostile bundle, given to an analyst",
    "an interrupted or killed machine",
)


def lines():
    text = (ROOT / "docs" / "privacy.md").read_text(encoding="utf-8")
    (section,) = (part for part in re.split(r"^## ", text, flags=re.M) if part.startswith("Threats\n"))
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def functions_in(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_threat_is_there():
    assert [line[0] for line in lines() if line[0]] == list(THREATS)


@pytest.mark.parametrize("line", lines(), ids=lambda line: line[1])
def test_every_line_has_a_defence_and_tests_that_exist(line):
    _, wrong, defence, tests = line
    assert wrong and defence
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", tests)
    assert named and tests == ", ".join(f"`{path}::{name}`" for path, name in named)
    for path, name in named:
        assert name in functions_in(path)


def test_the_policy_is_linked():
    assert "](SECURITY.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "](../SECURITY.md)" in (ROOT / "docs" / "privacy.md").read_text(encoding="utf-8")
