"""A release explains itself to people who do not have hushcube; what explains it is checked, in whatever words."""

from __future__ import annotations

import csv
import html.parser
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hushcube as hc
from hushcube.bundle import table_files
from hushcube.bundle.manifest import GUIDE
from manifests import manifest_of, resealed

NASTY = "<b>\u202e=x|`*_#[a](javascript:1)&'\""
SCHEMA = hc.Schema(
    [
        hc.Attribute("type", codes=3, labels={0: "medical", 1: "fire"}, missing="unknown", title="Type of call"),
        hc.Attribute("age", range=[9, 11], unit_of_measure="years"),
        hc.Attribute("day", dates=["2024-02-28", "2024-03-01"], description=NASTY),
        hc.Attribute("sex", values=["F", "M"], title=NASTY),
    ],
    "calls",
    title=f"Calls, {NASTY}",
    description=f"# One.\n\n{NASTY}",
    source="records",
    period="2024",
    unit_noun="calls",
    measures=[hc.Measure("cost", bounds=[0, 50], resolution=5, center=20, unit_of_measure="EUR")],
)
ROWS = pa.table(
    {
        "type": [0, 1, None, 2] * 5,
        "age": [9, 10, 11, 9] * 5,
        "day": ["2024-02-28", "2024-02-29"] * 10,
        "sex": ["F", "M"] * 10,
        "cost": [10] * 20,
    }
)


def made(folder: Path, **options) -> Path:
    words = "type*sex,age,day,0-way,prefix(age)"
    asked = {"measures": ["avg(cost)"], "neighbours": "add-remove", **(options or {"rho": 1})}
    hc.release(hc.plan(SCHEMA, words, **asked), ROWS, out=folder)
    return folder


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Path:
    folder = made(tmp_path_factory.mktemp("guide") / "published")
    hc.recover(folder, "integral:method=local")
    return folder


@pytest.fixture
def copied(published, tmp_path) -> Path:
    return Path(shutil.copytree(published, tmp_path / "copy"))


def index(folder: Path, face: str | None = None) -> dict[str, dict[str, str]]:
    """The lines of an index: of its first face, or of another one."""
    with (folder / "index.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    return {line["table"]: line for line in lines if line["face"] == (face or lines[0]["face"])}


def problems(folder: Path) -> list[str]:
    return [problem for check in hc.verify(folder).checks for problem in check.problems]


class _Page(html.parser.HTMLParser):
    """The tags, links and texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags, self.links, self.texts = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("href", "src")]

    def handle_data(self, data):
        self.texts.append(data)


@pytest.mark.parametrize("place", ["", "faces/face-valid"])
def test_every_table_is_listed_and_every_link_leads_somewhere(published, place):
    folder = published / place
    listed = index(folder)
    assert set(listed) == {"total", "age", "day", "type*sex", "prefix(age)"}
    others = {} if place else index(folder, "face-valid")
    assert all(line["file"].startswith("faces/face-valid/") for line in others.values())
    assert place or (others.keys() == listed.keys() and others["age"]["sum_cost_std_error"] == "")
    for line in (*listed.values(), *others.values()):
        assert pq.read_metadata(folder / line["file"]).num_rows == int(line["cells"])
    page, readme = _Page((folder / "index.html").read_text()), (folder / "README.md").read_text()
    assert {line["face"] for line in listed.values()} == {Path(place).name or "unbiased"}
    files = {line["file"] for line in listed.values()}
    linked = set(re.findall(r"(?<!\\)\]\(([^)]*)\)", readme))
    assert files <= set(page.links) and files <= linked
    for link in {*page.links, *linked}:
        assert (folder / link).is_file(), link


def test_what_it_says(published):
    readme = (published / "README.md").read_text()
    told = ("count calls", "- Source: records", "value - margin  to  value + margin", "can be negative", "face-valid")
    assert all(each in readme for each in told)
    assert "> Calls, " in readme and hc.open(published).plan.digest[:16] in readme
    assert "- [`face-valid`](faces/face-valid/README.md) holds" in readme
    assert "faces/face-valid/index.html" in _Page((published / "index.html").read_text()).links
    face = (published / "faces/face-valid/README.md").read_text()
    assert "the counts of synthetic calls" in face and "](../../README.md)" in face
    assert index(published)["type*sex"]["title"] == "Type of call by " + NASTY.replace("\u202e", "\\u202e")


def test_nothing_that_a_publisher_writes_is_markup(published):
    readme = (published / "README.md").read_text()
    plain = re.sub(r"\\[\\`*_\[\]|~$#]", "", readme)
    assert "<b>" not in plain and "[a](javascript" not in plain and "\u202e" not in plain and "\n# One" not in plain
    page = _Page((published / "index.html").read_text())
    assert not {"b", "script", "img", "iframe", "form"} & set(page.tags) and "javascript:1" not in page.links
    assert any("<b>" in text for text in page.texts), "it is shown as it is written"
    assert page.tags.count("h1") == 1 and "caption" in page.tags


@pytest.fixture(scope="module")
def seeded(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("guide") / "seeded"
    hc.release(hc.plan(SCHEMA, "sex", rho=1, neighbours="add-remove"), ROWS, out=folder, seed=1)
    return folder


def test_a_seeded_release_is_stamped_in_all_of_them(published, seeded):
    for name in GUIDE:
        assert "NOT PRIVATE" in (seeded / name).read_text()
        assert "NOT PRIVATE" not in (published / name).read_text()


@pytest.mark.parametrize("options", [{"rho": 1}, {"epsilon": 1}, {"rho": 0.5, "strategy": "workload"}])
def test_an_interval_is_redone_by_hand_without_hushcube(options, tmp_path):
    """README.md, index.csv and a Parquet reader suffice; what hushcube says is the judge alone."""
    folder = made(tmp_path / "out", **options)
    readme = (folder / "README.md").read_text()
    factor, plus = re.search(r"([0-9.]+) × `std_error`(?: \+ ([0-9.]+))?", readme).groups()
    release = hc.open(folder)
    for word, line in index(folder).items():
        table = pq.read_table(folder / line["file"]).to_pydict()
        said = release.table(word)
        for at, (value, error) in enumerate(zip(table["value"], table["std_error"], strict=True)):
            margin = float(line["margin_95"] or float(factor) * error + float(plus or 0))
            assert value - margin == pytest.approx(said.low.flat[at], abs=1e-6 * margin), word
            assert value + margin == pytest.approx(said.high.flat[at], abs=1e-6 * margin), word
        if line["margin_95"]:
            assert float(line["std_error"]) == pytest.approx(table["std_error"][0], rel=1e-6)
            margin = float(line["sum_cost_margin_95"])
            judge = release.table(word, "sum(cost)").low.flat[0]
            assert table["sum_cost"][0] - margin == pytest.approx(judge, abs=1e-6 * margin)


def test_tables_in_packs(tmp_path, monkeypatch):
    monkeypatch.setattr(table_files, "MOST_FILES", 3)
    asked = hc.plan(SCHEMA, "<=2-way,prefix(age)", rho=1, neighbours="add-remove")
    release = hc.release(asked, ROWS, out=tmp_path / "out")
    assert hc.verify(tmp_path / "out").holds
    readme, listed = (tmp_path / "out" / "README.md").read_text(), index(tmp_path / "out")
    assert "-index.parquet" in readme and "[6 tables of 2 attributes](tables/2-way.parquet)" in readme
    assert set(listed) == {"0-way", "1-way", "2-way", "prefix(age)"} and listed["2-way"]["margin_95"] == ""
    pack = tmp_path / "out" / listed["2-way"]["file"]
    lines = pq.read_table(pack.with_name("2-way-index.parquet")).to_pylist()
    for line in (lines[0], lines[-1]):
        said = release.table([line["attribute_1"], line["attribute_2"]])
        value = pq.read_table(pack).slice(line["offset"], line["cells"]).column("value")[0].as_py()
        assert value - line["margin_95"] == pytest.approx(said.low.flat[0], rel=1e-9)


@pytest.mark.parametrize("name", [*GUIDE, "faces/face-valid/README.md"])
def test_a_changed_guide_is_found_by_its_checksum(copied, name):
    path = copied / name
    path.write_text(path.read_text() + "\n")
    assert any(name in problem and "was changed" in problem for problem in problems(copied))
    manifest = manifest_of(copied)
    del manifest["checksums"][name], manifest["sizes"][name]
    resealed(copied, manifest)
    assert any(f"has no checksum of {name}" in problem for problem in problems(copied))


def test_a_guide_in_other_words_verifies(copied):
    """As another version of the program would write it: other sentences, headings, titles, order, columns and form."""
    for place in ("", "faces/face-valid/"):
        readme, table, page = (copied / f"{place}{name}" for name in GUIDE)
        text = readme.read_text().replace("## Tables", "## What is here").replace("standard error of a cell", "error")
        text = text.replace("In 95 of 100 cases", "In 19 of 20 cases").replace("Noise was added", "We added noise")
        text = re.sub(r"(?m)^- .*\n", "", text.replace("## Faces", "## Other promises"))
        readme.write_text(re.sub(r"(?m)^\| (\[.*\)) \| (.*) \| ([0-9,]+) \| (.*) \|$", r"| \4 | \3 | \1 |", text))
        lines = list(csv.DictReader(table.read_text().splitlines()))[::-1]
        with table.open("w", newline="") as file:
            told = csv.DictWriter(file, [*lines[0], "remark"])
            told.writeheader()
            told.writerows(line | {"title": "A table", "remark": "see below"} for line in lines)
        page.write_text(page.read_text().replace("Published tables of", "All tables of").replace("<h1>", "<h1>The "))
    guides = [f"{place}{name}" for place in ("", "faces/face-valid/") for name in GUIDE]
    assert len(problems(copied)) == len(guides), "checksums find all of it"
    resealed(copied, manifest_of(copied), *guides)
    assert hc.verify(copied).holds, problems(copied)


FALSE = {  # what is replaced by what, where, and what is said of it
    "a table less": ("README.md", r"(?m)^\| \[Total\].*\n", "", "does not list tables/0000-total.parquet"),
    "a page with a table less": ("index.html", r"<tr>.*0000-total.*\n", "", "does not list tables/0000-total.parquet"),
    "an index with a line less": ("index.csv", r"(?m)^total,.*\n", "", "does not list the table total"),
    "a line twice": ("index.csv", r"(?m)^(total,.*\n)", r"\1\1", "lists a table twice"),
    "a table more": ("index.csv", r"(?m)^total(,.*\n)", r"total\1more\1", "lists more of the face unbiased, which"),
    "other cells": ("README.md", r"(\| type\\\*sex \|) 8 \|", r"\1 9 |", "cells of 8"),
    "other cells of a page": ("index.html", r"<td>8</td>", "<td>80</td>", "cells of 8"),
    "other cells of an index": ("index.csv", r"type\*sex,8,", "type*sex,9,", "type*sex: `cells` is not 8"),
    "another file": ("index.csv", "tables/0001", "tables/0002", "`file` is not tables/0001"),
    "another error": ("README.md", r"\| [0-9.]+ \|$", "| 0.001 |", "a standard error of"),
    "another error in an index": ("index.csv", r"unbiased,[0-9.]+,", "unbiased,0.5,", "`std_error` is not"),
    "another margin": ("index.csv", r"(unbiased,[0-9.]+),[0-9.]+,", r"\1,0.5,", "`margin_95` is not"),
    "no margins": ("index.csv", "margin_95", "other", "`margin_95` is not"),
    "another guarantee": ("README.md", r"rho *= *1", "rho = 0.1", "says of the guarantee"),
    "another factor": ("README.md", r"[0-9.]+ × `std_error`", "0.5 × `std_error`", "says of margins"),
    "a link to nowhere": ("README.md", r"\(PRIVACY.md\)", "(EXACT.md)", "links to 'EXACT.md', which is not part"),
    "a page that links to nowhere": ("index.html", 'href="PRIVACY.md"', 'href="../EXACT.md"', "links to '../EXACT.md'"),
    "a face with a table less": ("faces/face-valid/index.csv", r"(?m)^total,.*\n", "", "does not list the table total"),
}


@pytest.mark.parametrize(("name", "old", "new", "told"), FALSE.values(), ids=FALSE)
def test_false_facts_are_found_even_with_a_new_checksum(copied, name, old, new, told):
    path = copied / name
    text, changed = re.subn(old, new, path.read_text(), flags=re.MULTILINE)
    assert changed
    path.write_text(text)
    resealed(copied, manifest_of(copied), name)
    assert any(problem.startswith(f"{name}: ") and told in problem for problem in problems(copied)), problems(copied)


@pytest.mark.parametrize("name", GUIDE)
def test_a_stamp_that_was_removed_is_found(seeded, tmp_path, name):
    folder = Path(shutil.copytree(seeded, tmp_path / "copy"))
    (folder / name).write_text((folder / name).read_text().replace("NOT PRIVATE", ""))
    resealed(folder, manifest_of(folder), name)
    assert f"{name}: does not say NOT PRIVATE" in problems(folder)


def test_what_an_owner_adds_is_kept_and_no_part_of_the_release(copied):
    own = ("LICENCE", ".DS_Store", ".git/config", "tables/.DS_Store", "faces/face-valid/notes.txt")
    for name in own:
        (copied / name).parent.mkdir(exist_ok=True)
        (copied / name).write_text("mine")
    hc.recover(copied, "nonnegative")
    hc.recover(copied, "integral:method=local")
    assert all((copied / name).read_text() == "mine" for name in own)
    verdict = hc.verify(copied)
    assert verdict.holds and "LICENCE: is not part of the release" in str(verdict)
    assert index(copied / "faces/nonnegative").keys() == index(copied).keys() == index(copied, "face-valid").keys()
    assert "(faces/face-valid-2/README.md)" in (copied / "README.md").read_text(), "where the new one is"
    assert not (copied / "faces/face-valid/README.md").exists(), "the face that was replaced is gone, the notes are not"


def test_codes_stand_beside_labels_in_their_own_type(published):
    listed = index(published)
    kind = pq.read_table(published / listed["type*sex"]["file"])
    assert kind.column_names[:3] == ["type", "type_code", "sex"]
    assert kind.column("type").to_pylist()[::2] == ["medical", "fire", "2", "unknown"]
    assert kind.column("type_code").to_pylist()[::2] == [0, 1, 2, None]
    assert kind.schema.field("type_code").type == pa.int64()
    age = pq.read_table(published / listed["age"]["file"])
    assert age.column("age_code").to_pylist() == [9, 10, 11] and age.column("age").to_pylist() == ["9", "10", "11"]
    day = pq.read_table(published / listed["day"]["file"])
    assert day.schema.field("day_code").type == pa.date32()
    assert [str(each) for each in day.column("day_code").to_pylist()] == day.column("day").to_pylist()
    assert pq.read_table(published / listed["prefix(age)"]["file"]).column_names[:2] == ["prefix(age)", "value"]
    people = pq.read_table(published / "faces/face-valid/people.parquet")
    assert set(people.column("type").to_pylist()) <= {"0", "1", "2", "unknown"}


def test_changed_codes_are_found(copied):
    file = index(copied)["age"]["file"]
    table = pq.read_table(copied / file)
    pq.write_table(table.set_column(1, "age_code", pa.array([9, 11, 10])), copied / file)
    resealed(copied, manifest_of(copied), file)
    assert any("the codes of age are not those of its labels" in problem for problem in problems(copied))


def test_names_step_aside_for_codes(tmp_path):
    names = ("a", "a_code", "sum_x")
    schema = hc.Schema([hc.Attribute(name, codes=2) for name in names], measures=[hc.Measure("x_code", bounds=[0, 1])])
    data = pa.table({key: [0, 1] for key in (*names, "x_code")})
    asked = hc.plan(schema, "a*a_code*sum_x", measures=["sum(x_code)"], rho=1, neighbours="add-remove")
    hc.release(asked, data, out=tmp_path / "out")
    columns = pq.read_schema(tmp_path / "out" / index(tmp_path / "out")["a*a_code*sum_x"]["file"]).names
    assert columns[:6] == ["a", "a_code_", "a_code", "a_code_code", "sum_x", "sum_x_code"]
    assert columns[6:10] == ["value", "std_error", "sum_x_code_", "sum_x_code_std_error"]
    assert columns[10:] == ["quality", "sum_x_code_quality"]
    assert hc.verify(tmp_path / "out").holds
    assert hc.open(tmp_path / "out").table("a", "sum(x_code)").values.shape == (2,)


def test_releases_of_format_4_are_read_and_verified(copied):
    """They had neither guides nor codes nor flags."""
    manifest = manifest_of(copied)
    manifest["format"] = 4
    manifest["columns"] = {quantity: names[:-1] for quantity, names in manifest["columns"].items()}
    for name in [name for name in manifest["checksums"] if Path(name).name in GUIDE]:
        (copied / name).unlink()
        del manifest["checksums"][name], manifest["sizes"][name]
    files = [name for name in manifest["checksums"] if "tables/" in name]
    for file in files:
        table = pq.read_table(copied / file)
        later = [name for name in table.column_names if name.endswith(("_code", "quality"))]
        pq.write_table(table.drop_columns(later), copied / file)
    resealed(copied, manifest, *files)
    assert hc.verify(copied).holds and hc.open(copied).table("type*sex").labels[0][0] == "medical"
    manifest["format"] = 5
    resealed(copied, manifest)
    assert not hc.verify(copied).holds
