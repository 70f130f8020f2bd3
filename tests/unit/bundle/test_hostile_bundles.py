"""Bundles made to harm: pipes, devices, links and endless files in the place of each file are named and not read."""

import contextlib
import json
import os
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hushcube as hc
from datasets import EARLIER
from hushcube import plan, recover, release, synthesize
from hushcube.bundle import reading
from hushcube.bundle.manifest import manifest_text
from hushcube.bundle.verify import verify
from hushcube.errors import BundleError
from hushcube.model.attribute import Attribute
from hushcube.model.measure import Measure
from hushcube.model.schema import Schema

ATTRIBUTES = (Attribute(name="sex", values=("F", "M")), Attribute(name="age", codes=3))
DATA = pa.table({"sex": ["F", "M", "M"] * 9, "age": [0, 1, 2] * 9, "days": [3, 4, 5] * 9})


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A release of counts with whole numbers, and cubes as they are and were."""
    folder = tmp_path_factory.mktemp("made")
    asked = plan(Schema(ATTRIBUTES), "<=2-way", epsilon=1, neighbours="add-remove", strategy="workload")
    release(asked, DATA, out=folder / "counts")
    recover(folder / "counts")
    measures = (Measure(name="days", bounds=(0, 9)),)
    schema = Schema(ATTRIBUTES, measures=measures)
    release(
        plan(schema, "<=1-way", measures=["avg(days)"], epsilon=1, neighbours="add-remove"), DATA, out=folder / "cube"
    )
    shutil.copytree(EARLIER / "cube-3", folder / "earlier cube")
    return folder


@pytest.fixture
def bundle(made, tmp_path):
    def copy(kind):
        return shutil.copytree(made / kind, tmp_path / kind)

    return copy


def files(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def pipe(path):
    os.mkfifo(path)


def device(path):
    path.symlink_to("/dev/zero")


def link_out(path):
    path.symlink_to(__file__)


def loop(path):
    path.symlink_to(path.name)


def folder_instead(path):
    path.mkdir()


def endless(path):
    """A terabyte of nothing, which takes no room on the disk."""
    path.touch()
    os.truncate(path, 2**40)


HOSTILE = {
    pipe: "is not a regular file",
    device: "is a link that leaves the release",
    link_out: "is a link that leaves the release",
    loop: "cannot be read",
    folder_instead: "is not a regular file",
}


def targets(folder, kind):
    """All files; of a cube of an earlier format, which is slow to verify, one of each kind in each folder."""
    if kind != "earlier cube":
        return files(folder)
    return list({name.rpartition("/")[0] + name.rpartition(".")[2]: name for name in files(folder)}.values())


def uses(folder, kind):
    """Every way to open a release."""
    yield lambda: hc.open(folder)
    if kind == "earlier cube":
        return
    yield lambda: recover(folder)
    yield lambda: synthesize(folder)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["counts", "cube", "earlier cube"])
@pytest.mark.parametrize("harm", HOSTILE, ids=lambda x: x.__name__)
def test_only_regular_files_inside_the_folder_are_opened(bundle, kind, harm):
    folder = bundle(kind)
    for name in targets(folder, kind):
        kept = (folder / name).read_bytes()
        (folder / name).unlink()
        harm(folder / name)
        verdict = verify(folder)
        problems = [problem for check in verdict.checks for problem in check.problems]
        assert any(problem.startswith(f"{name}: {HOSTILE[harm]}") for problem in problems), (name, problems)
        for use in uses(folder, kind):
            with pytest.raises(BundleError):
                use()
        (folder / name).rmdir() if harm is folder_instead else (folder / name).unlink()
        (folder / name).write_bytes(kept)
    assert verify(folder, allow_seeded=True).holds


def test_texts_have_a_limit(bundle, monkeypatch):
    folder = bundle("counts")
    manifest = (folder / "manifest.json").read_text()
    (folder / "manifest.json").unlink()
    endless(folder / "manifest.json")
    with pytest.raises(BundleError, match=r"manifest\.json: has 1,099,511,627,776 bytes"):
        hc.open(folder)
    assert not verify(folder).holds
    (folder / "manifest.json").write_text(manifest)
    monkeypatch.setattr(reading, "LONGEST_TEXT", len(manifest))
    (folder / "plan.json").write_text(" " * (len(manifest) + 1))
    with pytest.raises(BundleError, match=r"plan\.json: has .* bytes"):
        hc.open(folder, verify=False)


def test_links_of_the_owner_within_the_folder_work_and_so_does_one_to_it(bundle, tmp_path):
    folder = bundle("counts")
    [name] = [name for name in files(folder) if name.startswith("tables/") and name.endswith("sex-age.parquet")]
    expected = hc.open(folder).table("sex*age").values
    (folder / name).rename(folder / "tables" / "moved.parquet")
    (folder / name).symlink_to("moved.parquet")
    (tmp_path / "link").symlink_to("counts")
    assert (hc.open(tmp_path / "link").table("sex*age").values == expected).all()
    (tmp_path / "hard").mkdir()
    for other in files(folder):
        (tmp_path / "hard" / other).parent.mkdir(parents=True, exist_ok=True)
        os.link((folder / other).resolve(), tmp_path / "hard" / other)
    (tmp_path / "hard" / "tables" / "moved.parquet").unlink()
    assert verify(tmp_path / "hard").holds


@pytest.mark.parametrize(
    "place", ["..", "../counts", "/etc", "parts/count/../count", "", ".", "parts/nothing", "cube.json", 3]
)
def test_parts_of_a_cube_lie_inside_it(bundle, place):
    folder = bundle("earlier cube")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["parts"]["count"] = place
    (folder / "manifest.json").write_text(manifest_text(manifest))
    with pytest.raises(BundleError):
        hc.open(folder)
    assert not verify(folder).holds


def test_a_part_may_not_be_a_link_out_of_the_cube(bundle, tmp_path):
    folder = bundle("earlier cube")
    (folder / "parts" / "count").rename(tmp_path / "count")
    (folder / "parts" / "count").symlink_to(tmp_path / "count")
    with pytest.raises(BundleError, match="leaves the release"):
        hc.open(folder, verify=False)
    assert not verify(folder).holds


def test_rows_are_counted_before_they_are_decoded(bundle, monkeypatch):
    """A few bytes of Parquet can stand for billions of equal rows."""
    folder = bundle("counts")
    monkeypatch.setattr(reading, "LONGEST_RUN", 50)
    monkeypatch.setattr("hushcube.bundle.folder.MOST_PEOPLE", 50)
    decoded = []
    monkeypatch.setattr(pq.ParquetFile, "read", lambda *_, **__: decoded.append(1))
    rows = {"sex": ["F"] * 60, "age": ["0"] * 60}
    for name in files(folder):
        if name.endswith(".parquet"):
            columns = dict.fromkeys(pq.read_schema(folder / name).names, [0] * 60)
            pq.write_table(pa.table({k: rows.get(k, v) for k, v in columns.items()}), folder / name)
    opened = hc.open(folder, verify=False)
    for use in (opened.source.measurement, opened.face("face-valid").read_people, lambda: opened.table("sex")):
        with pytest.raises(BundleError):
            use()
    assert not verify(folder).holds
    assert not decoded


@pytest.mark.slow
def test_any_byte_of_the_measurements_may_be_another_one(tmp_path):
    """The header of a page can say other numbers of rows than the footer of the file: that is damage, too."""
    schema = Schema((Attribute(name="sex", values=("F", "M")), Attribute(name="age", codes=3)))
    asked = plan(schema, "<=2-way", epsilon=1, neighbours="add-remove", strategy="workload")
    release(asked, pa.table({"sex": ["F", "M", "M"] * 9, "age": [0, 1, 2] * 9}), out=tmp_path / "bundle")
    file = tmp_path / "bundle" / "measurements" / "count.parquet"
    opened, whole = hc.open(tmp_path / "bundle"), file.read_bytes()
    for at in range(len(whole)):
        for other in (0, 47):
            file.write_bytes(whole[:at] + bytes([other]) + whole[at + 1 :])
            with contextlib.suppress(BundleError):
                opened.source.measurement()
