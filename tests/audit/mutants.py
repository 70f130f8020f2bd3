"""Planted privacy bugs: each changes a copy of the package, and a test that passes on the package must fail on it.

A mutant that no longer applies to the source is a failure as well: it would catch nothing and nobody would notice.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from audit.mutant_list import MUTANTS, Mutant
from audit.progress import tell

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "hushcube"
WORKERS = 2
ATTACKED = """\
The tests themselves: would they notice a bug that breaks the promise?"""
HOW = """\
Each line plants one bug in a copy of the package, by replacing a piece of text that occurs exactly once, and runs
the test named beside it. The test passes on the package and must fail on the copy."""


def problem(mutant: Mutant) -> str | None:
    """Why a mutant cannot be planted, if it cannot."""
    found = (PACKAGE / mutant.file).read_text(encoding="utf-8").count(mutant.old)
    return None if found == 1 and mutant.old != mutant.new else f"its text occurs {found} times in {mutant.file}"


@contextmanager
def planted(mutant: Mutant | None) -> Iterator[Path]:
    """A copy of the package with one bug, or with none."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(PACKAGE, Path(folder) / "hushcube", ignore=shutil.ignore_patterns("__pycache__"))
        if mutant is not None:
            file = Path(folder) / "hushcube" / mutant.file
            file.write_text(file.read_text(encoding="utf-8").replace(mutant.old, mutant.new), encoding="utf-8")
        yield Path(folder)


def passes(test: str, mutant: Mutant | None = None) -> bool:
    """Whether a test passes on a copy of the package."""
    with planted(mutant) as folder:
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-o", "addopts=", "-p", "no:cacheprovider", test]
        environment = {
            **os.environ,
            "PYTHONPATH": str(folder),
            "PYTHONDONTWRITEBYTECODE": "1",  # nothing compiled of a planted bug outlives it
            "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "examples"),
        }
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=600, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{test} cannot be run: {done.stdout[-2000:].decode()}{done.stderr[-2000:].decode()}")
    return done.returncode == 0


def verdict(mutant: Mutant) -> str:
    """`caught`, or what is wrong."""
    if (why := problem(mutant)) is not None:
        return why
    return "survived" if passes(mutant.test, mutant) else "caught"


def figures(scale):
    """Plant every bug."""
    chosen = MUTANTS if scale == "long" else MUTANTS[:2]
    tests = sorted({mutant.test for mutant in chosen})
    with ThreadPoolExecutor(WORKERS) as pool:
        intact = dict(zip(tests, pool.map(passes, tests), strict=True))
        verdicts = []
        for mutant, found in zip(chosen, pool.map(verdict, chosen), strict=True):
            tell(scale, f"{mutant.name}: {found}")
            verdicts.append(found)
    broken = [f"{mutant.name}: {found}" for mutant, found in zip(chosen, verdicts, strict=True) if found != "caught"]
    broken += [f"{test} fails on the package" for test, passed in intact.items() if not passed]
    return {
        "title": "Planted bugs",
        "attacked": ATTACKED,
        "how": HOW,
        "figures": {"bugs planted": len(chosen), "caught": verdicts.count("caught")},
        "table": {
            "columns": ["bug", "what it breaks", "caught by"],
            "rows": [[mutant.name, mutant.breaks, f"`{mutant.test.removeprefix('tests/')}`"] for mutant in chosen],
        },
        "broken": broken,
        "violations": len(broken),
    }
