"""A face is added in place, in one step, one process at a time; what others put there stays."""

import errno
import json
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hushcube as hc
from datasets import EARLIER
from helpers import MemoryEngine, make_plan, make_request, random_codes, released
from hushcube import durable, plan, release
from hushcube.bundle import change, folder as bundle, writing
from hushcube.bundle.change import LOCK, add_face, changing
from hushcube.bundle.folder import open_bundle
from hushcube.bundle.manifest import GUIDE, manifest_text, plan_fields
from hushcube.bundle.part import FormsFromCells, PublishedFace
from hushcube.bundle.reading import checksum
from hushcube.bundle.statement import privacy_statement
from hushcube.bundle.verify import verify
from hushcube.bundle.writing import write
from hushcube.cli import run
from hushcube.errors import BundleError, HushcubeError, OutputError, QueryError
from hushcube.faces.people import PeopleTables
from hushcube.model.attribute import Attribute
from hushcube.model.measure import Measure
from hushcube.model.schema import Schema
from hushcube.private.measure import measure
from hushcube.private.noise import SeededEntropy

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
SIZES = (2, 3)


class Shifted:
    def __init__(self, shift):
        self.tables = lambda rows, shape: np.full((len(rows), *shape), float(shift))


def face(name="consistent", shift=0.0):
    description = {"asked": {}, "report": {}, "facts": None, "std_error": "of the unbiased estimate"}
    if name == "face-valid":
        codes = random_codes(SIZES, 20, seed=int(shift))
        return PublishedFace(name, description, FormsFromCells(PeopleTables(codes, SIZES)), lambda: codes)
    return PublishedFace(name, description, FormsFromCells(Shifted(shift)))


@pytest.fixture
def folder(tmp_path):
    p = make_plan(make_request(SIZES, "1-way", epsilon=1), "workload")
    write(
        released(p, measure(p, MemoryEngine(random_codes(SIZES, 50)), entropy=SeededEntropy(5))), tmp_path / "release"
    )
    return tmp_path / "release"


def manifest(folder):
    return json.loads((folder / "manifest.json").read_text())


def places(folder):
    return {name: told["folder"] for name, told in manifest(folder)["faces"].items()}


def names(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def holds(folder):
    """Whole, and nothing there that is not listed."""
    verdict = verify(folder, allow_seeded=True)
    assert not any(check.remarks for check in verdict.checks), verdict.checks[0].remarks
    return all(check.holds for check in verdict.checks if "sums" not in check.name and "forms" not in check.name)


# ------------------------------------------------------------------------------------------- what is not the program's


def test_what_the_owner_added_stays(folder):
    (folder / "LICENCE.txt").write_text("x")
    (folder / ".git" / "refs").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("y")
    (folder / "readme").symlink_to("LICENCE.txt")
    before = {
        name: (folder / name).lstat() for name in ("LICENCE.txt", ".git/HEAD", ".git/refs", "readme", "plan.json")
    }
    add_face(folder, face())
    add_face(folder, face(shift=1))
    for name, stat in before.items():
        after = (folder / name).lstat()
        assert (after.st_ino, after.st_mtime_ns, after.st_mode) == (stat.st_ino, stat.st_mtime_ns, stat.st_mode), name
    told = verify(folder, allow_seeded=True).checks[0]
    assert told.holds
    assert told.remarks == tuple(f"{n}: is not part of the release" for n in (".git/", "LICENCE.txt", "readme"))


def test_files_of_others_in_a_replaced_face_stay(folder):
    add_face(folder, face())
    (folder / "faces/consistent/notes.txt").write_text("mine")
    add_face(folder, face(shift=1))
    assert places(folder) == {"consistent": "faces/consistent-2"}
    assert names(folder / "faces/consistent") == ["notes.txt"]


def test_links_and_the_working_directory(folder, tmp_path, monkeypatch):
    link = tmp_path / "link"
    link.symlink_to("release")
    inode = folder.stat().st_ino
    add_face(link, face())
    monkeypatch.chdir(folder)
    add_face(Path(), face("nonnegative", 1))
    assert link.is_symlink() and folder.stat().st_ino == inode
    assert set(hc.open(link).faces) == {"consistent", "nonnegative"} and holds(folder)


# ------------------------------------------------------------------------------------------------------- old or new


def test_a_face_is_replaced_by_other_files(folder):
    found = []
    for number in range(4):
        add_face(folder, face("face-valid", number))
        found.append(places(folder)["face-valid"])
        assert sorted(path.name for path in (folder / "faces").iterdir()) == [found[-1].split("/")[1]]
        assert holds(folder)
    assert found == ["faces/face-valid", "faces/face-valid-2"] * 2


def test_the_release_is_whole_at_every_step(folder, monkeypatch):
    """Until the manifest is replaced, everything that it lists is as it was; from then on the guide may be either."""
    add_face(folder, face())
    seen = []
    put = durable.os.replace

    def replace(source, target):
        open_bundle(folder)
        old = names(folder)
        put(source, target)
        open_bundle(folder)
        assert set(manifest(folder)["checksums"]) <= set(old)
        assert verify(folder, allow_seeded=True).checks[0].holds
        seen.append(target.relative_to(folder).as_posix())

    monkeypatch.setattr(durable.os, "replace", replace)
    add_face(folder, face(shift=1))
    assert seen == ["manifest.json", *GUIDE]


def test_the_guide_at_the_top_names_every_face(folder, tmp_path):
    add_face(folder, face())
    add_face(folder, face("nonnegative", 1), out=tmp_path / "new")
    add_face(folder, face(shift=1))
    for place, named in ((folder, {"consistent-2"}), (tmp_path / "new", {"consistent", "nonnegative"})):
        for name in GUIDE:
            assert set(re.findall(r"faces/([a-z0-9-]+)/", (place / name).read_text())) == named, name
        assert holds(place)


@pytest.mark.parametrize("done", [1, 2, 3])
def test_a_guide_that_was_not_replaced_yet_is_known(folder, monkeypatch, done):
    """A disk that fails right after the manifest, or between two files of the guide, leaves what was known before."""
    add_face(folder, face())
    put, replaced = durable.os.replace, []

    def replace(source, target):
        if len(replaced) == done:
            raise OSError(errno.EIO, "x")
        replaced.append(put(source, target))

    monkeypatch.setattr(durable.os, "replace", replace)
    add_face(folder, face(shift=1))
    assert open_bundle(folder).table("a0", face="consistent").values[0] == 1
    left = [f"{name}: is the one of before the last face was added" for name in GUIDE]
    told = verify(folder, allow_seeded=True).checks[0]
    assert told.holds and told.remarks == tuple(left[done - 1 :])
    replaced.clear()
    add_face(folder, face(shift=2))  # once more: there may be files of three states now
    assert verify(folder, allow_seeded=True).checks[0].holds
    monkeypatch.undo()
    add_face(folder, face("nonnegative", 1))
    assert holds(folder)
    (folder / "README.md").write_text("x")
    assert not verify(folder, allow_seeded=True).checks[0].holds


@pytest.mark.parametrize("wrong", [[], {"plan.json": ["0", 1]}, {"README.md": "0"}, {"README.md": ["0", "1"]}])
def test_an_earlier_guide_is_a_guide(folder, wrong):
    add_face(folder, face())
    (folder / "manifest.json").write_text(manifest_text({**manifest(folder), "earlier_guide": wrong}))
    assert any("earlier guide" in each for each in verify(folder, allow_seeded=True).checks[0].problems)
    with pytest.raises(BundleError, match="earlier guide"):
        open_bundle(folder)


def test_guides_that_name_no_faces_are_remarked_on(folder):
    """As earlier versions wrote them."""
    texts = {name: (folder / name).read_bytes() for name in GUIDE}
    add_face(folder, face())
    told = manifest(folder)
    del told["earlier_guide"]
    for name, text in texts.items():
        (folder / name).write_bytes(text)
        told["checksums"][name], told["sizes"][name] = checksum(folder, name), len(text)
    (folder / "manifest.json").write_text(manifest_text(told))
    found = verify(folder, allow_seeded=True).checks[0]
    assert found.holds and found.remarks == tuple(f"{name}: does not name the face consistent" for name in texts)


@pytest.mark.parametrize(
    "problem", [KeyboardInterrupt(), OSError(errno.ENOSPC, "x"), OSError(errno.EIO, "x")], ids=repr
)
@pytest.mark.parametrize("where", ["write_face", "checksums", "replace_file", "sync"])
def test_a_failure_changes_nothing(folder, monkeypatch, problem, where):
    add_face(folder, face())
    before = {name: (folder / name).stat() for name in names(folder) if (folder / name).is_file()}

    def fail(*arguments, **options):
        raise problem

    monkeypatch.setattr(change, where, fail)
    with pytest.raises((KeyboardInterrupt, HushcubeError)) as caught:
        add_face(folder, face(shift=1))
    if isinstance(problem, OSError):
        assert f"{str(folder)!r} failed" in str(caught.value) and "the release is unchanged" in str(caught.value)
    after = {name: (folder / name).stat() for name in names(folder) if (folder / name).is_file()}
    assert after.keys() == before.keys()
    assert all((after[n].st_ino, after[n].st_mtime_ns) == (before[n].st_ino, before[n].st_mtime_ns) for n in before)


def test_old_files_stay_until_the_disk_has_confirmed_the_new(folder, monkeypatch):
    add_face(folder, face())
    old = names(folder / "faces/consistent")
    confirm = durable.sync_folder

    def sync_folder(path):
        if path == folder:
            raise OSError(errno.EIO, "x")
        confirm(path)

    monkeypatch.setattr(durable, "sync_folder", sync_folder)
    with pytest.raises(HushcubeError, match="it is in its place, but the disk has not confirmed"):
        add_face(folder, face(shift=1))
    assert names(folder / "faces/consistent") == old and places(folder) == {"consistent": "faces/consistent-2"}
    assert open_bundle(folder).table("a0", face="consistent").values[0] == 1
    monkeypatch.undo()
    add_face(folder, face("nonnegative", 1))  # which finds what the other left
    assert set(places(folder).values()) == {"faces/consistent-2", "faces/nonnegative"} and holds(folder)


def test_a_reader_that_meets_a_replacement_reads_the_new(folder, monkeypatch):
    add_face(folder, face())
    check, calls = bundle.check_files, []

    def meanwhile(place, listed):
        if not calls:
            calls.append(add_face(folder, face(shift=1)))
        check(place, listed)

    monkeypatch.setattr(bundle, "check_files", meanwhile)
    opened = open_bundle(folder)
    assert calls and opened.table("a0", face="consistent").values[0] == 1


def test_show_meets_a_replacement_between_opening_and_reading(folder, monkeypatch, capsys):
    add_face(folder, face())
    really, calls = hc.open, []

    def opened(place, **options):
        release = really(place, **options)
        if not calls:
            calls.append(add_face(folder, face(shift=7)))
        return release

    monkeypatch.setattr(hc, "open", opened)
    assert run(["show", str(folder), "a0", "--face", "consistent", "--json"]) == 0
    assert [cell["value"] for cell in json.loads(capsys.readouterr().out)["cells"]] == [7, 7]


@pytest.mark.parametrize("place", ["", "tables", "faces", "faces/../tables", "/tmp", "../other", None, 3])
def test_a_face_has_a_folder_of_its_own(folder, place):
    """What a manifest calls the folder of a face is removed when the face is replaced."""
    add_face(folder, face())
    told = manifest(folder)
    told["faces"]["consistent"]["folder"] = place
    (folder / "manifest.json").write_text(manifest_text(told))
    before = names(folder)
    with pytest.raises(BundleError, match="does not fit the plan and the tables"):
        open_bundle(folder)
    with pytest.raises(BundleError):
        add_face(folder, face(shift=1))
    assert not verify(folder, allow_seeded=True).holds and names(folder) == before


# ---------------------------------------------------------------------------------------------------------- the lock


def test_another_process_is_waited_for_and_then_named(folder, monkeypatch):
    context = multiprocessing.get_context("fork")
    begun, end = context.Event(), context.Event()

    def hold():
        with changing(folder):
            begun.set()
            end.wait(60)

    other = context.Process(target=hold)
    other.start()
    assert begun.wait(60)
    monkeypatch.setattr(change, "_PATIENCE", 0.1)
    with pytest.raises(BundleError, match=rf"is being changed by process {other.pid} on '.+' since '20.+'\. Fix: "):
        add_face(folder, face())
    assert places(folder) == {}
    os.kill(other.pid, signal.SIGKILL)
    other.join()
    assert (folder / LOCK).exists()
    add_face(folder, face())
    assert holds(folder) and set(places(folder)) == {"consistent"}


@pytest.mark.parametrize("when", ["write_face", "replace_file"])
def test_what_a_killed_process_left_is_removed_by_the_next(folder, monkeypatch, when):
    add_face(folder, face())

    def die(*arguments, **options):
        if when == "write_face":
            writing.write_face(*arguments, **options)
        else:
            durable.replace_file(*arguments, **options)
        os.kill(os.getpid(), signal.SIGKILL)

    def killed():
        monkeypatch.setattr(change, when, die)
        add_face(folder, face(shift=1))

    other = multiprocessing.get_context("fork").Process(target=killed)
    other.start()
    other.join()
    assert other.exitcode == -signal.SIGKILL
    assert {path.name for path in (folder / "faces").iterdir()} == {"consistent", "consistent-2"}
    new = when == "replace_file"
    assert open_bundle(folder).table("a0", face="consistent").values[0] == (1 if new else 0)
    add_face(folder, face("nonnegative", 1))
    assert set(places(folder).values()) == {"faces/nonnegative", "faces/consistent-2" if new else "faces/consistent"}
    assert holds(folder)


@pytest.mark.parametrize("record", ["", "[]", "{", '{"makes": "../other"}', '{"makes": "faces/consistent/.."}'])
def test_a_strange_record_does_no_harm(folder, record):
    other = folder.parent / "other" / "tables"
    other.mkdir(parents=True)
    (other / "precious.parquet").touch()
    (folder / LOCK).write_text(record)
    add_face(folder, face())
    assert (other / "precious.parquet").exists() and holds(folder)


def test_faces_added_at_once_are_all_there(folder):
    context = multiprocessing.get_context("fork")
    names = ["consistent", "nonnegative", "face-valid"]
    for shift in range(3):
        adding = [context.Process(target=add_face, args=(folder, face(name, shift))) for name in names]
        for process in adding:
            process.start()
        for process in adding:
            process.join()
        assert [process.exitcode for process in adding] == [0, 0, 0]
        assert set(open_bundle(folder).faces) == set(names) and holds(folder)


# --------------------------------------------------------------------------------------- what cannot get a face there


def test_a_cube_gets_faces_of_its_counts(tmp_path):
    schema = Schema((Attribute(name="sex", values=("F", "M")),), measures=(Measure(name="pay", bounds=(0, 10)),))
    asked = plan(schema, "1-way", measures="sum(pay)", epsilon=1, neighbours="add-remove")
    cube = tmp_path / "cube"
    release(asked, pa.table({"sex": ["F", "M", "M"], "pay": [1, 2, 3]}), out=cube)
    before = {path: path.read_bytes() for path in cube.glob("tables/*")}
    assert run(["recover", str(cube)]) == 0 and run(["recover", str(cube), "--out", str(tmp_path / "new")]) == 0
    assert {path: path.read_bytes() for path in cube.glob("tables/*")} == before
    for folder in (cube, tmp_path / "new"):
        assert run(["verify", str(folder)]) == 0
        opened = open_bundle(folder)
        assert (opened.table("sex", face="face-valid").values >= 0).all()
        with pytest.raises(QueryError, match="has no other face than the unbiased one"):
            opened.table("sex", "sum(pay)", face="face-valid")


@pytest.fixture
def cube(tmp_path):
    """As format 3 had them."""
    return shutil.copytree(EARLIER / "cube-3", tmp_path / "cube")


def test_an_earlier_cube_and_its_parts_stay_as_they_are(cube, tmp_path, capsys):
    """Following the advice leads to a release of its own, and the cube stays whole."""
    assert run(["recover", str(cube)]) == 2
    told = capsys.readouterr().err
    assert "has format 3, of an earlier version" in told
    assert told.split("`")[1].split() == ["hushcube", "recover", str(cube), "--out", "NEW"]
    assert run(["recover", str(cube), "--out", str(tmp_path / "whole")]) == 0
    capsys.readouterr()
    advice = ["hushcube", "recover", f"{cube}/parts/count", "--out", "NEW"]
    assert run(["recover", f"{cube}/parts/count"]) == 2
    told = capsys.readouterr().err
    assert "is a part of a cube" in told and told.split("`")[1].split() == advice
    link = tmp_path / "link"
    link.symlink_to(cube / "parts" / "count")
    assert run(["recover", str(link)]) == 2
    assert run([*advice[1:-1], str(tmp_path / "own")]) == 0
    for folder in (cube, tmp_path / "own", tmp_path / "whole"):
        assert run(["verify", str(folder), "--allow-seeded"]) == 0 and run(["show", str(folder)]) == 0
    whole = open_bundle(tmp_path / "whole")
    assert whole.plan.digest == open_bundle(cube).plan.digest and set(whole.faces) == {"face-valid"}
    for word in ("count", "sum(days)", "avg(days)", "sum(cost)"):
        found, expected = whole.table("ward*age", word).values, open_bundle(cube).table("ward*age", word).values
        assert np.allclose(found, expected, rtol=1e-12, equal_nan=True)


def test_a_release_that_cannot_be_written(folder, monkeypatch):
    if os.access("/proc", os.W_OK) and not Path("/proc/self").is_dir():
        pytest.skip("there is no /proc")
    monkeypatch.setattr(change, "check_writable", lambda place, field: durable.check_writable(Path("/proc"), field))
    with pytest.raises(OutputError, match="'/proc' cannot be written"):
        add_face(folder, face())
    add_face(folder, face(), out=folder.parent / "new")
    assert holds(folder.parent / "new") and places(folder) == {}


@pytest.fixture
def earlier(folder):
    """A release as format 2 had it: the promise of its face stands in PRIVACY.md, and the manifest names no folder."""
    add_face(folder, face())
    opened = open_bundle(folder)
    text = privacy_statement(opened.plan, private=opened.private, faces=opened.faces.values())
    assert "The face `consistent` (`faces/consistent`) holds" in text
    (folder / "PRIVACY.md").write_text(text)
    (folder / "plan.json").write_text(opened.plan.count.to_json())
    (folder / "measurements" / "count.parquet").rename(folder / "measurements" / "values.parquet")
    (folder / "faces/consistent/PRIVACY.md").unlink()
    told = {k: v for k, v in manifest(folder).items() if k not in ("columns", "parts", "measures", "sizes", "digest")}
    told |= {"format": 2, **plan_fields(opened.plan, 2)}
    del told["faces"]["consistent"]["folder"], told["checksums"]["faces/consistent/PRIVACY.md"]
    told["checksums"]["measurements/values.parquet"] = told["checksums"].pop("measurements/count.parquet")
    tables = [entry["file"] for entry in told["tables"] if entry["face"] == "unbiased"]
    for name in tables:
        pq.write_table(pq.read_table(folder / name).drop_columns(["quality"]), folder / name)
    for name in ("PRIVACY.md", "plan.json", *tables):
        told["checksums"][name] = checksum(folder, name)
    (folder / "manifest.json").write_text(json.dumps(told))
    return folder


def test_earlier_formats_are_read_and_get_faces_in_a_new_folder(earlier, tmp_path):
    assert holds(earlier) and open_bundle(earlier).table("a0", face="consistent").values[0] == 0
    before = names(earlier)
    with pytest.raises(BundleError, match="has format 2, of an earlier version"):
        add_face(earlier, face("nonnegative", 1))
    assert names(earlier) == before
    add_face(earlier, face("nonnegative", 1), out=tmp_path / "new")
    assert holds(tmp_path / "new") and manifest(tmp_path / "new")["format"] == 7
    assert set(places(tmp_path / "new")) == {"consistent", "nonnegative"}
    again = json.loads((earlier / "manifest.json").read_text())
    again["format"], again["faces"]["consistent"]["facts"] = 2, {"totals": [{"count": 3}]}
    (earlier / "manifest.json").write_text(json.dumps(again))
    assert not verify(earlier, allow_seeded=True).holds, "its statement says nothing of that fact"


def test_a_licence_and_a_repository_survive_recover(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (folder / "LICENCE.txt").write_text("x")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    assert run(["recover", "release"]) == 0
    assert (folder / "LICENCE.txt").exists() and (folder / ".git" / "HEAD").exists()
    capsys.readouterr()
    assert run(["verify", "release", "--allow-seeded"]) == 0
    told = capsys.readouterr().out
    assert "files: LICENCE.txt: is not part of the release" in told and "files: .git/: is not part" in told
