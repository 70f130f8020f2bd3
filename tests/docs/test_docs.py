"""The documentation is run and complete: snippets work as printed; every option, error and key has its line."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from datasets import shared
from hushcube import errors
from hushcube.cli.command import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
PAGES.append(ROOT / "src/hushcube/private/README.md")
SHIPPED = [*(ROOT / "examples").rglob("*"), *(ROOT / "docs" / "pictures").iterdir()]
TEXTS = [*PAGES, *(p for p in SHIPPED if p.is_file() and p.suffix not in (".pyc", ".png"))]
SHELLS = {"README.md": ["zsh", "-f"]} if shutil.which("zsh") else {}
"""Pages run in bash; the README in zsh where that is installed, for it is stricter."""
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def named(path):
    return str(path.relative_to(ROOT))


def blocks(page):
    return FENCE.findall(page.read_text(encoding="utf-8"))


def without_code(page):
    return re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


@pytest.fixture
def clone(tmp_path):
    """What a reader has: the examples, and the programs on the path.

    A stand-in for `make` runs the small demo; the large one has a test of its own in tests/cli.
    """
    place = tmp_path / "clone"
    shutil.copytree(ROOT / "examples", place / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    (place / ".venv" / "bin").mkdir(parents=True)
    (place / ".venv" / "bin" / "activate").write_text("")
    stand_in = tmp_path / "bin" / "make"
    stand_in.parent.mkdir()
    demo = '[ "$1" != demo ] || exec hushcube demo --sample titanic'
    stand_in.write_text(f'#!/bin/sh\ngrep -q "^$1:" "{ROOT}/Makefile" || exit 1\n{demo}\n')
    stand_in.chmod(0o755)
    path = os.pathsep.join([str(stand_in.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
    return place, {**os.environ, "PATH": path}


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [p for p in PAGES if any(kind in ("sh", "python") for kind, _ in blocks(p))], ids=named
)
def test_commands_and_snippets_work_as_printed(page, clone):
    """In the order of the page, in one folder; the Python blocks of a page go on from each other.

    A page that reads shared data is skipped where there is none.
    """
    place, environment = clone
    snippets = ""
    for name in re.findall(r"HUSHCUBE_SHARED_DATA/([\w.]+)", page.read_text(encoding="utf-8")):
        environment["HUSHCUBE_SHARED_DATA"] = str(shared(name).parent)
    for kind, text in blocks(page):
        assert kind in ("sh", "python", "yaml", "text"), f"{named(page)} has a block of kind {kind}"
        if kind == "sh":
            command = [*SHELLS.get(page.name, ["bash"]), "-euo", "pipefail", "-c", text]
        elif kind == "python":
            snippets += text
            command = None
        else:
            continue
        if command:
            run(command, place, environment, text)
    if snippets:
        run([sys.executable, "-c", snippets], place, environment, snippets)


def run(command, place, environment, text):
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"


def test_commands_work_in_zsh_too():
    """Where a pattern without quotes is an error if no file matches it, as `ward*outcome` would be."""
    for page in PAGES:
        for kind, text in blocks(page):
            if kind == "sh":
                outside = re.sub(r"<<'END'.*?^END$", "", text, flags=re.MULTILINE | re.DOTALL)
                outside = re.sub(r"'[^']*'|\"[^\"]*\"", "", outside)
                assert not re.search(r"[*?\[]", outside), f"{named(page)}: {text}"


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 150


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_yaml_blocks_are_schemas(page):
    from hushcube import Schema

    for kind, text in blocks(page):
        if kind == "yaml":
            assert len(Schema.from_yaml(text)) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["titanic.py", "hospital.py"])
def test_examples_run(name, clone):
    place, environment = clone
    done = subprocess.run(
        [sys.executable, f"examples/{name}"], cwd=place, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert "±" in done.stdout and "95%" in done.stdout and not done.stderr


# -------------------------------------------------------------------------------------------------------- complete


def verbs(group=cli, words=()):
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from verbs(command, (*words, name))
        else:
            yield " ".join((*words, name)), command


def section(text, heading):
    parts = re.split(r"^## ", text, flags=re.MULTILINE)
    (found,) = (part for part in parts if part.split("\n", 1)[0] == heading)
    return found


@pytest.mark.parametrize(("verb", "command"), list(verbs()), ids=[verb for verb, _ in verbs()])
def test_every_verb_and_option_is_documented(verb, command):
    text = section((ROOT / "docs" / "cli.md").read_text(encoding="utf-8"), verb)
    for parameter in command.params:
        if isinstance(parameter, click.Option) and "--help" not in parameter.opts:
            for word in (*parameter.opts, *parameter.secondary_opts):
                assert f"`{word}" in text, f"{word} of {verb} is not in docs/cli.md"
    assert f"hushcube {verb}" in text


def test_no_option_is_documented_that_does_not_exist():
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    parameters = [parameter for _, command in verbs() for parameter in command.params]
    known = {word for each in parameters for word in (*each.opts, *each.secondary_opts)} | {"--help", "--version"}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)) <= known


def error_classes():
    return [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, errors.HushcubeError)]


@pytest.mark.parametrize("kind", error_classes(), ids=lambda c: c.__name__)
def test_every_error_is_documented(kind):
    text = section((ROOT / "docs" / "cli.md").read_text(encoding="utf-8"), "Errors")
    (row,) = (line for line in text.splitlines() if line.startswith(f"| `{kind.__name__}` |"))
    code = int(row.split("|")[2])
    assert code == (2 if issubclass(kind, errors.BadInput) else 1)


def test_every_exit_code_is_documented():
    text = section((ROOT / "docs" / "cli.md").read_text(encoding="utf-8"), "Exit codes")
    assert re.findall(r"^\| (\d+) \|", text, flags=re.MULTILINE) == ["0", "1", "2", "129", "130", "143"]


def test_every_schema_key_is_documented():
    from hushcube.model.attribute import _KEYS
    from hushcube.model.words import OF_SCHEMA

    text = (ROOT / "docs" / "schema.md").read_text(encoding="utf-8")
    for key in {"name", "attributes", *_KEYS, *OF_SCHEMA}:
        assert f"| `{key}` |" in text


def test_every_workload_word_is_documented():
    from hushcube.model import workload

    text = (ROOT / "docs" / "workload.md").read_text(encoding="utf-8")
    words = re.findall(r"^(\S+)  +", workload.__doc__, flags=re.MULTILINE)
    assert len(words) >= 8
    for word in words:
        assert f"`{word.split(',')[0]}`" in text


def test_every_strategy_budget_and_recovery_is_documented():
    from hushcube.designs.design import BUDGETS, EVERY_RECOVERY
    from hushcube.strategies import REGISTRY

    text = (ROOT / "docs" / "strategies.md").read_text(encoding="utf-8")
    for word in (*REGISTRY, *BUDGETS, *EVERY_RECOVERY):
        assert f"| `{word}` |" in text


def test_every_adaptive_method_and_parameter_is_documented():
    from hushcube.strategies.adaptive import ADAPTIVE, NOT_PRIVATE

    text = (ROOT / "docs" / "adaptive.md").read_text(encoding="utf-8")
    for method in ADAPTIVE:
        assert f"| `{method}` |" in text
    for word in (*NOT_PRIVATE, *(own.word for method in ADAPTIVE.values() for own in method.options())):
        assert f"`{word}" in text or f"{word} " in text


@pytest.mark.parametrize("page", [p for p in PAGES if "written by docs/options.py" in p.read_text()], ids=named)
def test_the_tables_of_options_are_those_of_the_classes(page):
    """`make options` writes them."""
    import runpy

    text = page.read_text(encoding="utf-8")
    assert runpy.run_path(str(ROOT / "docs" / "options.py"))["rewritten"](text) == text


def test_every_option_of_strategies_and_faces_has_a_table():
    marks = {mark for page in PAGES for mark in re.findall(r"<!-- options of ([\w ]+): written", page.read_text())}
    assert marks == {"strategies", "adaptive methods", "faces"}


def test_the_adult_table_is_what_the_command_prints():
    from hushcube import Schema, compare

    text = (ROOT / "docs" / "strategies.md").read_text(encoding="utf-8")
    schema = Schema.from_yaml(
        re.search(r"adult8.yaml <<'END'\n(.*?)^END$", text, flags=re.MULTILINE | re.DOTALL).group(1)
    )
    rows = re.findall(r"^\| (\w+) \| (\w+) \| (\w+) \| ([\d,]+) \| ([\d,]+) \|$", text, flags=re.MULTILINE)
    assert len(rows) >= 10
    for strategy, budgets, recovery, *printed in rows:
        for number, law in zip(printed, ({}, {"delta": "1e-6"}), strict=True):
            found = compare(
                schema, "2-way", epsilon=1, neighbours="add-remove", strategy=strategy, budgets=budgets,
                recovery=recovery, **law,
            )  # fmt: skip
            assert f"{found.chosen.count.errors.total_variance(exact=True):,.0f}" == number


def test_every_field_of_a_release_is_documented(tmp_path):
    import json

    from hushcube import plan, release
    from hushcube.samples import TITANIC, titanic

    release(plan(TITANIC, "1-way", epsilon=1, neighbours="add-remove"), titanic(), out=tmp_path / "out", seed=1)
    text = (ROOT / "docs" / "release-format.md").read_text(encoding="utf-8")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    decided = json.loads((tmp_path / "out" / "plan.json").read_text())
    own, part = manifest["parts"]["count"], decided["parts"]["count"]
    for field in (*manifest, *manifest["tables"][0], *own, *own["strategy"], *decided, *part):
        assert f"`{field}`" in text, field
    for path in (tmp_path / "out").rglob("*"):
        name = path.relative_to(tmp_path / "out").as_posix()
        if path.is_file() and not name.startswith("tables/"):
            assert f"`{name}`" in text


def test_the_version_is_in_the_changelog():
    from hushcube import __version__

    assert f"## [{__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


# ----------------------------------------------------------------------------------------------------- well-formed


def anchors(page):
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S), flags=re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_internal_links_resolve(page):
    for target in re.findall(r"\]\(([^)]+)\)", without_code(page)):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        linked = (page.parent / name).resolve() if name else page
        assert linked.exists(), f"{named(page)} links to {target}"
        if anchor:
            assert anchor in anchors(linked), f"{named(page)} links to {target}"


@pytest.mark.parametrize("page", [p for p in PAGES if p.parent.name == "docs"], ids=named)
def test_the_readme_links_every_page(page):
    assert f"](docs/{page.name})" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", TEXTS, ids=named)
def test_nothing_is_bound_to_a_machine_or_a_host(page):
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"(?<![\w./])/(work|home|root|Users|tmp|mnt|usr|opt|var)/", text)
    assert not re.search(r"[A-Z]:\\", text)
    hosts = set(re.findall(r"https?://([^/\s\"')]+)", text))
    assert hosts <= {"www.w3.org"}, hosts
    assert not re.search(r"\b(index-url|pypi|artifactory|nexus)\b", text, flags=re.IGNORECASE)
    assert len(text) > 100


@pytest.mark.slow
def test_the_picture_can_be_drawn():
    import runpy

    drawn = runpy.run_path(str(ROOT / "docs" / "pictures" / "draw.py"))["draw"]("titanic")
    kept = (ROOT / "docs" / "pictures" / "demo.svg").read_text(encoding="utf-8")
    for text, words in ((drawn, ["survived"]), (kept, ["maternity", "avg(nights)"])):
        assert text.startswith("<svg") and "@font-face" not in text and "<script" not in text
        assert all(word in text for word in [*words, "strategy"])


@pytest.mark.slow
def test_the_chart_of_strategies_can_be_drawn():
    import runpy

    drawn = runpy.run_path(str(ROOT / "docs" / "pictures" / "draw.py"))["draw_strategies"]("1-way").decode()
    kept = (ROOT / "docs" / "pictures" / "strategies.svg").read_text(encoding="utf-8")
    for text in (drawn, kept):
        assert text.startswith("<svg") and "@font-face" not in text and "<script" not in text
        assert "adult8" in text and "expected standard error" in text and " (chosen)</text>" in text
