"""The verifier, tested with broken releases: each is a good one with one change, and the right checks must find it."""

import json
import re
import shutil
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers import MemoryEngine, every_plan, label, make_plan, make_request, random_codes, released
from hushcube import plan, release
from hushcube.bundle import table_files
from hushcube.bundle.change import add_face
from hushcube.bundle.checks.cells import count_cells
from hushcube.bundle.folder import read_people, table_entries
from hushcube.bundle.manifest import manifest_text, seal
from hushcube.bundle.part import FormsFromCells, PublishedFace
from hushcube.bundle.reading import checksum
from hushcube.bundle.verify import verify
from hushcube.bundle.writing import write, write_people
from hushcube.errors import BundleError
from hushcube.faces.people import PeopleTables
from hushcube.model.facts import Facts
from hushcube.model.queries import query_table
from hushcube.private.measure import measure
from hushcube.private.noise import SeededEntropy
from hushcube.samples import TITANIC, titanic
from hushcube.strategies import Matrix
from manifests import manifest_of

PEOPLE = "faces/face-valid/people.parquet"
CODES = random_codes(TITANIC.sizes, 300, seed=3)
CODES = CODES[~((CODES[:, 0] == 3) & (CODES[:, 2] == 0))]  # no child is crew
FACTS = {
    "zeros": [{"class": "crew", "age": "child"}],
    "totals": [{"count": len(CODES)}, {"where": {"sex": "male"}, "count": int((CODES[:, 1] == 1).sum())}],
}


class Scaled:
    """Counts times a number: they add up, and are not whole."""

    def __init__(self, codes, sizes, factor):
        self.tables = lambda rows, shape: PeopleTables(codes, sizes).tables(rows, shape) * factor


def faces(codes, sizes, facts=None):
    description = {"asked": {}, "report": {}, "facts": facts, "std_error": "of the unbiased estimate"}
    plain = {**description, "facts": None}
    yield PublishedFace("consistent", plain, FormsFromCells(Scaled(codes, sizes, -0.3)))
    yield PublishedFace("nonnegative", description, FormsFromCells(Scaled(codes, sizes, 1.0)))
    yield PublishedFace("face-valid", description, FormsFromCells(PeopleTables(codes, sizes)), lambda: codes)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    folder = tmp_path_factory.mktemp("verify") / "good"
    asked = plan(TITANIC, ["<=2-way", "prefix(class)*sex"], epsilon=1, neighbours="add-remove", strategy="workload")
    release(asked, titanic(), seed=1, out=folder)
    for face in faces(CODES, TITANIC.sizes, FACTS):
        add_face(folder, face)
    return folder


@pytest.fixture
def bundle(good, tmp_path):
    return shutil.copytree(good, tmp_path / "bundle")


def failed(folder):
    return {check.name: list(check.problems) for check in verify(folder, allow_seeded=True).checks if not check.holds}


def write_manifest(folder, manifest):
    (folder / "manifest.json").write_text(manifest_text(manifest))


def repair(folder):
    """What a careful forger would do: every checksum and size again."""
    manifest = manifest_of(folder)
    manifest["checksums"] = {name: checksum(folder, name) for name in manifest["checksums"] if (folder / name).exists()}
    (folder / "manifest.json").write_bytes(seal(manifest, folder))


def find(folder, face, *attributes, form=None):
    """The file of a table."""
    entries = manifest_of(folder)["tables"]
    wanted = (face, list(attributes), form)
    return next(e["file"] for e in entries if (e["face"], e["attributes"], e.get("form")) == wanted)


def change(folder, name, column, row, value, kind=None):
    """Set one number of one file."""
    table = pq.read_table(folder / name)
    at = table.column_names.index(column)
    numbers = table.column(at).to_pylist()
    numbers[row] = value(numbers[row]) if callable(value) else value
    pq.write_table(table.set_column(at, column, pa.array(numbers, kind or table.schema.types[at])), folder / name)


def swap(folder, one, other):
    first, second = (folder / one).read_bytes(), (folder / other).read_bytes()
    (folder / one).write_bytes(second)
    (folder / other).write_bytes(first)


# ------------------------------------------------------------------------------------------------ releases that hold


def test_a_good_release_holds(good):
    verdict = verify(good, allow_seeded=True)
    assert verdict.holds, [c for c in verdict.checks if not c.holds]
    assert all(check.checked for check in verdict.checks)
    names = [check.name for check in verdict.checks]
    assert names[:5] == ["files", "privacy", "measurements", "errors", "labels"]
    assert [n for n in names if n.startswith("unbiased")] == ["unbiased: cells", "unbiased: sums", "unbiased: forms"]
    assert [n for n in names if n.startswith("face-valid")][2:] == [
        "face-valid: forms",
        "face-valid: people",
        "face-valid: facts",
    ]
    labels = next(check for check in verdict.checks if check.name == "labels")
    assert labels.checked == len(manifest_of(good)["tables"])


@pytest.mark.slow
@pytest.mark.parametrize(("most", "law"), [(1000, {"rho": 20}), (3, {"epsilon": 1, "neighbours": "replace-one"})])
def test_every_kind_of_plan_holds(most, law, tmp_path, monkeypatch):
    monkeypatch.setattr(table_files, "MOST_FILES", most)  # one file each, or packs
    request = make_request((2, 3, 4), ["<=1-way", "a0*a1", "a0*a2"], **law)
    for number, p in enumerate(every_plan(request, recoveries=("gls", "none"))):
        if p.budget_rule == "uniform":
            continue
        engine = MemoryEngine(random_codes(p.schema.sizes, 200))
        write(released(p, measure(p, engine, entropy=SeededEntropy(5))), tmp_path / str(number))
        verdict = verify(tmp_path / str(number), allow_seeded=True)
        assert verdict.holds, (label(p), [c for c in verdict.checks if not c.holds])
        assert any(c.name == "unbiased: sums" for c in verdict.checks) == p.is_consistent


def test_tables_of_different_sizes_without_their_subsets_hold(tmp_path):
    sizes = (2, 3, 4, 2, 3)
    request = make_request(sizes, ["a0*a1*a2", "a1*a2*a3*a4", "a0*a4", "a3"], epsilon=1)
    p = make_plan(request, "workload")
    codes = random_codes(sizes, 50)
    write(released(p, measure(p, MemoryEngine(codes), entropy=SeededEntropy(5))), tmp_path / "r")
    for face in faces(codes, sizes):
        add_face(tmp_path / "r", face)
    assert verify(tmp_path / "r", allow_seeded=True).holds
    name = find(tmp_path / "r", "nonnegative", "a0", "a4")
    change(tmp_path / "r", name, "value", 0, lambda x: x + 0.5)
    repair(tmp_path / "r")
    (problems,) = failed(tmp_path / "r").values()
    assert {part for problem in problems for part in problem.split(":")[:1]} >= {name}
    assert any("does not agree with" in problem and "on a0" in problem for problem in problems)


# ------------------------------------------------------------------------------------------------- broken releases


def changed_cell(folder):
    change(folder, find(folder, "unbiased", "class", "sex"), "value", 1, lambda x: x + 0.25)
    return "tables/", "class = 1st and sex = male"


def changed_consistent_cell(folder):
    name = find(folder, "consistent", "class", "age")
    change(folder, name, "value", 1, lambda x: x + 0.25)
    return name, "does not add up to"


def changed_total(folder):
    name = find(folder, "nonnegative")
    change(folder, name, "value", 0, lambda x: x + 1)
    return name, "for the total"


def negative_cell(folder):
    name = find(folder, "nonnegative", "age", "survived")
    change(folder, name, "value", 0, -3.0)
    return name, "is -3, which is negative"


def no_number(folder):
    name = find(folder, "consistent", "age", "survived")
    change(folder, name, "value", 0, float("nan"))
    return name, "is nan, which is not a number"


def fractional_cell(folder):
    name = find(folder, "face-valid", "age", "survived")
    change(folder, name, "value", 0, lambda x: x + 0.5, pa.float64())
    return name, "not a whole number"


def consistent_shift(folder):
    """The same person more in every table that shows the cell: all adds up, but the people are others."""
    for entry in manifest_of(folder)["tables"]:
        if entry["face"] == "face-valid" and "form" not in entry:
            change(folder, entry["file"], "value", 0, lambda x: x + 1)
    return "but the people are"


def swapped_tables(folder):
    one, other = find(folder, "nonnegative", "class", "sex"), find(folder, "nonnegative", "class", "age")
    swap(folder, one, other)
    return one, other, "holds another table"


def shuffled_labels(folder):
    name = find(folder, "consistent", "sex", "survived")
    table = pq.read_table(folder / name)
    pq.write_table(table.take([1, 0, 2, 3]), folder / name)
    return name, "the labels of survived are not in schema order, from row 1"


def missing_row(folder):
    name = find(folder, "consistent", "sex", "survived")
    pq.write_table(pq.read_table(folder / name).slice(1), folder / name)
    return name, "has 3 rows, not 4"


def changed_measurement(folder):
    change(folder, "measurements/count.parquet", "value", 2, lambda x: x + 1)
    return "but the measurements give"


def lost_measurement(folder):
    pq.write_table(pq.read_table(folder / "measurements/count.parquet").slice(1), folder / "measurements/count.parquet")
    return "measurements/count.parquet: does not have the right number of rows"


def rounded_measurement(folder):
    change(folder, "measurements/count.parquet", "value", 2, lambda x: x + 0.5, pa.float64())
    return "not all integers"


def changed_std_error(folder):
    name = find(folder, "nonnegative", "class")
    change(folder, name, "std_error", 2, lambda x: x / 2)
    return name, "class = 3rd", "the plan predicts"


def changed_form_std_error(folder):
    name = find(folder, "unbiased", "class", "sex", form="prefix(class)*sex")
    change(folder, name, "std_error", 2, lambda x: x / 2)
    return name, "1 standard errors"


def changed_form(folder):
    name = find(folder, "face-valid", "class", "sex", form="prefix(class)*sex")
    change(folder, name, "value", 2, lambda x: x + 1)
    return name, "1 answers are not the sums of the cells of class*sex"


def added_person(folder):
    codes = read_people(folder, PEOPLE, TITANIC)
    write_people(np.concatenate([codes, codes[:1]]), TITANIC, folder / PEOPLE, private=False)
    return "but the people are"


def forbidden_people(folder):
    """A child among the crew; the tables count it too."""
    codes = read_people(folder, PEOPLE, TITANIC).copy()
    codes[np.flatnonzero(codes[:, 0] == 3)[0], 2] = 0
    write_people(codes, TITANIC, folder / PEOPLE, private=False)
    source = FormsFromCells(PeopleTables(codes, TITANIC.sizes))
    description = manifest_of(folder)["faces"]["face-valid"]
    add_face(folder, PublishedFace("face-valid", description, source, lambda: codes))
    return "1 people, against the public fact: No person has class = crew and age = child."


def other_fact(folder):
    """The facts of the nonnegative face are others; the statement is made again."""
    source = FormsFromCells(Scaled(CODES, TITANIC.sizes, 1.0))
    facts = {"totals": [{"where": {"sex": "male"}, "count": 5}]}
    add_face(folder, PublishedFace("nonnegative", {"facts": facts}, source))
    return "against the public fact: The number of people with sex = male is 5."


def strange_people(folder):
    table = pq.read_table(folder / PEOPLE)
    pq.write_table(table.drop_columns(["age"]), folder / PEOPLE)
    return PEOPLE, "does not fit the schema"


TABLES = [
    (changed_cell, {"measurements", "unbiased: sums", "unbiased: forms"}),
    (changed_consistent_cell, {"consistent: sums"}),
    (changed_total, {"nonnegative: sums", "nonnegative: facts"}),
    (negative_cell, {"nonnegative: cells", "nonnegative: sums"}),
    (no_number, {"consistent: cells", "consistent: sums"}),
    (fractional_cell, {"face-valid: cells", "face-valid: sums", "face-valid: people"}),
    (consistent_shift, {"face-valid: people", "face-valid: forms"}),
    (swapped_tables, {"labels"}),
    (shuffled_labels, {"labels"}),
    (missing_row, {"labels"}),
    (changed_measurement, {"measurements"}),
    (lost_measurement, {"measurements"}),
    (rounded_measurement, {"measurements"}),
    (changed_std_error, {"errors"}),
    (changed_form_std_error, {"errors"}),
    (changed_form, {"face-valid: forms"}),
    (added_person, {"face-valid: people", "face-valid: facts"}),
    (forbidden_people, {"face-valid: facts"}),
    (other_fact, {"nonnegative: facts"}),
    (strange_people, {"face-valid: people"}),
]


@pytest.mark.parametrize(("spoil", "expected"), TABLES, ids=lambda x: getattr(x, "__name__", ""))
def test_a_changed_table_is_found(bundle, spoil, expected):
    words = spoil(bundle)
    repair(bundle)
    found = failed(bundle)
    assert found.keys() == expected
    told = "\n".join(problem for problems in found.values() for problem in problems)
    for word in (words,) if isinstance(words, str) else words:
        assert word in told


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [case for case in TABLES if case[0] in (changed_cell, swapped_tables, changed_measurement, added_person)]
    + [(strange_people, set())],  # a changed file that cannot be read is told once
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_a_changed_table_with_the_old_checksum_is_found_by_it_too(bundle, spoil, expected):
    spoil(bundle)
    found = failed(bundle)
    assert found.keys() == expected | {"files"}
    told = ("was changed after the release (another checksum)", "was changed after the release (another size)")
    assert all(problem.endswith(told) for problem in found["files"])


def missing_file(folder):
    name = find(folder, "nonnegative", "class", "sex")
    (folder / name).unlink()
    return {"files": f"{name}: is missing"}


def missing_people(folder):
    (folder / PEOPLE).unlink()
    return {"files": f"{PEOPLE}: is missing"}


def missing_measurements(folder):
    (folder / "measurements/count.parquet").unlink()
    return {"files": "measurements/count.parquet: is missing"}


def missing_plan(folder):
    (folder / "plan.json").unlink()
    return {"files": "plan.json: is missing"}


def cut_file(folder):
    name = find(folder, "nonnegative", "class", "sex")
    (folder / name).write_bytes((folder / name).read_bytes()[:-20])
    return {"files": f"{name}: was changed"}


def changed_statement(folder):
    text = (folder / "PRIVACY.md").read_text()
    (folder / "PRIVACY.md").write_text(text.replace("exp(1)", "exp(0.1)"))
    repair(folder)
    return {"privacy": "PRIVACY.md: is not the text"}


def unstamped_statement(folder):
    text = (folder / "PRIVACY.md").read_text()
    assert "NOT PRIVATE" in text
    (folder / "PRIVACY.md").write_text(text.replace("NOT PRIVATE", "Private"))
    repair(folder)
    return {"privacy": "PRIVACY.md: is not the text that the plan and the faces give, from line 3 on"}


def undeclared_fact(folder):
    manifest = manifest_of(folder)
    manifest["faces"]["nonnegative"]["facts"] = None
    write_manifest(folder, manifest)
    return {"privacy": "PRIVACY.md: is not the text"}


def dearer_plan(folder):
    raw = json.loads((folder / "plan.json").read_text())
    part = raw["parts"]["count"]
    part["budget"] = [b * 2 for b in part["budget"]]
    (folder / "plan.json").write_text(json.dumps(raw))
    repair(folder)
    return {"privacy": "plan.json: budget: the plan costs 2"}


def cheaper_plan(folder):
    raw = json.loads((folder / "plan.json").read_text())
    part = raw["parts"]["count"]
    part["budget"] = [b / 2 for b in part["budget"]]
    (folder / "plan.json").write_text(json.dumps(raw))
    repair(folder)
    return {"privacy": "plan.json: plan, digest: does not fit the plan"}


def missing_entry(folder):
    manifest = manifest_of(folder)
    manifest["tables"] = [e for e in manifest["tables"] if e["file"] != find(folder, "consistent", "class", "sex")]
    write_manifest(folder, manifest)
    return {"files": "manifest.json: does not list the table class*sex of the face consistent"}


def double_entry(folder):
    manifest = manifest_of(folder)
    double = next(e for e in manifest["tables"] if e["attributes"] == ["age", "survived"])
    manifest["tables"].append(double)
    write_manifest(folder, manifest)
    return {"files": "manifest.json: lists the table age*survived of the face unbiased twice"}


def foreign_entry(folder):
    manifest = manifest_of(folder)
    manifest["tables"].append({**manifest["tables"][4], "attributes": ["income"]})
    write_manifest(folder, manifest)
    return {"files": f"manifest.json: entry {len(manifest['tables'])} of `tables` is none of the plan's tables"}


def unlisted_checksum(folder):
    manifest = manifest_of(folder)
    name = find(folder, "consistent", "class", "sex")
    del manifest["checksums"][name]
    write_manifest(folder, manifest)
    return {"files": f"manifest.json: has no checksum of {name}"}


def other_privacy(folder):
    manifest = manifest_of(folder)
    manifest["privacy"]["epsilon"] = "1/10"
    write_manifest(folder, manifest)
    return {"files": "manifest.json: `privacy` does not say what plan.json says"}


def bound_that_no_theorem_gives(folder):
    manifest = manifest_of(folder)
    (cells,) = manifest["bounds"][1]["most"]
    manifest["bounds"][1]["most"][cells] -= 1
    write_manifest(folder, manifest)
    return {"files": "manifest.json: `bounds` does not say what plan.json says"}


def other_schema(folder):
    text = (folder / "schema.yaml").read_text()
    (folder / "schema.yaml").write_text(text.replace("female", "woman"))
    repair(folder)
    return {"files": "schema.yaml: does not declare the schema of plan.json"}


def unknown_face(folder):
    manifest = manifest_of(folder)
    manifest["faces"]["prettier"] = {}
    write_manifest(folder, manifest)
    return {"files": "describes the face 'prettier', which is unknown"}


def outside_file(folder):
    manifest = manifest_of(folder)
    manifest["checksums"]["../other"] = "0"
    write_manifest(folder, manifest)
    return {"files": "manifest.json: names a file outside the release"}


def other_version(folder):
    manifest = manifest_of(folder)
    write_manifest(folder, {**manifest, "format": 99})
    return {"files": "manifest.json: is not of this version of hushcube"}


def no_json(folder):
    (folder / "manifest.json").write_text("{")
    return {"files": "manifest.json: is not valid JSON"}


FILES = [
    *(missing_file, missing_people, missing_measurements, missing_plan, cut_file, changed_statement),
    *(unstamped_statement, undeclared_fact, dearer_plan, cheaper_plan, missing_entry, double_entry, foreign_entry),
    *(
        unlisted_checksum,
        other_privacy,
        bound_that_no_theorem_gives,
        other_schema,
        unknown_face,
        outside_file,
        other_version,
        no_json,
    ),
]


@pytest.mark.parametrize("spoil", FILES, ids=lambda x: x.__name__)
def test_a_changed_folder_is_found(bundle, spoil):
    expected = spoil(bundle)
    found = failed(bundle)
    assert found.keys() == expected.keys()
    for name, words in expected.items():
        assert any(words in problem for problem in found[name]), found


def test_files_of_others_are_remarked_on_and_no_problem(bundle):
    (bundle / "tables" / "notes.txt").write_text("hello")
    (bundle / "LICENCE.txt").touch()
    (bundle / ".git" / "objects").mkdir(parents=True)
    (bundle / ".git" / "objects" / "x").touch()
    (bundle / "link").symlink_to("nowhere")
    verdict = verify(bundle, allow_seeded=True)
    assert verdict.holds
    foreign = (".git/", "LICENCE.txt", "link", "tables/notes.txt")
    assert verdict.checks[0].remarks == tuple(f"{name}: is not part of the release" for name in foreign)


def test_a_manifest_of_nonsense_is_a_problem_not_a_crash(bundle):
    manifest = manifest_of(bundle)
    for field in manifest:
        for value in ([None, 3, {}], {"a": 1}):
            if field in ("hushcube", "warning"):
                continue
            (bundle / "manifest.json").write_text(json.dumps({**manifest, field: value}))
            assert "files" in failed(bundle), (field, value)


def test_no_release_at_all(tmp_path):
    for folder in (tmp_path, tmp_path / "nothing", tmp_path / ("x" * 300)):
        with pytest.raises(BundleError, match=r"no manifest\.json"):
            verify(folder)


def test_other_problems_are_still_found_after_the_first(bundle):
    missing_file(bundle)
    changed_measurement(bundle)
    changed_std_error(bundle)
    fractional_cell(bundle)
    repaired = {"measurements", "errors", "face-valid: cells", "face-valid: sums", "face-valid: people"}
    assert failed(bundle).keys() == repaired | {"files"}


def test_a_long_list_is_cut(bundle):
    for number in range(35):
        (bundle / f"extra{number:02}").write_text("")
    for path in sorted((bundle / "tables").iterdir())[:5] + sorted((bundle / "faces").rglob("*.parquet"))[:20]:
        path.unlink()
    files = verify(bundle, allow_seeded=True).checks[0]
    assert len(files.remarks) == 21 and files.remarks[-1] == "... and 15 more"
    assert len(files.problems) == 21 and files.problems[-1] == "... and 5 more"


def test_packs_are_checked_table_by_table(tmp_path, monkeypatch):
    monkeypatch.setattr(table_files, "MOST_FILES", 3)
    p = make_plan(make_request((3, 3, 3, 3), "<=2-way", epsilon=1), "workload")
    engine = MemoryEngine(random_codes(p.schema.sizes, 200))
    write(released(p, measure(p, engine, entropy=SeededEntropy(5))), tmp_path / "r")
    assert verify(tmp_path / "r", allow_seeded=True).holds
    name = "tables/2-way.parquet"
    kept = (tmp_path / "r" / name).read_bytes()

    change(tmp_path / "r", name, "value", 10, lambda x: x + 1)
    repair(tmp_path / "r")
    found = failed(tmp_path / "r")
    assert found.keys() == {"measurements", "unbiased: sums"}
    (problem,) = found["measurements"]
    assert problem.startswith(f"{name}, table a0*a2: a0 = 0 and a2 = 1 is ")

    (tmp_path / "r" / name).write_bytes(kept)
    change(tmp_path / "r", name, "label_2", 10, "0")
    repair(tmp_path / "r")
    assert failed(tmp_path / "r") == {"labels": [f"{name}, table a0*a2: the labels of a2 are not in schema order"]}

    (tmp_path / "r" / name).write_bytes(kept)
    repair(tmp_path / "r")
    manifest = manifest_of(tmp_path / "r")
    manifest["tables"] = table_entries(tmp_path / "r", manifest)
    first, second = [e for e in manifest["tables"] if e["file"] == name][:2]
    first["offset"], second["offset"] = second["offset"], first["offset"]
    write_manifest(tmp_path / "r", manifest)
    found = failed(tmp_path / "r")  # the guide lists packs
    assert found["labels"] == [f"{name}, table {word}: its rows belong to another table" for word in ("a0*a1", "a0*a2")]
    assert found.keys() == {"labels", "files"} and re.match("README.md|index", found["files"][0])
    first["offset"], second["offset"] = 0, 10**9
    write_manifest(tmp_path / "r", manifest)
    assert failed(tmp_path / "r")["labels"][-1] == f"{name}, table a0*a2: lies beyond the end of the pack"


def test_cells_of_people_are_counted_without_the_whole_table():
    sizes = (50,) * 30  # its table would have more cells than there are atoms
    codes = random_codes(sizes, 40)
    marginal = tuple(range(30))
    cells = np.concatenate([codes[:5], codes[:1] + np.eye(1, 30, dtype=np.int64)])
    counts = count_cells(np.concatenate([codes, codes[:2]]), sizes, marginal, cells)
    assert counts.tolist() == [2, 2, 1, 1, 1, 0]
    assert count_cells(codes, sizes, (), np.zeros((1, 0), np.int64)).tolist() == [40]
    assert Facts.none(TITANIC).facts == ()


class Rounded:
    """Counts that differ between tables by what a solver loses that works with numbers of another size."""

    def __init__(self, codes, sizes, error):
        counts = PeopleTables(codes, sizes)
        self.tables = lambda rows, shape: counts.tables(rows, shape) + (error if len(shape) == 1 else 0.0)


@pytest.mark.parametrize(("epsilon", "error", "holds"), [("1e-9", 1e-4, True), (1, 1e-4, False), ("1e-9", 100, False)])
def test_rounding_is_measured_by_the_noise(tmp_path, epsilon, error, holds):
    """Small numbers made of noise of 10^10 are not exact to a millionth of a person."""
    asked = plan(TITANIC, "<=2-way", epsilon=epsilon, neighbours="replace-one", strategy="workload")
    release(asked, titanic(), out=tmp_path / "r")
    assert verify(tmp_path / "r").holds
    description = {"asked": {}, "report": {}, "facts": None, "std_error": "of the unbiased estimate"}
    source = FormsFromCells(Rounded(CODES, TITANIC.sizes, error))
    add_face(tmp_path / "r", PublishedFace("nonnegative", description, source))
    assert verify(tmp_path / "r").holds == holds


@pytest.mark.parametrize("recovery", ["none", "gls"])
def test_queries_on_cells_that_nothing_answers_are_verified(tmp_path, recovery):
    """The table that carries them has no standard errors; the answers are checked all the same."""
    queries = (["sex"], [[1.0, -1.0]])
    matrix = Matrix(rows=query_table(TITANIC, *queries))
    how = {"epsilon": 1, "neighbours": "add-remove", "strategy": matrix, "recovery": recovery}
    release(plan(TITANIC, "queries", queries=queries, **how), titanic(), seed=1, out=tmp_path / "r")
    assert failed(tmp_path / "r") == {}
    name = find(tmp_path / "r", "unbiased", "sex", form="queries")
    change(tmp_path / "r", name, "value", 0, 0.5)
    repair(tmp_path / "r")
    assert any(problem.startswith(f"{name}: 1 answers") for problem in failed(tmp_path / "r")["measurements"])


def test_hundreds_of_tables_take_a_moment(tmp_path):
    p = make_plan(make_request((4,) * 12, "<=3-way", rho=1), "residual")
    engine = MemoryEngine(random_codes(p.schema.sizes, 500))
    write(released(p, measure(p, engine, entropy=SeededEntropy(5))), tmp_path / "r")
    start = time.perf_counter()
    verdict = verify(tmp_path / "r", allow_seeded=True)
    assert verdict.holds and time.perf_counter() - start < 10
