"""The documents of a release: the same numbers as the release has, whatever was measured."""

import json
import math
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import hushcube as hc
from hushcube import samples
from hushcube.bundle import folder, table_files
from hushcube.explorer.documents import PAGE, Documents
from hushcube.model.attribute import Attribute

RHO = {"rho": "0.5", "neighbours": "add-remove"}
EPSILON = {"epsilon": 2, "neighbours": "replace-one"}
AGE = Attribute("age", range=[0, 19], levels=[{"name": "band", "starts": [0, 5, 12]}])
SEX = Attribute("sex", values=["F", "M"])
PEOPLE = hc.Schema([AGE, SEX], "people")


def released(schema, words, data, **given):
    seed = given.pop("seed", None)
    return hc.release(hc.plan(schema, words, **given), data, seed=seed)


@pytest.fixture(scope="module")
def stays():
    return Documents(
        released(samples.HOSPITAL, "<=2-way", samples.hospital(3_000), measures=["sum(nights)", "avg(nights)"], **RHO)
    )


@pytest.fixture(scope="module")
def people():
    random = np.random.default_rng(1)
    return pa.table({"age": random.integers(0, 20, 400), "sex": random.choice(["F", "M"], 400)})


def numbers(flat):
    return np.array([math.nan if x is None else x for x in flat], float)


def check_alike(told, own):
    """The same document, but for a last digit where many tables that are computed at once are rounded otherwise."""
    close = ("values", "low", "high")
    for_sums = ("covariances", "relations", "total_errors", "average")
    alone = () if own["covariances"] is not None else for_sums
    assert {**told, **dict.fromkeys([*close, *alone])} == {**own, **dict.fromkeys([*close, *alone])}
    # numbers are rounded to a hundredth of the standard error: a tie may fall either way
    step = max(0.02, 0.011 * float(np.min(own["std_errors"] or 1.0)))
    for name in close:
        np.testing.assert_allclose(numbers(told[name]), numbers(own[name]), rtol=1e-5, atol=step)


@pytest.mark.parametrize("quantity", ["count", "sum(nights)", "avg(nights)"])
@pytest.mark.parametrize("word", ["total", "sex", "sex*age", "region*diagnosis"])
def test_tables_have_the_numbers_of_the_release(stays, word, quantity):
    told = json.loads(json.dumps(stays.table(word, quantity), allow_nan=False))
    table = stays.release.table(word, quantity)
    error = np.nanmin(table.high - table.low) / 4
    assert told["attributes"] == list(table.attributes) and told["shape"] == list(table.values.shape)
    for name, own in (("values", table.values), ("low", table.low), ("high", table.high)):
        np.testing.assert_allclose(numbers(told[name]), own.ravel(), atol=error / 100)
    if quantity != "avg(nights)":
        np.testing.assert_allclose(np.broadcast_to(told["margins"], table.values.size), table.margins.ravel(), 1e-5)


def test_sums_of_cells_follow_from_the_numbers_of_a_table(stays):
    """What a page computes from `covariances`, `spread` and `step` is what the release says."""
    for quantity in ("count", "sum(nights)"):
        told = stays.table("sex*age", quantity)
        cells, shape = [0, 3, 4, 9], told["shape"]
        places = [np.unravel_index(cell, shape) for cell in cells]
        agree = [sum(2**axis for axis in range(2) if x[axis] == y[axis]) for x, y in product(places, places)]
        error = math.sqrt(sum(told["covariances"][mask] for mask in agree))
        exact = stays.estimate("sex*age", quantity, cells)["sum"]
        assert error == pytest.approx(exact["std_error"], rel=1e-6)
        margin = told["spread"] * error + told["step"]
        assert margin == pytest.approx((exact["high"] - exact["low"]) / 2, rel=1e-6)


LAWS = [RHO, EPSILON, {"epsilon": 1, "neighbours": "add-remove"}]


@pytest.mark.parametrize("law", LAWS, ids=["rho", "replaced", "epsilon"])
def test_totals_have_the_margins_of_the_tables_that_they_are_cells_of(people, law):
    """In a page, in `estimate` and in a table of their own."""
    release = released(PEOPLE, "cube,age@band*sex", people, **law)
    documents = Documents(release)
    for word, others in (("age*sex", ["total", "age", "sex"]), ("sex*age", ["total", "sex", "age"])):
        told = documents.table(word)
        for mask, other in enumerate(others):
            own = release.table(other).margins.ravel()
            assert np.broadcast_to(told["total_margins"][mask], own.size) == pytest.approx(own, 1e-6)
    for label, margin in zip(SEX.labels, release.table("sex").margins, strict=True):
        assert release.estimate("age*sex", {"sex": label}).margin == pytest.approx(margin)
    assert release.estimate("age*sex").margin == pytest.approx(float(release.table("total").margins))
    assert release.estimate("age*sex", {"age": ["0", "1"]}).margin > release.estimate("age*sex", {"age": "0"}).margin


def test_totals_of_tables_that_do_not_agree_have_margins_of_their_own(people):
    apart = released(PEOPLE, "cube", people, strategy="workload", recovery="none", **RHO)
    assert not apart.plan.count.is_consistent and Documents(apart).table("age*sex")["total_margins"] is None
    assert apart.estimate("age*sex").std_error > 2 * float(apart.table("total").std_errors)


def test_sums_and_comparisons_are_those_of_the_release(stays):
    found = stays.estimate("age*sex", "count", [0, 2, 4], [1, 3, 5])
    women = stays.release.estimate("age*sex", {"sex": "female", "age": ["0-9", "10-19", "20-29"]})
    assert found["sum"] == pytest.approx({k: getattr(women, k) for k in ("value", "std_error", "low", "high")})
    assert found["difference"]["value"] == pytest.approx(found["sum"]["value"] - found["versus"]["value"])
    assert found["difference"]["std_error"] < math.hypot(found["sum"]["std_error"], found["versus"]["std_error"]) * 1.5
    assert found["ratio"]["low"] < found["ratio"]["value"] < found["ratio"]["high"]
    averages = stays.estimate("age*sex", "avg(nights)", [0, 2], [1, 3])
    assert averages["sum"]["std_error"] is None and averages["difference"]["low"] < averages["difference"]["high"]


def test_ratios_to_noise_have_no_interval(people):
    documents = Documents(released(PEOPLE, "age*sex", people.slice(0, 0), **RHO, seed=1))
    found = documents.estimate("sex", "count", [0], [1])["ratio"]
    assert found["low"] is None and found["high"] is None


@pytest.mark.parametrize("cells", [[16], [-1], [0, 0]])
def test_cells_that_are_none_are_refused(stays, cells):
    with pytest.raises(hc.QueryError, match="cells"):
        stays.estimate("age*sex", "count", cells)


def test_roll_ups_to_levels_are_answered(people):
    documents = Documents(released(PEOPLE, ["age*sex"], people, **RHO))
    told = documents.table("age@band*sex")
    table = documents.release.table("age@band*sex")
    assert told["shape"] == [3, 2] and told["covariances"] is None
    np.testing.assert_allclose(told["values"], table.values.ravel(), atol=0.1)
    young = documents.estimate("sex*age@band", "count", [0, 3])["sum"]
    assert young["std_error"] == pytest.approx(documents.release.estimate("age@band", {"age@band": "0-4"}).std_error)


@pytest.mark.parametrize(
    ("words", "given"),
    [
        ("prefix(age),sex", {"strategy": "hierarchy", **EPSILON}),
        ("age@band*sex,age", {"strategy": "levels", **RHO}),
        ("age*sex", {"strategy": "identity", **EPSILON}),
        ("<=2-way", {"strategy": "fourier", "recovery": "none", **EPSILON}),
        ("age,sex", {"strategy": "sketch", **EPSILON}),
        ("<=2-way", {"strategy": "workload", "seed": 7, **EPSILON}),
    ],
    ids=["tree", "levels", "identity", "fourier", "sketch", "seeded"],
)
def test_every_kind_of_design_has_documents(people, words, given):
    documents = Documents(released(PEOPLE, words, people, **given))
    catalogue = json.loads(json.dumps(documents.catalogue(), allow_nan=False))
    assert (catalogue["stamp"] is None) == ("seed" not in given)
    every = dict(documents.every())
    assert every.keys() == {entry["word"] for entry in catalogue["tables"]}
    for entry in catalogue["tables"]:
        for told in every[entry["word"]]:
            check_alike(told, documents.table(entry["word"]))
            assert len(told["values"]) == math.prod(told["shape"]) == entry["cells"]
            assert (told["labels"] is None) == ("(" not in entry["word"])
            if told["covariances"] is not None and told["relations"] is None and isinstance(told["std_errors"], float):
                assert told["covariances"][-1] == pytest.approx(told["std_errors"] ** 2, rel=1e-5)


def covariance(told):
    """That of all pairs of cells, from what a table tells."""
    shape = told["shape"]
    axes = [np.reshape(own, (n, n)) for own, n in zip(told["relations"], shape, strict=True)]
    numbers = np.reshape(told["covariances"], [own.max() + 1 for own in axes], order="F")
    cells = list(np.ndindex(*shape))
    at = [[tuple(own[i, j] for own, i, j in zip(axes, x, y, strict=True)) for y in cells] for x in cells]
    return np.array([[numbers[place] for place in row] for row in at])


ROWS = np.concatenate([np.eye(40, dtype=int), np.random.default_rng(2).integers(0, 2, (5, 40))])
ALONE = {
    "levels": ("age@band*sex,age", {"strategy": "levels", "seed": 1, **RHO}),
    "tree": ("prefix(age),age*sex", {"strategy": "hierarchy", "seed": 1, **EPSILON}),
    "matrix": ("age*sex,age", {"strategy": hc.Matrix(rows=(None, ROWS)), "seed": 1, **RHO}),
}


@pytest.mark.parametrize("kind", ALONE)
def test_tables_that_stand_alone_carry_the_covariances_of_their_cells(people, kind, monkeypatch):
    words, given = ALONE[kind]
    release = released(PEOPLE, words, people, **given)
    errors, schema = release.parts["count"].design.errors, release.plan.count.schema
    random, related = np.random.default_rng(3), 0
    for entry in Documents(release).catalogue()["tables"]:
        marginal = schema.marginal(entry["attributes"])
        (told,) = dict(Documents(release).every())[entry["word"]]
        if told["relations"] is None:  # agreement is enough
            continue
        related += 1
        C, pair = covariance(told), random.integers(0, 2, (2, *told["shape"])).astype(float)
        u, v = pair.reshape(2, -1)
        scale = np.diag(C).max()
        assert u @ C @ v == pytest.approx(errors.sum_covariance(marginal, *pair), rel=1e-7, abs=1e-7 * scale)
        assert v @ C @ v == pytest.approx(errors.sum_variance(marginal, pair[1]), rel=1e-7, abs=1e-7 * scale)
        with monkeypatch.context() as patch:  # too much to carry: the errors of totals alone
            patch.setattr("hushcube.explorer.covariances.MOST_NUMBERS", 0)
            (short,) = dict(Documents(release).every())[entry["word"]]
        assert short["covariances"] is None and len(short["total_errors"]) == 2 ** len(marginal) - 1
        C = C.reshape(told["shape"] * 2)
        for mask, own in enumerate(short["total_errors"]):
            letters = "abcdef"[: len(marginal)]
            kept = "".join(letter for axis, letter in enumerate(letters) if mask >> axis & 1)
            seconds = "".join(x if x in kept else x.upper() for x in letters)
            exact = np.sqrt(np.maximum(np.einsum(f"{letters}{seconds}->{kept}", C), 0.0)).ravel()
            np.testing.assert_allclose(
                np.broadcast_to(own, exact.shape), exact, rtol=1e-5, atol=1e-3 * math.sqrt(scale)
            )
    assert related > 0


def test_few_relations_stand_for_many_pairs(people):
    """Of 20 values in 3 groups, what matters is which groups two of them are in, and whether they are the same."""
    documents = Documents(released(PEOPLE, "age@band*sex,age*sex", people, strategy="levels", **RHO))
    (told,) = dict(documents.every())["age*sex"]
    assert len(told["covariances"]) <= 24 and len(told["relations"][0]) == 400


def test_faces_have_tables_of_their_own(people, tmp_path):
    plan = hc.plan(PEOPLE, "<=2-way", **EPSILON)
    hc.release(plan, people, out=tmp_path / "published")
    documents = Documents(hc.recover(tmp_path / "published", "nonnegative"))
    assert [face["name"] for face in documents.catalogue()["faces"]] == ["unbiased", "nonnegative"]
    assert min(documents.table("age*sex", face="nonnegative")["values"]) >= 0
    for word, (unbiased, other) in documents.every():
        check_alike(unbiased, documents.table(word))
        check_alike(other, documents.table(word, face="nonnegative"))


def test_faces_of_a_selective_run_have_estimated_errors(people):
    given = {"rho": "0.05", "neighbours": "add-remove", "strategy": "selective"}
    release = hc.recover(released(PEOPLE, "age*sex,sex", people, seed=2, **given), "nonnegative")
    documents = Documents(hc.recover(release, "consistent"))
    faces = {face["name"]: face["estimated"] for face in documents.catalogue()["faces"]}
    assert faces == {"unbiased": False, "nonnegative": True, "consistent": False}
    for word in ("age*sex", "sex"):
        told, table = documents.table(word, face="nonnegative"), release.table(word, face="nonnegative")
        assert told["estimated"]["half_width"] * np.array(told["estimated"]["errors"]) == pytest.approx(
            table.estimated_margins.ravel(), rel=1e-6
        )
        assert told["values"] == pytest.approx(table.values.ravel(), abs=table.estimated.min() / 100)
        graded = [0 if x <= 0.166 else 1 if x <= 0.333 else 2 for x in (table.estimated / table.values).ravel()]
        assert told["quality"] == [2 if v == 0 else q for q, v in zip(graded, told["values"], strict=True)]
        assert documents.table(word)["estimated"] is None
        assert documents.table(word, face="consistent")["estimated"] is None
    assert documents.table("age", face="nonnegative")["estimated"] is None  # sums have none
    for word, (unbiased, *others) in documents.every():
        check_alike(unbiased, documents.table(word))
        for other in others:
            check_alike(other, documents.table(word, face=other["face"]))


def test_all_tables_have_what_was_asked_for(stays):
    for word, tables in stays.every():
        for told, quantity in zip(tables, ("count", "sum(nights)", "avg(nights)"), strict=True):
            check_alike(told, stays.table(word, quantity))


def test_the_tables_of_a_pack_are_read_at_once(tmp_path, monkeypatch):
    """A page of 5,051 tables took a minute, of which most was decoding the same rows again and again."""
    monkeypatch.setattr(table_files, "MOST_FILES", 3)
    schema = hc.Schema([Attribute(name, codes=3) for name in "abcdef"])
    codes = np.arange(60) % 3
    out = tmp_path / "published"
    hc.release(hc.plan(schema, "<=2-way", **RHO), pa.table(dict.fromkeys("abcdef", codes)), out=out)
    documents, read, opened = Documents(hc.open(out)), folder.read_packed, []
    monkeypatch.setattr(folder, "read_packed", lambda *given, **named: opened.append(given) or read(*given, **named))
    assert sorted(word for word, _ in documents.every()) == sorted(documents.release)
    assert len(documents.release) == 22 and len(opened) == 3


def test_required_errors_stand_beside_expected_ones(stays):
    told = Documents(stays.release, ["sex: stderr<=20", "sum(nights) sex: stderr<=1"]).catalogue()["errors"]
    assert [(each["word"], each["required"], each["expected"] <= each["required"]) for each in told] == [
        ("count sex", 20, True),
        ("sum(nights) sex", 1, False),
    ]
    with pytest.raises(hc.BadInput, match="target"):
        Documents(stays.release, ["sex: stderr"])


def test_searches_find_tables_by_words_and_attributes(stays):
    found = stays.search("age se", ["age"])
    assert {"age*sex", "age*season"} == {entry["word"] for entry in found["tables"]}
    everything = stays.search()
    assert everything["total"] == len(stays.release) and len(everything["tables"]) == min(PAGE, len(stays.release))
    assert stays.search("nothing of this kind") == {"tables": [], "total": 0}
    assert stays.search("", (), 30)["tables"] == stays.catalogue()["tables"][30:]
    with pytest.raises(hc.QueryError, match="attributes"):
        stays.search("", ["wage"])


def test_the_box_about_privacy_says_how_sure_one_can_be(people):
    paragraphs = Documents(released(PEOPLE, "age", people, **EPSILON)).catalogue()["privacy"]["paragraphs"]
    assert "at most 88.1% sure" in " ".join(paragraphs)  # e² / (1 + e²) = 88.08%
