"""A stack is published, shown, verified and post-processed like any other design."""

import json
from fractions import Fraction

import numpy as np
import pytest

import hushcube as hc
import nested
from helpers import MemoryEngine, all_tables, make_plan, make_request, make_schema, random_codes, released
from hushcube.designs import StackedDesign
from hushcube.model.privacy import Privacy
from hushcube.model.workload import Workload
from hushcube.private.measure import measure
from hushcube.private.noise import SeededEntropy

SIZES = (2, 3, 4)
WORKLOAD = Workload.parse("<=2-way", make_schema(SIZES))
ENGINE = MemoryEngine(random_codes(SIZES, 400))
LAWS = {"rho": {"rho": "1/4"}, "epsilon": {"epsilon": 1}}


def joined(law, neighbours="add-remove", entropy=None):
    """A drill-down: a table, one that holds it, everything."""
    asked = [("a0*a1", "workload"), ("a0*a1*a2", "workload"), ("<=2-way", "residual" if "rho" in law else "covering")]
    designs = [make_plan(make_request(SIZES, w, neighbours=neighbours, **law), s) for w, s in asked]
    return StackedDesign.join(designs, [measure(each, ENGINE, entropy=entropy) for each in designs], WORKLOAD)


@pytest.fixture(scope="module", params=LAWS)
def folder(request, tmp_path_factory):
    """A bundle of a stack."""
    place = tmp_path_factory.mktemp("stack") / request.param
    released(*joined(LAWS[request.param])).save(place)
    return place


def test_a_bundle_of_a_stack_holds(folder):
    assert hc.verify(folder).holds
    release = hc.open(folder)
    assert release.private
    stack = release.plan.count
    tables = all_tables(stack, stack.answers(release.parts["count"].source.measurement()))
    for A, table in tables.items():
        published = release[stack.schema.describe(A)]
        np.testing.assert_allclose(np.asarray(published.values), table, atol=1e-9)
        np.testing.assert_allclose(published.std_errors**2, stack.errors.cell_variance_table(A), rtol=1e-9)
    rolled = release["a0*a1"].values.sum(axis=1)
    np.testing.assert_allclose(rolled, release["a0"].values, atol=1e-9)
    estimate = release.estimate("a0*a1", {"a0": "0"})
    assert estimate.value == pytest.approx(rolled[0])
    assert estimate.std_error**2 == pytest.approx(float(stack.errors.cell_variance_table((0,))))


def test_its_statement_says_what_was_spent(folder):
    text = (folder / "PRIVACY.md").read_text()
    plan = json.loads((folder / "plan.json").read_text())
    amount = "rho = 0.75" if "rho" in plan["privacy"] else "epsilon = 3"
    assert f"Guarantee: **{amount}, add-remove, one row per person**." in text
    assert "It was measured in 3 layer(s), one after the other, each with a guarantee of its own" in text
    assert f"together they cost {amount}." in text
    assert "the guarantee is what the layers were allowed to spend together" in text
    assert "errors are those of layers chosen beforehand" in text


def test_the_guarantee_may_be_what_the_layers_were_allowed():
    """A session that was allowed rho = 2 keeps that promise, whatever it has spent so far."""
    designs = joined(LAWS["rho"])[0].designs
    allowed = Privacy.of(rho=2, neighbours="add-remove")
    stack = StackedDesign.of(designs, WORKLOAD, allowed=allowed)
    assert stack.privacy == allowed
    assert stack.spent.rho == Fraction(3, 4)
    assert "together they cost rho = 0.75." in stack.composition
    with pytest.raises(hc.BudgetExceeded):
        StackedDesign.of(designs, WORKLOAD, allowed=Privacy.of(rho="0.7", neighbours="add-remove"))
    with pytest.raises(hc.PlanError, match="neighbours"):
        StackedDesign.of(designs, WORKLOAD, allowed=Privacy.of(rho=2, neighbours="replace-one"))


@pytest.mark.parametrize(
    "face", ["consistent:norm=l2", "consistent:norm=l1", "nonnegative", "nonnegative:method=local"]
)
def test_faces_are_made_from_a_stack(folder, face):
    release = hc.recover(hc.open(folder, verify=False), face)
    (name,) = release.faces
    small, big = (release.table(words, face=name).values for words in ("a0", "a0*a1"))
    np.testing.assert_allclose(big.sum(axis=1), small, atol=1e-4)
    assert face.startswith("consistent") or big.min() >= 0


def test_whole_numbers_and_people_are_made_from_a_stack(folder, tmp_path):
    release = hc.recover(folder, out=tmp_path / "faces")
    assert hc.verify(tmp_path / "faces").holds
    people = hc.synthesize(tmp_path / "faces", out=tmp_path / "people.csv")
    total = release.table("total", face="face-valid").values
    assert len(people.codes) == total == (tmp_path / "people.csv").read_text().count("\n") - 1


@pytest.mark.parametrize(
    ("face", "told"),
    [
        ("nonnegative:method=barak", "it needs"),
        ("nonnegative:method=shift", "it needs"),
        ("consistent:norm=l1,near=answers", "one by one"),
    ],
)
def test_faces_that_need_one_kind_of_numbers_are_refused(folder, face, told):
    with pytest.raises(hc.BadInput, match=told):
        hc.recover(hc.open(folder, verify=False), face)


def test_a_public_total_is_kept_by_every_face(tmp_path):
    released(*joined(LAWS["epsilon"], "replace-one", SeededEntropy(2))).save(tmp_path / "stack")
    release = hc.recover(tmp_path / "stack")
    assert release["total"].values == 400
    assert release["total"].std_errors == 0
    assert release.table("total", face="face-valid").values == 400
    assert not release.private


def test_a_stack_of_nested_levels_is_published(tmp_path):
    names = nested.SCHEMA.at_levels({"s": {None, "l1"}})
    people = nested.random_people(names, 300)
    designs, parts = [], []
    for words, seen in (("s@l1*u", [0, 2, 3]), ("s*t", [1, 2, 3]), ("s@l1*u", [0, 2, 3])):
        designs.append(make_plan(nested.nested_request(words, rho="1/2"), "workload"))
        parts.append(measure(designs[-1], MemoryEngine(people[:, seen])))
    stack, joint = StackedDesign.join(designs, parts, Workload.parse("s@l1*u,s*t,s,u", nested.SCHEMA))
    released(stack, joint).save(tmp_path / "stack")
    assert hc.verify(tmp_path / "stack").holds
    release = hc.open(tmp_path / "stack")
    np.testing.assert_allclose(release["s"].values.sum(), release["total"].values, atol=1e-8)
    assert (release["s@l1*u"].std_errors < designs[0].errors.cell_variance_table((0, 2)) ** 0.5).all()
    with pytest.raises(hc.BadInput, match="levels"):
        hc.recover(tmp_path / "stack")
