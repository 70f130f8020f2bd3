"""The code is clean by its own tools' standard, each as its own test."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*command):
    result = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, (result.stdout + result.stderr)[-4000:]


def test_ruff_check_is_clean():
    run("ruff", "check", ".")


def test_ruff_format_is_clean():
    run("ruff", "format", "--check", ".")


@pytest.mark.slow
def test_mypy_is_clean():
    run("mypy")
