"""Faces on the command line: release --face, recover, show --face, synth; and what is refused."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import hushcube as hc
from cli.desk import ASKED, BUDGET, listing
from hushcube.cli import run
from hushcube.cli.recover import describe

FACTS = """\
zeros:
  - {sex: Male, age: [0, 1]}
totals:
  - {count: 100}
  - {where: {sex: Female}, count: 50}
"""


@pytest.fixture
def refused(desk, drawn, capsys):
    """Run a command that must be refused: nothing is written, nothing is spent."""

    def check(arguments, *wanted, code=2):
        before = listing(desk)
        assert run(arguments) == code
        told = capsys.readouterr().err
        assert listing(desk) == before
        assert drawn == []
        assert "Fix:" in told and "Traceback" not in told
        for words in wanted:
            assert words in told
        return told

    return check


def manifest(folder):
    return json.loads((Path(folder) / "manifest.json").read_text())


def entries(folder, face):
    return [entry for entry in manifest(folder)["tables"] if entry["face"] == face]


def column(folder, entry, name="value"):
    return pq.read_table(Path(folder) / entry["file"]).column(name).to_numpy()


def test_release_with_two_faces(done):
    out, _ = done(
        "release",
        *ASKED,
        *BUDGET,
        "--data",
        "people.csv",
        "--out",
        "new",
        "--face",
        "integral",
        "--strategy",
        "workload",
    )
    assert "and the face face-valid" in out and "synthetic people" in out
    assert {entry["face"] for entry in manifest("new")["tables"]} == {"unbiased", "face-valid"}
    assert len(entries("new", "unbiased")) == len(entries("new", "face-valid")) == 11
    for entry in entries("new", "face-valid"):
        values = column("new", entry)
        assert values.dtype == np.int64 and (values >= 0).all()
    assert "made up and stand for nobody" in (Path("new") / "faces/face-valid/PRIVACY.md").read_text()
    assert run(["verify", "new"]) == 0


@pytest.mark.parametrize(
    ("arguments", "face"),
    [
        ([], "face-valid"),
        (["--face", "integral"], "face-valid"),
        (["--face", "integral:method=local"], "face-valid"),
        (["--face", "nonnegative"], "nonnegative"),
        (["--face", "nonnegative:method=local"], "nonnegative"),
        (["--face", "nonnegative:norm=linf"], "nonnegative"),
        (["--face", "consistent:norm=l1"], "consistent"),
        (["--face", "consistent:norm=linf,weights=deviation"], "consistent"),
    ],
)
def test_recover_in_place_keeps_what_was_there(desk, document, arguments, face):
    before = {p.relative_to("published"): p.read_bytes() for p in Path("published/tables").iterdir()}
    measured = Path("published/measurements/count.parquet").read_bytes()
    told = document("recover", "published", *arguments)
    assert told["face"] == face and told["out"] == "published"
    assert {p.relative_to("published"): p.read_bytes() for p in Path("published/tables").iterdir()} == before
    assert Path("published/measurements/count.parquet").read_bytes() == measured
    assert manifest("published")["faces"].keys() == {face}
    assert run(["verify", "published"]) == 0
    assert not [p for p in desk.iterdir() if p.name.startswith(".hushcube")]


def test_recover_to_another_folder_leaves_the_first_alone(desk, done):
    before = {p: p.read_bytes() for p in Path("published").rglob("*") if p.is_file()}
    done("recover", "published", "--out", "other")
    assert {p: p.read_bytes() for p in Path("published").rglob("*") if p.is_file()} == before
    assert "face-valid" in manifest("other")["faces"]
    assert run(["verify", "other"]) == 0


def test_faces_gather_and_are_replaced(desk, done):
    done("recover", "published")
    done("recover", "published", "--face", "nonnegative:method=local")
    first = manifest("published")["faces"]
    assert first.keys() == {"face-valid", "nonnegative"}
    done("recover", "published", "--face", "nonnegative:method=full-table")
    second = manifest("published")["faces"]
    assert second["face-valid"] == first["face-valid"]
    assert second["nonnegative"]["report"]["found_by"] == "full-table"
    assert first["nonnegative"]["report"]["found_by"] == "local"
    assert run(["verify", "published"]) == 0


def test_show_a_face(desk, done, document):
    done("recover", "published")
    told = document("show", "published", "sex*age", "--face", "face-valid")
    assert told["face"] == "face-valid"
    values = [cell["value"] for cell in told["cells"]]
    assert values == [int(v) for v in values] and min(values) >= 0
    total = document("show", "published", "total", "--face", "face-valid")["cells"][0]["value"]
    assert sum(values) == total
    assert told == document("show", "published", "sex*age", "--face", "integral"), "by the word that makes it"
    out, _ = done("show", "published", "sex*age", "--face", "face-valid")
    assert "face-valid" in out and "unbiased margin" in out
    assert told["cells"][0].keys() == {"sex", "age", "value", "std_error"}
    listed = document("show", "published")
    assert {entry["face"] for entry in listed["tables"]} == {"unbiased", "face-valid"}
    assert listed["faces"]["face-valid"]["asked"]["kind"] == "integral"
    assert {e["face"] for e in document("show", "published", "--face", "unbiased")["tables"]} == {"unbiased"}


def test_public_facts_hold_and_are_told(desk, done):
    Path("facts.yaml").write_text(FACTS)
    for given in ("", "method=local,", "norm=l1,"):
        done("recover", "published", "--face", f"integral:{given}facts=facts.yaml")
        release = hc.open("published")
        table = release.table("sex*age", face="face-valid").values
        assert table[1, :2].tolist() == [0, 0]
        assert table[0].sum() == 50 and table.sum() == 100
        folder = manifest("published")["faces"]["face-valid"]["folder"]
        statement = Path("published", folder, "PRIVACY.md").read_text()
        assert "No person has sex = Male and age = 0." in statement
        assert "The number of people with sex = Female is 50." in statement
        assert run(["verify", "published"]) == 0


def test_synthetic_people_are_those_of_the_face(desk, done, document):
    done("recover", "published")
    told = document("synth", "published", "--out", "made.parquet")
    people = pq.read_table("made.parquet")
    assert people.num_rows == told["rows"]
    assert people.equals(pq.read_table("published/faces/face-valid/people.parquet"))
    done("synth", "published", "--rows", "37", "--out", "made.csv")
    assert pyarrow.csv.read_csv("made.csv").num_rows == 37


@pytest.mark.parametrize("name", ["made.parquet", "made.csv"])
def test_synthetic_people_are_there_whole_or_not_at_all(desk, monkeypatch, capsys, name):
    """A full disk, an interruption, and a file that someone else makes meanwhile."""
    import hushcube.verbs.releasing as people

    before = listing(desk)
    write = people.write_people

    def fail_with(problem):
        def fail(codes, schema, path, *rest, **more):
            write(codes, schema, path, *rest, **more)
            path.write_bytes(path.read_bytes()[:100])
            raise problem

        return fail

    for problem, code, words in (
        (OSError(28, "x"), 1, f"writing {name!r} failed (no space left on device); nothing was published"),
        (OSError(30, "x"), 2, f"{name!r} cannot be written (read-only file system); nothing was published"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ):
        monkeypatch.setattr(people, "write_people", fail_with(problem))
        assert run(["synth", "published", "--out", name]) == code
        assert words in capsys.readouterr().err and listing(desk) == before

    def someone_else(codes, schema, path, *rest, **more):
        Path(name).write_text("theirs")

    monkeypatch.setattr(people, "write_people", someone_else)
    assert run(["synth", "published", "--out", name]) == 2
    assert f"another process made {name!r} meanwhile; nothing was published" in capsys.readouterr().err
    assert Path(name).read_text() == "theirs"


def test_synthetic_people_without_a_face(desk, done):
    done("synth", "published", "--out", "made.csv")
    names = pyarrow.csv.read_csv("made.csv").column_names
    assert names == ["sex", "age", "income", "region"]
    assert manifest("published")["faces"] == {}


# ------------------------------------------------------------------------------------------------------------ refused


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--face", "pretty"], "--face: 'pretty' is unknown. Fix: choose consistent, nonnegative, integral"),
        (["--face", "integral:norm=l3"], "--face integral:norm: 'l3' is unknown. Fix: choose l2, l1 or linf"),
        (["--face", "integral:method=magic"], "--face integral:method: 'magic' is unknown"),
        (["--face", "integral:weights=many"], "--face integral:weights: 'many' is unknown"),
        (["--face", "integral:minimise=none"], "--face integral:minimise: 'none' is unknown"),
        (["--face", "nonnegative:probability=1"], "--face nonnegative:probability: is not between 0 and 1"),
        (["--face", "nonnegative:probability=x"], "--face nonnegative:probability: is not between 0 and 1"),
        (["--face", "integral:colour=red"], "--face: integral has no option 'colour'. Fix: norm=l2|l1|linf: the dist"),
        (["--face", "integral:norm"], "--face: integral has no option 'norm'"),
        (["--face", "integral:norm=l1,norm=l2"], "--face: norm is given twice"),
        (["--time-limit", "0"], "--time-limit: is not above 0"),
        (["--time-limit", "nan"], "--time-limit: is not above 0"),
        (["--face", "consistent:method=local"], "--face: consistent has no option 'method'"),
        (
            ["--face", "integral:norm=l1,method=full-table"],
            "--face integral:norm: l1 is found by its own linear program",
        ),
        (["--face", "integral:method=shift"], "--face integral:method: shift gives no whole numbers"),
        (["--face", "nonnegative:method=shift"], "strategy: shift cannot be used here"),
        (["--face", "integral:facts=none.yaml"], "--face integral:facts: the file 'none.yaml' cannot be read"),
        (["--out", "published"], "out: the folder exists already"),
    ],
)
def test_recover_refuses(refused, arguments, words):
    refused(["recover", "published", *arguments], words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("totals:\n  - {count: 10}\n  - {where: {sex: Female}, count: 12}\n", "contradict each other"),
        ("zeros:\n  - {sex: Female}\ntotals:\n  - {where: {sex: Female}, count: 3}\n", "facts"),
        ("zeros:\n  - {colour: red}\n", "facts, zeros[1]"),
        ("totals:\n  - {count: -1}\n", "facts, totals[1]"),
        ("[1, 2", "facts"),
    ],
)
def test_facts_that_cannot_be_are_refused(desk, refused, text, words):
    Path("facts.yaml").write_text(text)
    refused(["recover", "published", "--face", "integral:facts=facts.yaml"], words)
    refused(
        ["release", *ASKED, *BUDGET, "--data", "people.csv", "--out", "new", "--face", "integral:facts=facts.yaml"],
        words,
    )


def test_release_refuses_a_time_limit_without_a_face(refused):
    asked = ["release", *ASKED, *BUDGET, "--data", "people.csv", "--out", "new", "--time-limit", "60"]
    refused(asked, "--time-limit: limits the making of a face, and none is asked for")


def test_a_release_that_is_none_is_refused(desk, refused):
    Path("empty").mkdir()
    for verb in (["recover"], ["synth", "--out", "x.csv"], ["verify"]):
        refused([*verb, "empty"], "is not a release")


def test_a_tampered_bundle_is_refused_and_untouched(desk, refused):
    path = next(Path("published/tables").iterdir())
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    refused(["recover", "published"], "was changed after the release")
    refused(["synth", "published", "--out", "x.csv"], "was changed after the release")
    measured = Path("published/measurements/count.parquet")
    shutil.copy(path, measured)
    refused(["recover", "published"], "was changed after the release")


@pytest.mark.parametrize("face", ["integral", "nonnegative", "integral:method=local", "nonnegative:method=local"])
def test_a_time_limit_ends_with_the_best_face_so_far(desk, document, face):
    made = document("recover", "published", "--face", face, "--time-limit", "1e-9")
    assert made["report"]["stopped"] == "time"
    assert made["report"]["certificate"]["share_of_noise"] > 0
    assert run(["verify", "published"]) == 0


def test_a_bound_that_proves_nothing_is_not_stated():
    """Firm guesses make it large where cells are hardly off: then it is said how far they were moved."""
    schema = hc.Schema((hc.Attribute(name="a", codes=2),))
    report = {"found_by": "entropy", "certificate": {"share_of_noise": 0.25}, "rms_from_fit": 0.01}
    assert describe(report, schema) == "found by entropy, proved within 25% of the noise from the nearest"
    report["certificate"] = {"share_of_noise": 137.0}
    assert describe(report, schema) == "found by entropy, moved by 0.01 a cell to add up without negative cells"


def test_recover_says_that_the_time_limit_ended_it(desk, done):
    assert "the best within the time limit" in done("recover", "published", "--time-limit", "1e-9")[0]
    assert "the best within the time limit" not in done("recover", "published", "--time-limit", "600")[0]


def test_people_are_made_in_no_time(desk, document):
    people = document("synth", "published", "--out", "x.csv", "--time-limit", "1e-9")
    assert people["report"]["stopped"] == "time" and people["rows"] > 0


def test_a_time_limit_with_nothing_valid_leaves_everything_as_it_was(desk, refused):
    refused(["recover", "published", "--face", "integral:norm=l1", "--time-limit", "1e-9"], "--time-limit:", code=1)
    many = ["--rows", "99999999", "--time-limit", "3"]  # refused at once: nobody makes so many in that time
    refused(["synth", "published", "--out", "x.csv", *many], "--time-limit: synthetic people", code=1)


def test_noise_that_counts_billions_of_people_makes_none(refused):
    asked = [*ASKED, "--epsilon", "1e-9", "--neighbours", "add-remove", "--data", "people.csv", "--out", "new"]
    words = "synthetic people are more than the 100,000,000 that can be held"
    refused(["release", *asked, "--face", "integral"], "--face: ", words, "ask for nonnegative")
    facts = Path("some.yaml")  # they do not say how many people there are in all
    facts.write_text("totals: [{where: {sex: Female}, count: 1}]")
    refused(["release", *asked, "--face", "integral:facts=some.yaml"], "--face: ", words, "ask for nonnegative")


def test_the_advice_to_add_a_face_names_it_as_it_was_asked_for(desk, capsys, monkeypatch):
    from hushcube.errors import TimeLimitReached

    def late(*_arguments, **_options):
        raise TimeLimitReached(1.0, "local")

    monkeypatch.setattr("hushcube.faces.face.make_face", late)
    Path("my facts.yaml").write_text("totals: [{where: {sex: Female}, count: 1}]")
    word = "integral:facts=my facts.yaml"
    run(["release", *ASKED, *BUDGET, "--data", "people.csv", "--out", "new", "--face", word])
    assert f"`hushcube recover new --face '{word}'`" in capsys.readouterr().err


def test_a_face_that_fails_after_measuring_leaves_the_unbiased_release(desk, capsys, monkeypatch):
    from hushcube.errors import TimeLimitReached

    def late(*_arguments, **_options):
        raise TimeLimitReached(1.0, "local")

    monkeypatch.setattr("hushcube.faces.face.make_face", late)
    code = run(["release", *ASKED, *BUDGET, "--data", "people.csv", "--out", "new", "--face", "integral"])
    told = capsys.readouterr().err
    assert code == 1 and "the unbiased release is published in new" in told
    assert run(["verify", "new"]) == 0
    assert manifest("new")["faces"] == {}


def test_an_interrupted_recovery_changes_nothing(desk, monkeypatch):
    from hushcube.bundle import writing as bundle

    def interrupted(*_arguments, **_options):
        raise KeyboardInterrupt

    before = listing(desk)
    monkeypatch.setattr(bundle, "write_tables", interrupted)
    assert run(["recover", "published"]) == 130
    assert listing(desk) == before


def test_a_failed_replacement_leaves_the_release_as_it_was(desk, monkeypatch, capsys):
    before = listing(desk)

    def fail(source, target):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "replace", fail)
    assert run(["recover", "published"]) == 1
    assert "'published/manifest.json' failed (input/output error); it is unchanged" in capsys.readouterr().err
    assert listing(desk) == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--out", "x.txt"], "--out: 'x.txt' is not a kind of file"),
        (["--out", "people.csv"], "--out: the file exists already"),
        ([], "--out: is not given"),
        (["--rows", "0", "--out", "x.csv"], "--rows: '0' is not a number of people"),
        (["--rows", "many", "--out", "x.csv"], "--rows: 'many' is not a number of people"),
        (
            ["--rows", "9" * 5000, "--out", "x.csv"],
            "is not a number of people. Fix: give a whole number up to 100,000,000",
        ),
    ],
)
def test_synth_refuses(refused, arguments, words):
    refused(["synth", "published", *arguments], words)


def test_synth_needs_people(refused):
    refused(["synth", "published", "--face", "nonnegative", "--out", "x.csv"], "--face: nonnegative has no people")


def test_show_refuses_a_face_that_is_not_there(refused):
    refused(["show", "published", "sex*age", "--face", "face-valid"], "face: this release has no face 'face-valid'")
    refused(["show", "published", "--face", "pretty"], "face: this release has no face 'pretty'")


def test_a_missing_solver_is_noticed_before_anything_is_measured(desk, drawn, capsys, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "highspy", None)
    before = listing(desk)
    asked = ["release", *ASKED, *BUDGET, "--data", "people.csv", "--out", "new", "--face", "integral:norm=l1"]
    assert run(asked) == 1
    assert "pip install 'hushcube[programs]'" in capsys.readouterr().err
    assert listing(desk) == before and drawn == []


def test_a_number_of_people_does_not_go_with_facts(desk, refused):
    Path("facts.yaml").write_text(FACTS)
    refused(
        ["synth", "published", "--rows", "9", "--face", "integral:facts=facts.yaml", "--out", "x.csv"],
        "--rows: cannot be combined with",
    )


SELECTIVE = ["--rho", "1", "--neighbours", "add-remove", "--strategy", "selective"]


def test_an_earlier_edition(desk, done):
    done("release", *ASKED, *BUDGET, "--data", "people.csv", "--out", "before", "--face", "integral")
    out, _ = done("plan", *ASKED, *SELECTIVE, "--like", "before", "--out", "like.json")
    assert "publishes what these files hold: people.yaml, before" in out
    shutil.move("before", "moved")
    done("release", "like.json", "--data", "people.csv", "--out", "after", "--face", "integral")
    assert "Everything holds" in done("verify", "after")[0]
    assert "guessed from an earlier edition" in Path("after/PRIVACY.md").read_text()
    out, _ = done("recover", "published", "--face", "nonnegative:method=entropy", "--like", "moved", "--json")
    told = json.loads(out)["like"]
    assert told["plan_digest"] == manifest("moved")["plan_digest"] and "tenths" not in told
    assert manifest("published")["faces"]["nonnegative"]["like"]["tenths"]
    assert "Everything holds" in done("verify", "published")[0]


def test_what_is_no_earlier_edition_is_refused(desk, refused):
    refused(["plan", *ASKED, *SELECTIVE, "--like", "nowhere"], "'nowhere'", "is not a release")
    refused(["plan", *ASKED, *BUDGET, "--like", "published"], "--like", "only selective plans")
    refused(
        ["release", "plan.json", "--like", "published", "--data", "people.csv", "--out", "x"], "--like", "plan file"
    )
    refused(["recover", "published", "--like", "published"], "--like", "guesses nothing")
    word = "integral:method=entropy,like=published"
    refused(["recover", "published", "--face", word, "--like", "published"], "--like", "twice")
    Path("people.yaml").write_text(Path("people.yaml").read_text().replace("range: [0, 9]", "range: [0, 8]"))
    before = ["plan", *ASKED, *SELECTIVE, "--like", "published"]
    refused(before, "--like", "the attribute 'age' has other values than here")
