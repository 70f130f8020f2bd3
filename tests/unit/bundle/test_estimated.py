"""Cells at face value have estimated errors beside them after a selective run; verify makes them again."""

import csv
import html
import json
import re
import shutil
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hushcube as hc
from hushcube.bundle import table_files
from hushcube.bundle.crossing import documents
from hushcube.bundle.export import workbook
from hushcube.bundle.export.formats import FORMATS
from hushcube.bundle.folder import find_table
from hushcube.faces.value import HALF_WIDTH
from hushcube.shown import number
from manifests import manifest_of, resealed

SIZES = {"a": 3, "estimated_error": 4, "c": 5}
FACES = ("nonnegative", "face-valid")


def people(number=5_000):
    rng = np.random.default_rng(1)
    hidden = rng.random(number)
    mixed = {name: (0.6 * hidden + 0.4 * rng.random(number)) * n for name, n in SIZES.items()}
    return pa.table({name: np.minimum(each.astype(int), SIZES[name] - 1) for name, each in mixed.items()})


@pytest.fixture(scope="module", params=["files", "packs"])
def published(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("estimated") / "published"
    schema = hc.Schema([hc.Attribute(name, codes=n) for name, n in SIZES.items()])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_files, "MOST_FILES", 1_000 if request.param == "files" else 3)
        plan = hc.plan(schema, "<=2-way", rho="0.05", neighbours="add-remove", strategy="selective")
        hc.release(plan, people(), out=folder, seed=3)
        for face in ("nonnegative", "integral"):
            hc.recover(folder, face)
    return folder


@pytest.fixture
def copied(published, tmp_path):
    return shutil.copytree(published, tmp_path / "copy")


def files_of(folder, face):
    return sorted({entry["file"] for entry in manifest_of(folder)["tables"] if entry["face"] == face})


def problems(folder):
    return {c.name: c.problems for c in hc.verify(folder, allow_seeded=True).checks if not c.holds}


def changed(folder, file, column, change):
    table = pq.read_table(folder / file)
    at = table.column_names.index(column)
    numbers = change(table.column(at).to_numpy().copy())
    pq.write_table(table.set_column(at, table.field(at), pa.array(numbers)), folder / file, row_group_size=2**19)


def last_column(folder, file):
    return pq.read_schema(folder / file).names[-1]


@pytest.mark.parametrize("face", FACES)
def test_they_stand_beside_the_counts_and_can_be_read(published, face):
    release = hc.open(published)
    for file in files_of(published, face):
        names = pq.read_schema(published / file).names
        own = "estimated_error_" if "estimated_error" in names[:-3] else "estimated_error"
        assert names[-3:] == ["value", "std_error", own]
    for word in release:
        table = release.table(word, face=face)
        assert table.estimated.shape == table.values.shape
        assert (table.estimated > 0).all()
        assert (table.estimated_margins == HALF_WIDTH * table.estimated).all()
        assert release.table(word).estimated is None
    told = release.faces[face].description["estimated_error"]
    assert told["half_width_95"] == HALF_WIDTH
    assert told["factor"] > 0


def test_they_follow_slices_and_orders_and_stop_at_roll_ups(published):
    release = hc.open(published)
    own = release.table("a*c", face="nonnegative")
    assert (release.table("c*a", face="nonnegative").estimated == own.estimated.T).all()
    assert (release.table("a*c", where={"c": "2"}, face="nonnegative").estimated == own.estimated[:, 2:3]).all()
    assert "estimated_error" in own.columns()
    assert "estimated_error" not in release.table("a*c").columns()
    assert documents(own)[3]["estimated_error"] == own.estimated.ravel()[3]
    assert "estimated_error" not in documents(release.table("a*c"))[0]
    shown = str(own)
    assert "estimated margin" in shown
    assert "unbiased margin" in shown
    assert "not promised" in shown
    assert "estimated" not in str(release.table("a*c"))


def test_sums_of_cells_have_none(tmp_path):
    schema = hc.Schema([hc.Attribute(name, codes=n) for name, n in SIZES.items()])
    plan = hc.plan(schema, "2-way", rho="0.05", neighbours="add-remove", strategy="selective")
    release = hc.recover(hc.release(plan, people(), seed=3), "nonnegative")
    assert release.table("a*c", face="nonnegative").estimated is not None
    assert release.table("a", face="nonnegative").estimated is None
    assert release.table("total", face="nonnegative").estimated is None


def test_cross_tables_show_their_margins_and_those_of_totals_that_are_published(published):
    release = hc.open(published)
    own = release.cross("a*c", face="nonnegative")
    told = str(own)
    assert "± stand estimated margins" in told and "not promised" in told
    for table in (own.table, own.row_totals, own.column_totals, own.total):
        assert table.estimated_margins.shape == table.values.shape
        for value, margin in zip(table.values.ravel(), table.estimated_margins.ravel(), strict=True):
            assert f"{number(round(float(value), 9))} ± {number(float(margin))}" in told
    part = release.cross("a*c", where={"c": ["1", "2"]}, face="nonnegative")
    assert part.table.estimated is not None
    assert part.row_totals.estimated is None  # a sum of some cells
    assert "estimated" not in str(release.cross("a*c"))


def test_frames_have_them(published):
    release = hc.open(published)
    for face in FACES:
        own = release.table("a*c", face=face)
        for made in (own.to_arrow().to_pydict(), own.to_pandas(), own.to_polars()):
            assert list(made["estimated_error"]) == own.estimated.ravel().tolist()
    taken = release.table("estimated_error*c", face="nonnegative")
    assert taken.to_pandas()["estimated_error_"].tolist() == taken.estimated.ravel().tolist()
    for made in (release.table("a*c").to_arrow().column_names, release.table("a*c").to_pandas()):
        assert "estimated_error" not in made


# -------------------------------------------------------------------------------------------------------------- exports

STATISTICS = ("value", "std_error", "estimated_error", "estimated_low", "estimated_high")


class Cells(HTMLParser):
    """The header of the table of a page, and its numbers row by row."""

    def __init__(self):
        super().__init__()
        self.head, self.rows, self._at = [], [], ""

    def handle_starttag(self, tag, attrs):
        self._at = "head" if ("scope", "col") in attrs else "cell" if tag == "td" else ""
        if tag == "tr":
            self.rows.append([])

    def handle_data(self, data):
        if self._at == "head":
            self.head.append(data)
        elif self._at == "cell":
            self.rows[-1].append(data)
        self._at = ""


def exported(folder, place, kind, **asked):
    """The columns of a table in the words of CSV, whatever the format, and what is said about them."""
    if kind == "csv":
        found = hc.read_csv(hc.export(folder, place / "t.csv", kind, **asked))
        hc.export(folder, place / "all", kind, **asked)
        return {n: [row[n] for row in found] for n in found[0]}, (place / "all" / "notes.txt").read_text()
    if kind == "sdmx-csv":
        with hc.export(folder, place / "t.csv", kind, **asked).open(newline="") as file:
            found = list(csv.DictReader(file))
        names = {"OBS_VALUE": "value"}
        hc.export(folder, place / "all", kind, **asked)
        columns = {names.get(n, n.lower()): [row[n] for row in found] for n in found[0]}
        return columns, (place / "all" / "notes.txt").read_text()
    if kind == "json-stat":
        told = json.loads(hc.export(folder, place / "t.json", kind, **asked).read_text())
        (metric,) = told["role"]["metric"]
        names = told["dimension"][metric]["category"]["index"]
        return {n: told["value"][at :: len(names)] for at, n in enumerate(names)}, " ".join(told["note"])
    if kind == "xlsx":
        openpyxl = pytest.importorskip("openpyxl")
        book = openpyxl.load_workbook(hc.export(folder, place / "t.xlsx", kind, **asked))
        head, *rows = book.worksheets[2].iter_rows(min_row=workbook.HEADER + 1, values_only=True)
        said = " ".join(row[0] or "" for row in book["Notes"].iter_rows(values_only=True))
        return {name: [row[at] for row in rows] for at, name in enumerate(head)}, said
    text = hc.export(folder, place / "t.html", kind, **asked).read_text()
    page = Cells()
    page.feed(text)
    rows = [row for row in page.rows if row]
    names = page.head[-len(rows[0]) :]
    return {n: [row[at].replace(",", "") for row in rows] for at, n in enumerate(names)}, html.unescape(text)


@pytest.mark.parametrize("kind", FORMATS)
def test_exports_have_them_with_estimated_intervals(published, tmp_path, kind):
    own = hc.open(published).table("a*c", face="nonnegative")
    found, said = exported(published, tmp_path, kind, tables="a*c", face="nonnegative")
    assert [name for name in found if name in STATISTICS] == list(STATISTICS)
    assert not found.keys() & {"low_95", "high_95", "quality"}
    low, high = own.estimated_ends
    assert (low >= 0).all() and (low == 0).any()
    close = {"rel": 0.01, "abs": 0.06} if kind == "html" else {"rel": 1e-12}
    for name, numbers in zip(STATISTICS, (own.values, own.std_errors, own.estimated, low, high), strict=True):
        assert [float(x) for x in found[name]] == pytest.approx(numbers.ravel().tolist(), **close), name
    assert "estimated, not promised" in said and f"{HALF_WIDTH:.2f} estimated errors" in said
    assert "confidence" not in said


@pytest.mark.parametrize("kind", FORMATS)
def test_exports_without_estimates_say_nothing_of_them(published, tmp_path, kind):
    for place, asked in (("unbiased", {}), ("turned", {"face": "consistent"})):
        (tmp_path / place).mkdir()
        release = hc.recover(hc.open(published), "consistent")
        found, said = exported(release, tmp_path / place, kind, tables="a*c", **asked)
        assert "value" in found and not any("estimated" in name for name in found)
        assert "estimated error" not in said


def test_exports_of_sums_have_none(tmp_path):
    schema = hc.Schema([hc.Attribute(name, codes=n) for name, n in SIZES.items()])
    plan = hc.plan(schema, "2-way", rho="0.05", neighbours="add-remove", strategy="selective")
    release = hc.recover(hc.release(plan, people(), seed=3), "nonnegative")
    hc.export(release, tmp_path / "out", tables=["c*a", "a"], face="nonnegative")
    turned, rolled = (set(hc.read_csv(path)[0]) for path in sorted((tmp_path / "out" / "tables").iterdir()))
    assert "estimated_error" in turned and "estimated_error" not in rolled


# ---------------------------------------------------------------------------------------------------- packs and checks


def test_one_table_of_a_pack_has_them(published):
    found = find_table(published, "c*a", face="nonnegative")
    if found is not None:  # there are packs
        assert (found.estimated == hc.open(published).table("c*a", face="nonnegative").estimated).all()
        assert find_table(published, "c*a").estimated is None


def test_verify_makes_them_again(published):
    verdict = hc.verify(published, allow_seeded=True)
    assert verdict.holds
    assert {f"{face}: estimates" for face in FACES} <= {check.name for check in verdict.checks if check.checked >= 7}


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("factor", [1.3, 1 / 1.3, 1 + 1e-6])
def test_verify_finds_other_estimates(copied, face, factor):
    file = files_of(copied, face)[-1]
    changed(copied, file, last_column(copied, file), lambda numbers: numbers * factor)
    resealed(copied, manifest_of(copied), file)
    found = problems(copied)
    assert found.keys() == {f"{face}: estimates"}
    assert re.search(r"the estimated error; the tables and the measurements give", found[f"{face}: estimates"][0])


@pytest.mark.parametrize("told", [None, {}, {"half_width_95": HALF_WIDTH, "factor": 3.0}, {"factor": "1"}])
def test_verify_finds_another_factor(copied, told):
    manifest = manifest_of(copied)
    manifest["faces"]["nonnegative"]["estimated_error"] = told
    resealed(copied, manifest)
    assert problems(copied).keys() == {"nonnegative: estimates"}


def test_a_face_that_does_not_say_that_it_has_them_is_another_table(copied):
    manifest = manifest_of(copied)
    del manifest["faces"]["nonnegative"]["estimated_error"]
    resealed(copied, manifest)
    assert {"privacy", "labels"} <= problems(copied).keys()


def test_a_face_of_another_plan_cannot_have_them(tmp_path):
    schema = hc.Schema([hc.Attribute("a", codes=3), hc.Attribute("c", codes=5)])
    plan = hc.plan(schema, "2-way", rho="0.05", neighbours="add-remove", strategy="residual")
    hc.release(plan, people(), out=tmp_path / "out", seed=3)
    hc.recover(tmp_path / "out", "nonnegative:method=entropy")
    (file,) = files_of(tmp_path / "out", "nonnegative")
    assert last_column(tmp_path / "out", file) == "std_error"
    table = pq.read_table(tmp_path / "out" / file)
    pq.write_table(table.append_column("estimated_error", pa.array(np.ones(len(table)))), tmp_path / "out" / file)
    manifest = manifest_of(tmp_path / "out")
    manifest["faces"]["nonnegative"]["estimated_error"] = {"half_width_95": HALF_WIDTH, "factor": 1.0}
    resealed(tmp_path / "out", manifest, file)
    assert "no last look" in problems(tmp_path / "out")["nonnegative: estimates"][0]


def test_measurements_that_are_missing_are_no_estimates(copied):
    (copied / "measurements" / "count.parquet").unlink()
    found = problems(copied)
    assert "files" in found
    assert not any("estimates" in name for name in found)


def test_statement_and_guide_say_what_they_are(published):
    for face in FACES:
        for name in ("PRIVACY.md", "README.md"):
            text = (published / "faces" / face / name).read_text()
            assert "`estimated_error`" in text
            assert "not promised" in text
            assert f"{HALF_WIDTH:.2f}" in text
    assert "estimated_error" not in (published / "PRIVACY.md").read_text()


def test_a_copy_with_another_face_keeps_them(published, tmp_path):
    hc.recover(published, "consistent", out=tmp_path / "new")
    assert hc.verify(tmp_path / "new", allow_seeded=True).holds
    hc.open(tmp_path / "new").save(tmp_path / "again")
    assert hc.verify(tmp_path / "again", allow_seeded=True).holds
    for face in FACES:
        own = [hc.open(f).table("a*c", face=face).estimated for f in (published, tmp_path / "new", tmp_path / "again")]
        assert (own[0] == own[1]).all()
        assert (own[0] == own[2]).all()
    assert hc.open(tmp_path / "new").table("a*c", face="consistent").estimated is None


def test_faces_of_format_6_have_none(copied, tmp_path):
    manifest = manifest_of(copied)
    manifest["format"] = 6
    changed_files = []
    for face in FACES:
        place = manifest["faces"][face]["folder"]
        del manifest["faces"][face]["estimated_error"]
        for file in files_of(copied, face):
            table = pq.read_table(copied / file)
            pq.write_table(table.drop_columns(table.column_names[-1]), copied / file, row_group_size=2**19)
            changed_files.append(file)
        for name in (f"{place}/PRIVACY.md", f"{place}/README.md"):
            kept = [p for p in (copied / name).read_text().split("\n\n") if "`estimated_error`" not in p]
            (copied / name).write_text("\n\n".join(kept))
            changed_files.append(name)
    resealed(copied, manifest, *changed_files)
    assert not problems(copied)
    assert hc.open(copied).table("a*c", face="nonnegative").estimated is None
    hc.recover(copied, "nonnegative", out=tmp_path / "new")
    assert manifest_of(tmp_path / "new")["format"] == 7
    assert not problems(tmp_path / "new")
    assert hc.open(tmp_path / "new").table("a*c", face="nonnegative").estimated is not None
    assert hc.open(tmp_path / "new").table("a*c", face="face-valid").estimated is None
