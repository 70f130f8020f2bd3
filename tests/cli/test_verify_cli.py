"""`hushcube verify`: one line a check, every problem, and the exit codes."""

import json

import pytest
from click.testing import CliRunner

from hushcube.cli.verify import command


@pytest.fixture
def check(desk):
    """Run the verb in the desk's folder; returns the exit code and standard output."""

    def run(*arguments):
        result = CliRunner().invoke(command, list(arguments))
        return result.exit_code, result.output, result.exception

    return run


def test_a_release_holds(check):
    code, out, _ = check("published")
    lines = out.splitlines()
    assert code == 0 and lines[-1] == "Everything holds."
    assert all(line.startswith("✓ ") and line.endswith(" checked)") for line in lines[:-1])
    assert lines[0] == "✓ files: the files are those of the manifest, and the manifest fits the plan (18 checked)"
    assert [line.split(": ")[0][2:] for line in lines[:5]] == ["files", "privacy", "measurements", "errors", "labels"]


def test_a_broken_release_fails_with_every_problem(check, desk):
    (desk / "published/extra.txt").write_text("")
    (desk / "published/PRIVACY.md").write_text("All is well.")
    (desk / "published/measurements/count.parquet").unlink()
    code, out, _ = check("published")
    assert code == 1
    lines = out.splitlines()
    assert [line[0] for line in lines[:5]] == ["✗", "✗", "–", "✓", "✓"]
    for line in (
        "files: extra.txt: is not part of the release",
        "files: measurements/count.parquet: is missing",
        "files: PRIVACY.md: was changed after the release (another size)",
        "privacy: PRIVACY.md: is not the text that the plan and the faces give, from line 1 on",
    ):
        assert line in lines
    assert lines[-1] == "The release does not hold what it promises."


def test_json_is_one_document(check, desk):
    code, out, _ = check("published", "--json")
    document = json.loads(out)
    assert code == 0 and document["holds"] is True and out.count("\n") == 1
    assert all(c.keys() == {"name", "what", "holds", "checked", "problems", "remarks"} for c in document["checks"])
    assert all(c["holds"] and c["checked"] and not c["problems"] for c in document["checks"])
    (desk / "published/plan.json").write_text("{}")
    code, out, _ = check("published", "--json")
    document = json.loads(out)
    assert code == 1 and document["holds"] is False
    assert [(c["name"], c["holds"]) for c in document["checks"]] == [("files", False), ("privacy", False)]


@pytest.mark.parametrize("folder", ["nothing", "parts", "people.csv"])
def test_a_folder_that_is_no_release_is_bad_input(check, folder):
    from hushcube.errors import BadInput

    _, out, problem = check(folder)
    assert isinstance(problem, BadInput) and "no manifest.json" in str(problem), "exit code 2"
    assert out == ""


def test_names_that_steer_a_terminal_are_written_out(check, desk):
    (desk / "published" / "a\x1b[2Jb").write_text("")
    code, out, _ = check("published")
    assert code == 0 and "\x1b" not in out and "files: a\\x1b[2Jb: is not part of the release" in out


def test_nothing_is_written(check, desk):
    before = sorted((str(p), p.stat().st_mtime_ns) for p in desk.rglob("*"))
    check("published")
    assert sorted((str(p), p.stat().st_mtime_ns) for p in desk.rglob("*")) == before
