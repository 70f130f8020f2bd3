"""The dependency rule is enforced: import-linter's contracts hold, and a wrong import is caught."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "wrong_import"),
    [
        ("designs/answers.py", "import hushcube.private.measure"),
        ("private/measure.py", "import hushcube.faces.face"),
        ("bundle/release.py", "import duckdb"),
        ("explorer/documents.py", "import hushcube.private.measure"),
        ("lattice/coefficients.py", "import duckdb"),
        ("model/schema.py", "import hushcube.designs.design"),
        ("designs/design.py", "import hushcube.private.noise"),
        ("lattice/family.py", "import hushcube.designs.answers"),
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


@pytest.mark.parametrize(
    ("module", "back"),
    [
        ("model/label.py", "import hushcube.model.schema"),
        ("designs/request.py", "import hushcube.designs.lattice.design"),
        ("private/engines/contract.py", "import hushcube.private.engines.duckdb"),
        ("faces/atoms.py", "import hushcube.faces.facts"),
    ],
)
def test_a_cycle_inside_a_package_is_caught(module, back, tmp_path):
    shutil.copytree(ROOT / "src" / "hushcube", tmp_path / "hushcube", ignore=shutil.ignore_patterns("__pycache__"))
    target = tmp_path / "hushcube" / module
    target.write_text(f"{target.read_text()}\n{back}\n")
    result = lint(tmp_path, tmp_path)
    assert result.returncode != 0
    assert "No import cycles among the modules of any package BROKEN" in " ".join(result.stdout.split())


def test_contracts_name_only_what_exists():
    contracts = tomllib.loads(PYPROJECT.read_text())["tool"]["importlinter"]["contracts"]
    named = set(re.findall(r"hushcube[.\w]*", repr(contracts)))
    assert len(named) > 15
    for module in named:
        place = ROOT / "src" / Path(*module.split("."))
        assert place.is_dir() or place.with_suffix(".py").is_file(), f"{module} does not exist"


def test_documents_and_comments_name_only_files_that_exist():
    """Paths such as `lattice/family.py`, or a file name in brackets beside a formula; the changelog names what was."""
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.md")]
    named = 0
    for document in [*documents, *(ROOT / "src").rglob("*.py")]:
        if document.name == "CHANGELOG.md":
            continue
        for path in re.findall(r"(?<![\w./-])(?:[a-z_]+/)+[a-z_]+\.py|(?<=\[)[a-z_]+\.py", document.read_text()):
            named += 1
            places = [ROOT / path, ROOT / "tests" / path, ROOT / "src" / "hushcube" / path, document.parent / path]
            assert any(place.is_file() for place in places), f"{document.relative_to(ROOT)} names {path}"
    assert named > 50


@pytest.mark.parametrize("name", ["Floats", "Ints", "Bools", "Progress"])
def test_a_shared_type_is_declared_once(name):
    sources = (ROOT / "src").rglob("*.py")
    declared = [path.name for path in sources if re.search(rf"^{name} = ", path.read_text(), re.MULTILINE)]
    assert declared == ["progress.py" if name == "Progress" else "arrays.py"]
