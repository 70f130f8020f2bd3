"""The indexes of packs: one table is found without the plan, and is what opening the release gives."""

import contextlib
import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers import MemoryEngine, every_plan, label, make_plan, make_request, random_codes, released
from hushcube.bundle import folder as bundle_folder, reading, table_files
from hushcube.bundle.change import add_face
from hushcube.bundle.folder import find_table, open_bundle, table_entries
from hushcube.bundle.manifest import manifest_text, seal
from hushcube.bundle.part import FormsFromCells, PublishedFace
from hushcube.bundle.reading import checksum
from hushcube.bundle.verify import verify
from hushcube.bundle.writing import write
from hushcube.cli import run
from hushcube.errors import BundleError
from hushcube.faces.people import PeopleTables
from hushcube.private.measure import measure
from hushcube.private.noise import SeededEntropy

SIZES = (2, 3, 2, 2)


@pytest.fixture(autouse=True)
def packed(monkeypatch):
    monkeypatch.setattr(table_files, "MOST_FILES", 3)


def publish(p, folder):
    codes = random_codes(p.schema.sizes, 200)
    write(released(p, measure(p, MemoryEngine(codes), entropy=SeededEntropy(5))), folder)
    return codes


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_files, "MOST_FILES", 3)
        folder = tmp_path_factory.mktemp("index") / "r"
        p = make_plan(make_request(SIZES, "<=2-way", rho=1), "residual")
        codes = publish(p, folder)
        description = {"asked": {}, "report": {}, "facts": None, "std_error": "of the unbiased estimate"}
        add_face(folder, PublishedFace("nonnegative", description, FormsFromCells(PeopleTables(codes, SIZES))))
    return folder


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "r")


@pytest.mark.slow
@pytest.mark.parametrize("law", [{"epsilon": 1}, {"rho": "0.1"}, {"rho": 50}], ids=str)
def test_what_is_found_is_what_the_release_gives(tmp_path, law):
    served = 0
    for number, p in enumerate(list(every_plan(make_request((2, 3, 2), "<=2-way", **law)))[::3]):
        publish(p, tmp_path / str(number))
        opened = open_bundle(tmp_path / str(number))
        for word in opened:
            found, expected = find_table(tmp_path / str(number), word), opened.table(word)
            if found is None:
                continue
            served += 1
            for one, other in zip(
                (found.values, found.std_errors, found.margins),
                (expected.values, expected.std_errors, expected.margins),
                strict=True,
            ):
                assert one == pytest.approx(other, rel=1e-12, abs=0), (label(p), word)
            assert found.labels == expected.labels and found.attributes == expected.attributes
            assert (found.schema.name, found.private) == (opened.schema.name, False)
    assert served > 20


def test_one_table_needs_neither_the_plan_nor_other_files(folder, monkeypatch):
    expected = open_bundle(folder).table("a1*a3").values
    monkeypatch.setattr("hushcube.bundle.folder.read_plan", lambda *_: pytest.fail("the plan was loaded"))
    opened = []
    inside = reading.inside
    monkeypatch.setattr(reading, "inside", lambda place, name: opened.append(name) or inside(place, name))
    assert (find_table(folder, "a3 * a1").values == expected.T).all()
    assert set(opened) == {"manifest.json", "PRIVACY.md", "tables/2-way.parquet", "tables/2-way-index.parquet"}
    assert run(["show", str(folder), "a1*a3", "--where", "a1=2"]) == 0


def test_the_total_and_another_face_are_found(folder):
    opened = open_bundle(folder)
    assert find_table(folder, "total").values == opened.table("total").values
    found = find_table(folder, "a0*a1", face="nonnegative")
    assert (found.values == opened.table("a0*a1", face="nonnegative").values).all()
    assert found.margins == pytest.approx(opened.table("a0*a1").margins)


@pytest.mark.parametrize("words", ["a0*a1*a2", "prefix(a1)", "a0*a0", "b", "", "a0*"])
def test_other_questions_are_left_to_the_whole_release(folder, words):
    assert find_table(folder, words) is None


def test_show_prints_the_same_with_and_without_an_index(folder, capsys):
    for arguments in (["a0*a1"], ["a0*a1", "--json"], ["a1", "--face", "nonnegative"], ["total", "--where", "a0=1"]):
        run(["show", str(folder), *arguments])
        told = capsys.readouterr()
        manifest = json.loads((folder / "manifest.json").read_text())
        listed = {**manifest, "tables": table_entries(folder, manifest)}
        (folder / "manifest.json").write_text(manifest_text(listed))
        assert find_table(folder, "a0*a1") is None
        run(["show", str(folder), *arguments])
        assert capsys.readouterr() == told and told.out + told.err
        (folder / "manifest.json").write_text(manifest_text(manifest))


@pytest.mark.parametrize("name", ["tables/2-way.parquet", "tables/2-way-index.parquet", "PRIVACY.md", "manifest.json"])
def test_damage_of_what_is_read_is_found(folder, name):
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[:-9] + b"x" + content[-8:])
    with pytest.raises(BundleError):
        find_table(folder, "a0*a1")


def change_index(folder, change):
    """Write an index again, with every checksum, as a careful forger would."""
    name = "tables/2-way-index.parquet"
    pq.write_table(change(pq.read_table(folder / name)), folder / name)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["checksums"][name] = checksum(folder, name)
    (folder / "manifest.json").write_bytes(seal(manifest, folder))


def test_verify_compares_the_margins_of_an_index(folder):
    assert verify(folder, allow_seeded=True).holds
    at = pq.read_schema(folder / "tables/2-way-index.parquet").names.index("margin_95")
    change_index(folder, lambda t: t.set_column(at, "margin_95", pa.array([0.5] * t.num_rows)))
    [problems] = [c.problems for c in verify(folder, allow_seeded=True).checks if not c.holds]
    assert problems == ("tables/2-way-index.parquet: 6 margins are not those that the plan predicts",)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.slice(0, 3),
        lambda t: t.drop_columns(["cells"]),
        lambda t: t.set_column(0, "attribute_1", pa.array(["nothing"] * t.num_rows)),
        lambda t: t.set_column(2, "offset", pa.array([10**9] * t.num_rows)),
        lambda t: t.set_column(2, "offset", pa.array([-1] * t.num_rows)),
        lambda t: t.set_column(2, "offset", pa.array(["x"] * t.num_rows)),
        lambda t: t.set_column(2, "offset", pa.array(np.roll(t.column(2).to_numpy(), 1))),
    ],
)
def test_an_index_that_does_not_fit_is_found(folder, change):
    change_index(folder, change)
    assert not verify(folder, allow_seeded=True).holds
    with contextlib.suppress(BundleError):
        assert find_table(folder, "a0*a1") is None
    with pytest.raises(BundleError):
        open_bundle(folder).table("a0*a1")


def test_tables_that_follow_each_other_in_a_pack_are_read_at_once(made, monkeypatch):
    """A pack of thousands is not opened, and its row groups decoded, for every table of it."""
    release = open_bundle(made)
    read, opened = bundle_folder.read_packed, []

    def counted(*args, **words):
        opened.append(args)
        return read(*args, **words)

    monkeypatch.setattr(bundle_folder, "read_packed", counted)
    together = release.source.tables(np.array([[0, 2], [0, 3], [2, 3]], np.int32), (2, 2))
    assert len(opened) == 1
    for values, word in zip(together, ("a0*a2", "a0*a3", "a2*a3"), strict=True):
        np.testing.assert_array_equal(values, release.table(word).values)


def test_runs_of_entries():
    entries = [{"file": "a", "offset": 0}, {"file": "a", "offset": 4}, {"file": "a", "offset": 12}, {"file": "b"}]
    assert list(bundle_folder._runs(entries, 4)) == [
        ("a", 0, slice(0, 2)), ("a", 12, slice(2, 3)), ("b", None, slice(3, 4)),
    ]  # fmt: skip
