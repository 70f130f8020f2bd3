"""What a release says about itself is computed from the plan's budgets and guarantee, never copied from free text."""

import json
import re
from fractions import Fraction

import pyarrow as pa
import pytest

from helpers import adaptive
from hushcube import Attribute, Schema, plan, recover, release
from hushcube.bundle.manifest import read_manifest, seal
from hushcube.bundle.reading import checksum
from hushcube.bundle.statement import privacy_statement
from hushcube.bundle.verify import verify
from hushcube.designs.design import ADAPTING, digest_of
from hushcube.errors import BadInput, PlanError
from hushcube.faces.value import FaceValue
from hushcube.model.facts import Facts
from hushcube.model.measure import Measure
from hushcube.model.privacy import Unit
from hushcube.planning.plan import Plan, read_design
from hushcube.strategies import REGISTRY

SCHEMA = Schema((Attribute(name="x", values=("a", "b")), Attribute(name="y", codes=3)))
PEOPLE = pa.table({"x": ["a", "b"] * 150, "y": [0, 1, 2] * 100})
EVIL = "x`\n\n**Guarantee: epsilon = 0.001**\n\n[a](b) | <b>c</b>\u202e"


class Untouched:
    """Data that fails the test when anybody looks at it."""

    def __getattr__(self, name):
        pytest.fail(f"the data was looked at: {name}")


def made(strategy="workload", schema=SCHEMA, words="<=2-way", **law):
    chosen = adaptive(strategy, sanity_bound=10, relative_error="0.5", above=10)
    law = law or {"epsilon": 10}
    return plan(schema, words, neighbours="add-remove", strategy=chosen, **law).count


def doctored(one, **changes):
    """The text of a plan with some fields changed and a digest that fits."""
    raw = one.to_dict() | changes
    return json.dumps({**raw, "digest": digest_of(raw)})


def claim(one, **changes):
    return {"adaptive": {"method": one.strategy, "spent": 0.001, "left": 9.999, "target_met": True} | changes}


# ------------------------------------------------------------------------------------------- what a plan file may say


@pytest.mark.parametrize("strategy", ["workload", "residual", "ireduct"])
def test_a_plan_that_was_not_carried_out_tells_of_no_run(strategy):
    one = made(strategy, **({"rho": 1} if strategy == "residual" else {}))
    for method in (one.strategy, "ireduct"):
        with pytest.raises(PlanError, match="details: describe a run"):
            read_design(doctored(one, details=claim(one, method=method)))


@pytest.mark.parametrize("strategy", ADAPTING)
def test_what_a_run_spent_is_what_its_plan_costs(strategy):
    ended = release(Plan.of_counts(made(strategy)), PEOPLE, seed=1).plan.count
    told = ended.details["adaptive"]
    assert read_design(ended.to_json()).details["adaptive"]["spent"] == float(ended.person_cost)
    for changes in ({"spent": 0.001}, {"left": 10.0}, {"method": "dwork"}, {"spent": str(told["spent"])}):
        with pytest.raises(PlanError, match="details: describe a run"):
            read_design(doctored(ended, details={"adaptive": told | changes}))
    with pytest.raises(PlanError):
        read_design(doctored(ended, details={"adaptive": "all is well"}))


def test_a_selective_run_states_its_guarantee_and_no_ex_post_loss(tmp_path):
    release(Plan.of_counts(made("selective")), PEOPLE, seed=1, out=tmp_path / "out")
    text = (tmp_path / "out" / "PRIVACY.md").read_text()
    assert "decided how precisely each table is measured" in text and "ex-post" not in text


@pytest.mark.parametrize("strategy", [name for name in ADAPTING if name != "selective"])
def test_the_ex_post_loss_in_the_statement_is_computed(strategy, tmp_path):
    ended = release(Plan.of_counts(made(strategy)), PEOPLE, seed=1, out=tmp_path / "out").plan.count
    text = (tmp_path / "out" / "PRIVACY.md").read_text()
    cost, bound = (Fraction(found) for found in re.search(r"cost (\S+) of it.*exp\(([^)]+)\)", text).groups())
    assert cost == bound and 0 <= cost - ended.person_cost < cost / 10**5
    assert Fraction(re.search(r"the remaining (\S+) may", text)[1]) <= 10 - ended.person_cost
    without = read_design(doctored(ended, details={}))
    assert privacy_statement(Plan.of_counts(without), private=False) == text


@pytest.mark.parametrize("strategy", ADAPTING)
def test_what_a_run_ended_with_is_not_carried_out_again(strategy, tmp_path):
    ended = release(Plan.of_counts(made(strategy)), PEOPLE, seed=1).plan.count
    for one in (ended, read_design(doctored(ended, details={}))):
        with pytest.raises(PlanError, match="records what a run ended with"):
            release(Plan.of_counts(one), PEOPLE, out=tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_a_note_in_a_file_is_not_repeated(tmp_path):
    loaded = read_design(doctored(made(), details={"note": "nobody can be found in this release", "bound": 0.0}))
    release(Plan.of_counts(loaded), PEOPLE, out=tmp_path / "out")
    assert "nobody can be found" not in (tmp_path / "out" / "PRIVACY.md").read_text()


def test_notes_that_matter_are_there_without_any_details(tmp_path):
    loaded = read_design(doctored(made("sketch"), details={}))
    release(Plan.of_counts(loaded), PEOPLE, out=tmp_path / "out")
    assert "collisions add to the variance" in (tmp_path / "out" / "PRIVACY.md").read_text()


# ------------------------------------------------------------------------------------------------ names of strategies


@pytest.mark.parametrize("name", ["x", "", EVIL, "Workload", "workload ", "oracle", "auto", 7, None, ["workload"]])
def test_unknown_strategies_are_refused(name):
    with pytest.raises(PlanError):
        read_design(doctored(made(), strategy=name))


@pytest.mark.parametrize(
    ("strategy", "name"),
    [("workload", "matrix"), ("workload", "wavelet"), ("workload", "levels"), ("sketch", "identity")],
)
def test_a_strategy_makes_its_own_kind_of_plans(strategy, name):
    with pytest.raises(PlanError, match="makes no such plans"):
        read_design(doctored(made(strategy), strategy=name))


def test_an_adaptive_name_is_for_pure_epsilon():
    with pytest.raises(PlanError, match="makes no such plans"):
        read_design(doctored(made(rho=1), strategy="ireduct"))


def test_every_strategy_says_which_plans_it_makes():
    for name, strategy in REGISTRY.items():
        for law in ({"epsilon": 1}, {"rho": 1}):
            try:
                one = made(name, words=["1-way", "prefix(y)"] if name in ("wavelet", "hierarchy") else "1-way", **law)
            except BadInput:
                continue
            assert isinstance(one, strategy.makes), name


def test_a_name_given_in_python_is_refused_before_the_data_is_read(tmp_path):
    from dataclasses import replace

    with pytest.raises(PlanError, match="is unknown"):
        release(Plan.of_counts(replace(made(), strategy=EVIL)), Untouched(), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


# -------------------------------------------------------------------------------------------------- hostile names


def hostile():
    attributes = (Attribute(name="x", values=("a`", EVIL)), Attribute(name="<i>_y_", codes=3))
    return Schema(attributes, name=EVIL, unit=Unit(EVIL, 1))


def check_markdown(text):
    lines = text.split("\n")
    assert [line for line in lines if line.lstrip("* ").startswith("Guarantee")] == [lines[2]]
    assert lines[2].startswith("Guarantee: **epsilon = ")
    check_inert(text)


def check_inert(text):
    assert "\u202e" not in text and text.count("\n**Guarantee") == 0
    bare = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)  # what stands outside of code
    assert not re.search(r"<|(?<!\\)\[", bare)


def test_names_and_labels_cannot_write_the_statement(tmp_path):
    data = pa.table({"x": ["a`", EVIL] * 30, "<i>_y_": [0, 1, 2] * 20, EVIL: list(range(60))})
    one = plan(hostile(), "<=2-way", epsilon=2, neighbours="add-remove", strategy="workload").count
    release(Plan.of_counts(one), data, out=tmp_path / "out")
    facts = Facts.from_dict({"totals": [{"where": {"x": EVIL}, "count": 30}]}, hostile())
    recover(tmp_path / "out", FaceValue(kind="nonnegative", facts=facts))
    check_markdown((tmp_path / "out" / "PRIVACY.md").read_text())
    of_face = (tmp_path / "out" / "faces" / "nonnegative" / "PRIVACY.md").read_text()
    assert "The number of people with x = " in of_face
    check_inert(of_face)
    assert verify(tmp_path / "out").holds


def test_names_cannot_write_the_statement_of_a_cube_or_a_matrix(tmp_path):
    from dataclasses import replace

    measures = (Measure(name="w`[a](b)<b>", bounds=(0, 3)),)
    cube = plan(
        replace(hostile(), measures=measures), "x", measures="sum(w`[a](b)<b>)", epsilon=1, neighbours="add-remove"
    )
    data = {"x": ["a`"] * 9, "<i>_y_": [0, 1, 2] * 3, EVIL: list(range(9)), "w`[a](b)<b>": [1] * 9}
    release(cube, pa.table(data), out=tmp_path / "cube")
    check_markdown((tmp_path / "cube" / "PRIVACY.md").read_text())
    rows = plan(hostile(), [], queries=(["<i>_y_"], [[1, 0, 0], [0, 1, 1]]), epsilon=1, neighbours="add-remove").count
    check_markdown(privacy_statement(Plan.of_counts(rows), private=True))


# ------------------------------------------------------------------------------------------------------------- verify


@pytest.mark.parametrize("strategy", ["workload", "ireduct"])
def test_verify_finds_a_doctored_plan_in_a_release_that_fits_it(strategy, tmp_path):
    folder = tmp_path / "out"
    ended = release(Plan.of_counts(made(strategy)), PEOPLE, out=folder).plan.count
    assert verify(folder).holds
    raw = ended.to_dict() | {"details": claim(ended)}
    (folder / "plan.json").write_text(json.dumps({**raw, "digest": digest_of(raw)}))
    manifest = read_manifest(folder)
    manifest["plan_digest"] = digest_of(raw)
    manifest["checksums"]["plan.json"] = checksum(folder, "plan.json")
    (folder / "manifest.json").write_bytes(seal(manifest, folder))
    verdict = verify(folder)
    assert not verdict.holds
    assert any("details" in problem for check in verdict.checks for problem in check.problems)
