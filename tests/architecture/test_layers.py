"""The dependency rule is enforced: import-linter's contracts hold, and a wrong import is caught."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = ROOT / "pyproject.toml"
CONFIG = PYPROJECT if "[[tool.importlinter.contracts]]" in PYPROJECT.read_text() else ROOT / ".importlinter"


def lint(folder, package_parent):
    """Run the contracts on the package found under `package_parent`."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    environment = {**os.environ, "PYTHONPATH": str(package_parent)}
    return subprocess.run(
        [*command, "--config", str(CONFIG), "--no-cache"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_contracts_hold(tmp_path):
    result = lint(tmp_path, ROOT / "src")
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-2000:]


@pytest.mark.parametrize(
    ("module", "wrong_import"),
    [
        ("designs/recovery.py", "import hushcube.private.measure"),
        ("private/measure.py", "import hushcube.faces.face"),
        ("bundle/release.py", "import duckdb"),
        ("lattice/coefficients.py", "import duckdb"),
        ("model/schema.py", "import hushcube.designs.design"),
        ("designs/design.py", "import hushcube.private.noise"),
        ("lattice/family.py", "import hushcube.designs.recovery"),
        ("errors.py", "import hushcube.model.schema"),
    ],
)
def test_a_wrong_import_is_caught(module, wrong_import, tmp_path):
    shutil.copytree(ROOT / "src" / "hushcube", tmp_path / "hushcube", ignore=shutil.ignore_patterns("__pycache__"))
    target = tmp_path / "hushcube" / module
    target.write_text(f"{target.read_text()}\n{wrong_import}\n")
    result = lint(tmp_path, tmp_path)
    assert result.returncode != 0
    assert "not allowed to import" in result.stdout
    assert wrong_import.split()[-1].split(".")[-1] in result.stdout
