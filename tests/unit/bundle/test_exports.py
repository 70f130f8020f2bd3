"""What is exported is what the release says, in every format; written whole, and stamped where it must be."""

import csv
import gc
import json
import sys
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import hushcube as hc
from hushcube.bundle import table_files
from hushcube.bundle.export import choosing, pages, workbook
from hushcube.bundle.export.choosing import Chosen
from hushcube.bundle.export.formats import FORMATS
from hushcube.bundle.tables import written
from hushcube.errors import BadInput, BundleError, MissingDependency, OutputError, QueryError, TooLarge
from hushcube.model.quality import QUALITY_WORDS

OUT = {"csv": "out", "xlsx": "out.xlsx", "json-stat": "out", "sdmx-csv": "out", "html": "out"}
STAMP = "NOT PRIVATE"


def make(folder, *, most_files=1000):
    schema = hc.Schema(
        [
            hc.Attribute("sex", values=["=Female", "Male"]),
            hc.Attribute("age", range=[-1, 6], levels=[{"name": "band", "starts": [-1, 2]}]),
            hc.Attribute("ward", codes=3),
        ],
        name="stays",
        measures=[hc.Measure("days", bounds=[0, 10])],
    )
    random = np.random.default_rng(3)
    columns = {"sex": random.choice(["=Female", "Male"], 500), "age": random.integers(-1, 7, 500)}
    columns |= {"ward": random.integers(0, 3, 500), "days": random.integers(0, 11, 500).astype(float)}
    plan = hc.plan(schema, "<=2-way,prefix(age)*sex", rho=1, neighbours="add-remove", measures=["avg(days)"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_files, "MOST_FILES", most_files)
        patch.setattr(table_files, "_CHUNK", 16 if most_files < 1000 else table_files._CHUNK)
        hc.release(plan, pd.DataFrame(columns), out=folder, seed=4, face="nonnegative")
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make(tmp_path_factory.mktemp("export") / "files")


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    return make(tmp_path_factory.mktemp("export") / "packs", most_files=3)


def columns_of(path):
    rows = hc.read_csv(path)
    return {name: [row[name] for row in rows] for name in rows[0]}


# --------------------------------------------------------------------------------------------------------- the same


@pytest.mark.parametrize("layout", ["made", "packed"])
@pytest.mark.parametrize("face", ["unbiased", "nonnegative"])
def test_every_table_is_exported_as_the_release_has_it(request, monkeypatch, layout, face):
    """Also where a few cells are read at once."""
    monkeypatch.setattr(choosing, "_CHUNK", 20)
    release = hc.open(request.getfixturevalue(layout))
    chosen = Chosen.of(release, None, face)
    found = list(chosen)
    assert sorted(table.word for table in found) == sorted(release) and len(found) == len(chosen)
    assert chosen.sizes == [table.values.size for table in found]
    quantities = written(release.plan) if face == "unbiased" else ["count"]
    for first in found:
        assert [table.what for table in (first, *first.others)] == list(map(str, quantities))
        for table in (first, *first.others):
            wanted = release.table(table.word, table.what, face=face)
            assert (table.attributes, table.labels, table.face) == (wanted.attributes, wanted.labels, face)
            for name in ("values", "std_errors", "low", "high"):
                np.testing.assert_allclose(getattr(table, name), getattr(wanted, name), rtol=1e-12)


def test_csv_has_the_numbers_of_the_release(made, tmp_path):
    release = hc.open(made)
    assert hc.export(made, tmp_path / "out") == tmp_path / "out"
    contents = columns_of(tmp_path / "out" / "contents.csv")
    assert sorted(contents["table"]) == sorted(release)
    for word, file, cells in zip(contents["table"], contents["file"], contents["cells"], strict=True):
        found, wanted = columns_of(tmp_path / "out" / file), release.table(word)
        assert len(found["value"]) == int(cells) == wanted.values.size
        for name, own in (("value", wanted.values), ("std_error", wanted.std_errors)):
            np.testing.assert_allclose([float(x) for x in found[name]], own.ravel(), rtol=1e-12)
        for name, own in (("low_95", wanted.low), ("high_95", wanted.high)):
            np.testing.assert_allclose([float(x) for x in found[name]], own.ravel(), rtol=1e-9, atol=1e-9)
        average = release.table(word, "avg(days)")
        known = [float(x or "nan") for x in found["avg_days"]]
        np.testing.assert_allclose(known, average.values.ravel(), rtol=1e-9)
        for name, own in (("quality", wanted), ("avg_days_quality", average)):
            assert found[name] == [QUALITY_WORDS[at] for at in own.quality.ravel()]
    assert "How to read" in (tmp_path / "out" / "notes.txt").read_text(encoding="utf-8")


def test_columns_are_stable(made, tmp_path):
    """Every table has the columns of its attributes, and then the same ones."""
    hc.export(made, tmp_path / "out")
    headers = {tuple(columns_of(path)) for path in (tmp_path / "out" / "tables").iterdir()}
    numbers = ("value", "std_error", "low_95", "high_95", "quality")
    sums = ("sum_days", "sum_days_std_error", "sum_days_low_95", "sum_days_high_95", "sum_days_quality")
    averages = ("avg_days", "avg_days_low_95", "avg_days_high_95", "avg_days_quality")
    ends = {header[-len((*numbers, *sums, *averages)) - 1 :] for header in headers}
    assert ends == {(*numbers, *sums, *averages, "warning")}
    hc.export(made, tmp_path / "face", face="nonnegative")
    headers = {tuple(columns_of(path))[-3:] for path in (tmp_path / "face" / "tables").iterdir()}
    assert headers == {("value", "std_error", "warning")}


def test_formats_agree(made, tmp_path):
    """The same table from four files of four formats."""
    openpyxl = pytest.importorskip("openpyxl")
    wanted = hc.open(made).table("sex*ward")
    for name, kind in (("t.csv", "csv"), ("t.xlsx", "xlsx"), ("t.json", "json-stat"), ("s.csv", "sdmx-csv")):
        hc.export(made, tmp_path / name, kind, tables="sex*ward")
    values = {"csv": [float(x) for x in columns_of(tmp_path / "t.csv")["value"]]}
    rows = openpyxl.load_workbook(tmp_path / "t.xlsx").worksheets[2].iter_rows(min_row=workbook.HEADER + 2)
    values["xlsx"] = [row[2].value for row in rows]
    document = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))
    values["json-stat"] = document["value"][:: document["size"][-1]]
    rows = hc.read_csv(tmp_path / "s.csv")
    values["sdmx-csv"] = [float(row["OBS_VALUE"]) for row in rows if row["MEASURE"] == "count"]
    for found in values.values():
        np.testing.assert_allclose(found, wanted.values.ravel(), rtol=1e-12)


# ------------------------------------------------------------------------------------------------------------ words


def test_words_choose_tables(made):
    release = hc.open(made)
    words = {
        "1-way": ["age", "sex", "ward"],
        "sex*ward, age": ["age", "sex*ward"],
        "ward*sex": ["ward*sex"],
        "age@band*sex": ["age@band*sex"],
        "total": ["total"],
        "prefix(age)*sex": ["prefix(age)*sex"],
        "cube": ["age", "age*ward", "sex", "sex*age", "sex*ward", "total", "ward"],
    }
    for word, expected in words.items():
        chosen = Chosen.of(release, word)
        assert sorted(table.word for table in chosen) == sorted(expected), word
        assert chosen.sizes == [table.values.size for table in chosen]
    rolled = next(iter(Chosen.of(release, "age@band*sex")))
    np.testing.assert_allclose(rolled.values, release.table("age@band*sex").values)


@pytest.mark.parametrize(
    ("asked", "error", "told"),
    [
        ({"tables": "nobody"}, QueryError, "tables: 'nobody' is not in the schema"),
        ({"tables": "sex*age*ward"}, QueryError, "tables: sex.age.ward is not published"),
        ({"tables": "3-way"}, QueryError, "tables: no table of '3-way' is published"),
        ({"tables": "4-way"}, QueryError, "tables: '4-way' needs 4 attributes"),
        ({"tables": "sex*sex"}, QueryError, "names an attribute twice"),
        ({"tables": []}, QueryError, "tables: must be words"),
        ({"tables": ""}, QueryError, "tables: "),
        ({"face": "integral"}, QueryError, "has no face 'face-valid'"),
        ({"format": "pdf"}, BadInput, "format: 'pdf' is not a format. Fix: use one of: csv, xlsx"),
        ({"out": "t.csv"}, OutputError, "a file ending in .csv holds one table, and 8 are chosen"),
        ({"format": "xlsx"}, OutputError, "xlsx is one file, and its name does not end in .xlsx"),
        ({"out": "nowhere/out"}, OutputError, "is not a folder"),
    ],
    ids=lambda given: str(given) if isinstance(given, dict) else "",
)
def test_what_cannot_be_exported_is_refused_and_nothing_is_written(made, tmp_path, asked, error, told):
    asked = {"out": "out", **asked}
    with pytest.raises(error, match=told):
        hc.export(made, tmp_path / asked.pop("out"), **asked)
    assert list(tmp_path.iterdir()) == []


# -------------------------------------------------------------------------------------------------- whole or not at all


@pytest.mark.parametrize("kind", FORMATS)
def test_nothing_is_overwritten(made, tmp_path, kind):
    place = tmp_path / OUT[kind]
    place.write_text("mine")
    with pytest.raises(OutputError, match="exists already"):
        hc.export(made, place, kind)
    assert place.read_text() == "mine"


@pytest.mark.parametrize("kind", FORMATS)
def test_an_interruption_leaves_nothing(made, tmp_path, monkeypatch, kind):
    (tmp_path / "waiting").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "waiting"))
    monkeypatch.setattr(workbook, "_LARGE", 0)  # rows wait on the disk

    def stop(stage, share):
        if share > 0.4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hc.export(made, tmp_path / OUT[kind], kind, progress=stop)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["waiting"]


def test_progress_reaches_the_end(made, tmp_path):
    told = []
    hc.export(made, tmp_path / "out", progress=lambda stage, share: told.append((stage, share)))
    assert len(told) == 8 and told[-1] == ("exporting", 1.0)
    assert all(a < b for (_, a), (_, b) in pairwise(told))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of the archive, which is left open
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
def test_a_full_disk_is_told(made, tmp_path, monkeypatch):
    monkeypatch.setattr(workbook, "_Sheets", Full)
    with pytest.raises(hc.HushcubeError, match="no space left") as told:
        hc.export(made, tmp_path / "out.xlsx", "xlsx")
    del told
    gc.collect()  # now, where its complaint is expected
    assert list(tmp_path.iterdir()) == []


class Full:
    """A workbook that will be written to a full disk."""

    def __init__(self, book, _workbook):
        self._book = book

    def write(self, _tables):
        self._book.add_worksheet("a")
        self._book.filename = "/dev/full"


def test_a_damaged_release_is_not_exported(made, tmp_path):
    import shutil

    copy = shutil.copytree(made, tmp_path / "copy")
    path = next((copy / "tables").iterdir())
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(BundleError, match="was changed"):
        hc.export(copy, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["copy"]


def test_a_release_in_memory_is_exported_too(made, tmp_path):
    hc.export(hc.open(made), tmp_path / "out", tables="1-way")
    assert len(list((tmp_path / "out" / "tables").iterdir())) == 3


# --------------------------------------------------------------------------------------------------- what must be said


@pytest.mark.parametrize("kind", FORMATS)
def test_a_seeded_release_is_stamped_in_every_file(made, tmp_path, kind):
    hc.export(made, tmp_path / OUT[kind], kind)
    if kind == "xlsx":
        openpyxl = pytest.importorskip("openpyxl")
        for sheet in openpyxl.load_workbook(tmp_path / "out.xlsx"):
            assert sheet["A2"].value.startswith(STAMP)
        return
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert len(files) > 8
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert STAMP in text, path.name
        if path.suffix == ".csv":  # in every line, so that none is copied without it
            assert all(
                STAMP in row[-1] or STAMP in row[-2] or row[-1] in ("warning", "WARNING") for row in csv_rows(path)
            )


def csv_rows(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def test_limits_are_told_before_anything_is_written(made, tmp_path, monkeypatch):
    monkeypatch.setattr(workbook.Workbook, "most_tables", 3)
    with pytest.raises(TooLarge, match="tables: 8 tables are more than the 3 that can be held"):
        hc.export(made, tmp_path / "out.xlsx", "xlsx")
    monkeypatch.setattr(workbook.Workbook, "most_cells", 15)
    with pytest.raises(TooLarge, match="16 cells of one table are more than the 15"):
        hc.export(made, tmp_path / "out.xlsx", "xlsx", tables="sex*age")
    monkeypatch.setattr(pages.Pages, "most_cells", 15)
    with pytest.raises(TooLarge):
        hc.export(made, tmp_path / "out", "html")
    assert list(tmp_path.iterdir()) == []
    assert workbook._ROWS == 2**20


def test_a_missing_package_is_named(made, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    with pytest.raises(
        MissingDependency, match=r"the format xlsx needs xlsxwriter. Fix: pip install 'hushcube\[xlsx\]'"
    ):
        hc.export(made, tmp_path / "out.xlsx", "xlsx")
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_a_table_is_not_read(tmp_path):
    for content in (b"a,b\n1,2,3\n", b"\xff\xfe", b'a\n"x'):
        (tmp_path / "t.csv").write_bytes(content)
        with pytest.raises(BundleError, match="is not a table that can be read"):
            hc.read_csv(tmp_path / "t.csv")


# ------------------------------------------------------------------------------------------------ the publisher's words


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    """Codes with labels, titles, and rows that are bounded."""
    schema = hc.Schema.from_yaml("""
name: calls
title: Calls to the fire brigade
description: What was answered.
licence: CC BY 4.0
unit_noun: calls
unit: caller
max_rows: 2
attributes:
  - {name: type, size: 2, labels: {0: medical, 1: "=fire"}, title: Type of call}
  - {name: hour, range: [0, 3], unit_of_measure: h}
measures:
  - {name: wait, bounds: [0, 9], title: Waiting time, unit_of_measure: minutes}
""")
    columns = {"type": [0, 1] * 40, "hour": [0, 1, 2, 3] * 20, "wait": [1.0] * 80, "caller": list(range(80))}
    plan = hc.plan(schema, "<=2-way", rho=5, neighbours="add-remove", measures=["sum(wait)"])
    return hc.release(plan, pd.DataFrame(columns), out=tmp_path_factory.mktemp("named") / "r")


def test_csv_has_codes_beside_labels(named, tmp_path):
    hc.export(named, tmp_path / "t.csv", tables="type*hour")
    found = columns_of(tmp_path / "t.csv")
    assert list(found)[:4] == ["type", "type_code", "hour", "value"]
    assert found["type"] == ["medical"] * 4 + ["=fire"] * 4 and found["type_code"] == ["0"] * 4 + ["1"] * 4


def test_json_stat_has_codes_labels_and_titles(named, tmp_path):
    document = json.loads(hc.export(named, tmp_path / "t.json", "json-stat", tables="type").read_text(encoding="utf-8"))
    kind = document["dimension"]["type"]
    assert kind == {
        "label": "Type of call",
        "category": {"index": ["0", "1"], "label": {"0": "medical", "1": "=fire"}},
    }
    measures = document["dimension"]["measure"]["category"]["label"]
    assert measures["value"] == "number of calls" and measures["sum_wait"] == "sum of Waiting time (minutes)"
    assert document["label"] == "Calls by Type of call" and any("Bounded: " in note for note in document["note"])


def test_sdmx_csv_has_names_beside_codes(named, tmp_path):
    hc.export(named, tmp_path / "t.csv", "sdmx-csv", tables="type*hour")
    header, first, *_ = csv_rows(tmp_path / "t.csv")
    assert header[:10] == [
        "STRUCTURE", "STRUCTURE_ID", "STRUCTURE_NAME", "ACTION", "TYPE", "Type of call", "HOUR", "hour (h)", "MEASURE",
        "Measure",
    ]  # fmt: skip
    assert first[:10] == [
        "dataflow", "HUSHCUBE:calls-type-hour(1.0.0)", "Calls by Type of call and hour (h)", "I", "0", "medical", "0",
        "0", "count", "number of calls",
    ]  # fmt: skip


def test_a_workbook_and_pages_speak_the_publishers_words(named, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.load_workbook(hc.export(named, tmp_path / "t.xlsx", "xlsx"))
    sheet = book["type x hour"]
    assert [cell.value for cell in sheet[workbook.HEADER + 1][:3]] == ["Type of call", "Type of call, code", "hour (h)"]
    assert sheet["A2"].value.startswith("Bounded: tables are of bounded contributions, at most 2 rows")
    notes = [row[0].value for row in book["Notes"].iter_rows()]
    assert {"Calls to the fire brigade", "What was answered.", "Licence: CC BY 4.0"} <= set(notes)
    out = hc.export(named, tmp_path / "site", "html")
    index = (out / "index.html").read_text(encoding="utf-8")
    assert "<h1>Calls to the fire brigade</h1>" in index and "Licence: CC BY 4.0" in index
    assert all("Bounded: " in path.read_text(encoding="utf-8") for path in (out / "tables").iterdir())


# ------------------------------------------------------------------------------------------------------------- XLSX


def test_the_workbook_has_contents_that_lead_to_its_sheets(made, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    hc.export(made, tmp_path / "out.xlsx", "xlsx")
    book = openpyxl.load_workbook(tmp_path / "out.xlsx")
    links = [row[0] for row in book["Contents"].iter_rows(min_row=workbook.HEADER + 2)]
    assert [link.hyperlink.location for link in links] == [f"'{name}'!A1" for name in book.sheetnames[2:]]
    sheet = book["sex x age"]
    assert sheet.freeze_panes == "C5" and sheet["C5"].number_format == "#,##0.0"
    assert sheet["A5"].value == "=Female" and sheet["A5"].data_type == "s"
    assert sheet.column_dimensions["A"].width >= len("=Female")
    notes = [row[0].value for row in book["Notes"].iter_rows()]
    assert "Privacy" in notes and any("0.5" in (text or "") or "rho" in (text or "") for text in notes)


def test_names_of_sheets_are_allowed_and_differ():
    used, words = (
        set(),
        ["a*b", "A*B", "a:b", "a/b", "[x]", "'q'", "''", "x" * 50, "x" * 49, "👩" * 20, "Contents", "history"],
    )
    used |= {name.casefold() for name in workbook._RESERVED}
    names = [workbook.sheet_name(word, used) for word in words]
    assert len({name.casefold() for name in names}) == len(names)
    for name in names:
        assert 0 < len(name.encode("utf-16-le")) // 2 <= 31 and not set(name) & set("[]:*?/\\")
        assert not name.startswith("'") and not name.endswith("'")
    assert not {"contents", "history"} & {name.casefold() for name in names}


# ------------------------------------------------------------------------------------------------------------- HTML


class Page(HTMLParser):
    """Collects elements, and sees that they are nested."""

    empty = ("meta", "br")

    def __init__(self, path):
        super().__init__()
        self.found, self.open, self.links = [], [], []
        self.feed(path.read_text(encoding="utf-8"))
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        self.links += [value for name, value in attrs if name in ("href", "src")]
        if tag not in self.empty:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def named(self, tag):
        return [attributes for name, attributes in self.found if name == tag]


def test_pages_are_plain_and_accessible(made, tmp_path):
    out = hc.export(made, tmp_path / "out", "html")
    index = Page(out / "index.html")
    assert sorted(index.links) == sorted(f"tables/{path.name}" for path in (out / "tables").iterdir())
    for path in (out / "index.html", *(out / "tables").iterdir()):
        page = Page(path)
        assert page.named("html") == [{"lang": "en"}] and len(page.named("h1")) == len(page.named("main")) == 1
        assert len(page.named("title")) == len(page.named("caption")) == 1
        assert not page.named("script") and not page.named("img") and not page.named("link")
        assert all((path.parent / link).exists() for link in page.links)
        assert {head.get("scope") for head in page.named("th")} <= {"col", "row"}
        assert "prefers-color-scheme: dark" in path.read_text() and "@media print" in path.read_text()
    rows = Page(out / "tables" / Path(next(link for link in index.links if "sex-ward" in link)).name)
    assert len(rows.named("tr")) == 1 + 6


def test_headings_of_words_stand_above_their_words(made, tmp_path):
    """Numbers are aligned at their ends, words at their beginnings; a short word is not broken in two."""
    path = hc.export(made, tmp_path / "t.html", "html", tables="sex")
    text = path.read_text(encoding="utf-8")
    assert '<th scope="col">quality</th>' in text and '<th scope="col" class="number">value</th>' in text
    page = Page(path)
    heads = [head.get("class") == "number" for head in page.named("th") if head["scope"] == "col"]
    cells = [cell["class"] == "number" for cell in page.named("td")]
    wide = len(cells) // (len(page.named("tr")) - 1)
    assert heads[-wide:] == cells[:wide] and not all(cells)
    assert "overflow-wrap: anywhere" not in text


def test_one_page_alone_has_no_way_back(made, tmp_path):
    page = Page(hc.export(made, tmp_path / "t.html", "html", tables="sex"))
    assert page.links == []


def test_labels_are_not_markup(tmp_path):
    schema = hc.Schema([hc.Attribute("x", values=["<script>alert(1)</script>", "a & b", "ש\u200f", "\x00"])])
    plan = hc.plan(schema, "1-way", epsilon=1, neighbours="add-remove")
    release = hc.release(plan, pd.DataFrame({"x": ["a & b"] * 3}))
    text = hc.export(release, tmp_path / "x.html", "html", tables="x").read_text(encoding="utf-8")
    assert "<script" not in text and "&lt;script&gt;" in text and "a &amp; b" in text and "\x00" not in text
    assert STAMP not in text
