"""Cells at face value have estimated errors beside them after a selective run; verify makes them again."""

import re
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hushcube as hc
from hushcube.bundle import writing
from hushcube.bundle.crossing import documents
from hushcube.bundle.folder import find_table
from hushcube.faces.value import HALF_WIDTH
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
        patch.setattr(writing, "MOST_FILES", 1_000 if request.param == "files" else 3)
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
