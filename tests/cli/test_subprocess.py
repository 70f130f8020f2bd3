"""True runs of the program: exit codes, start-up, pipes and Ctrl-C."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli.desk import ASKED, BUDGET, listing

PYTHON = [sys.executable, "-m", "hushcube"]
SCRIPT = [str(Path(sys.executable).with_name("hushcube"))]


def execute(*arguments, program=PYTHON, **options):
    return subprocess.run([*program, *arguments], capture_output=True, text=True, timeout=60, **options)


@pytest.mark.parametrize("program", [PYTHON, SCRIPT], ids=["python -m hushcube", "hushcube"])
def test_exit_codes(desk, program):
    good = execute("plan", *ASKED, *BUDGET, "--json", program=program)
    assert (good.returncode, good.stderr) == (0, "")
    bad = execute("plan", *ASKED, "--epsilon", "0", "--neighbours", "add-remove", program=program)
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr == "hushcube: --epsilon: must be above zero. Fix: give a positive epsilon, for example 1.\n"
    assert execute("publish", program=program).returncode == 2
    assert execute("--version", program=program).stdout == "hushcube, version 0.1.0\n"


@pytest.mark.parametrize(
    "verb", [[], ["plan"], ["release"], ["show"], ["evaluate"], ["schema"], ["demo"]], ids=" ".join
)
def test_help_imports_nothing_heavy(verb):
    code = (
        "import sys\nfrom hushcube.cli import run\n"
        f"assert run({[*verb, '--help']!r}) == 0\n"
        "heavy = {'numpy', 'duckdb', 'pyarrow', 'rich', 'pandas', 'polars', 'yaml'}\n"
        "print('HEAVY', sorted(heavy & sys.modules.keys()))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "HEAVY []" in found.stdout


def test_import_hushcube_imports_nothing_heavy():
    code = "import sys, hushcube\nassert not {'numpy', 'duckdb', 'pyarrow', 'click'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_reader_that_goes_away(desk):
    """`hushcube show ... | head -1` ends quietly."""
    with subprocess.Popen(
        [*PYTHON, "show", "published", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        run.stdout.close()
        told = run.stderr.read().decode()
        run.wait(timeout=60)
    assert "Traceback" not in told


def test_output_that_is_not_utf_8(desk):
    """On a terminal that cannot show block characters the program says less, but does not fall over."""
    shown = execute("show", "published", "sex", env={**os.environ, "PYTHONIOENCODING": "utf-8", "LC_ALL": "C"})
    assert shown.returncode == 0 and "Female" in shown.stdout


def test_ctrl_c_during_a_release_leaves_nothing(desk):
    (desk / "large.yaml").write_text("attributes:\n" + "".join(f"- {{name: a{i}, size: 12}}\n" for i in range(24)))
    query = "SELECT " + ", ".join(f"(random() * 12)::INTEGER % 12 AS a{i}" for i in range(24)) + " FROM range(4000)"
    asked = ["--schema", "large.yaml", "--workload", "3-way", "--rho", "1", "--neighbours", "add-remove"]
    before = listing(desk)
    run = subprocess.Popen(
        [*PYTHON, "release", *asked, "--strategy", "residual", "--query", query, "--out", "new"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for _ in range(600):  # until it writes
            if any(
                path.name.startswith(".hushcube-partial-") and (path / "tables").is_dir() for path in desk.iterdir()
            ):
                break
            assert run.poll() is None, run.stderr.read()
            time.sleep(0.05)
        run.send_signal(signal.SIGINT)
        _, told = run.communicate(timeout=60)
    finally:
        run.kill()
    assert run.returncode == 130
    assert told.splitlines()[-1] == "hushcube: interrupted: nothing was published"
    assert listing(desk) == before
