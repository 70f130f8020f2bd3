"""A release as an earlier edition: which of its tables are used, and what is refused."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import hushcube as hc
from helpers import make_request
from hushcube import Attribute, Schema
from hushcube.bundle.earlier_edition import EarlierEdition, read_edition
from hushcube.designs import SelectedDesign
from hushcube.errors import BadInput, BundleError, NotApplicable, PlanError
from hushcube.faces.value import FaceValue
from hushcube.planning.plan import Plan
from hushcube.planning.planner import compare
from hushcube.strategies.selective import Selective

SEX, AGE = Attribute("sex", values=("F", "M")), Attribute("age", values=("young", "middle", "old"))
WORK, HOME = Attribute("work", values=("no", "yes")), Attribute("home", values=("own", "rent", "other"))
LAST_YEAR = Schema((SEX, AGE, WORK))
PURE, RHO = ({law: 1, "neighbours": "add-remove"} for law in ("epsilon", "rho"))


def people(schema, many=500, seed=1):
    rng = np.random.default_rng(seed)
    hidden = rng.random(many)
    return pa.table(
        {a.name: [a.labels[i] for i in (hidden * (0.5 + rng.random(many) / 2) * a.size).astype(int)]
         for a in schema.attributes}
    )  # fmt: skip


@pytest.fixture(scope="module")
def before():
    made = hc.release(hc.plan(LAST_YEAR, "2-way", **RHO, strategy="residual"), people(LAST_YEAR))
    return hc.recover(made, "integral")


@pytest.fixture(scope="module")
def folder(before, tmp_path_factory):
    place = tmp_path_factory.mktemp("editions") / "last-year"
    before.save(place)
    return place


def test_tables_are_found_by_names_and_labels(before):
    turned = Attribute("age", values=("old", "young", "middle"))
    schema = Schema((turned, HOME, SEX))
    edition = EarlierEdition(before).within(schema, [(0, 1, 2), (1, 2)])
    assert edition.marginals == ((0, 2),), "the part of the table that is known, once"
    own = before.table("age*sex", face="face-valid").values  # young, middle, old
    assert edition.tables[0, 2].tolist() == own[[2, 0, 1]].tolist()
    assert edition.plan_digest == before.plan.digest
    assert EarlierEdition(before).within(schema, [(0, 1), (1, 2)]).marginals == ((0,), (2,))


def test_faces_without_negative_cells_are_taken_or_made(before):
    for faces in ({}, {"consistent": hc.recover(before, "consistent").faces["consistent"]}):
        edition = EarlierEdition(replace(before, faces=faces)).within(LAST_YEAR, [(0, 1)])
        close = before.table("sex*age", face="face-valid").values
        assert np.abs(edition.tables[0, 1] - close).max() < 30
    other = hc.release(hc.plan(LAST_YEAR, "2-way", **PURE, strategy="identity", recovery="none"), people(LAST_YEAR))
    assert EarlierEdition(other).within(LAST_YEAR, [(0, 1)]).tables[0, 1].sum() == pytest.approx(500, abs=100)


def test_other_values_other_attributes_and_other_things_are_refused(before, tmp_path):
    other = Schema((Attribute("age", values=("young", "old")), SEX))
    with pytest.raises(BadInput, match=r"like: there the attribute 'age' has other values"):
        hc.plan(other, "2-way", **RHO, strategy="selective", like=before)
    with pytest.raises(BadInput, match=r"like: has no attribute in common"):
        hc.plan(Schema((HOME, Attribute("x", codes=4))), "2-way", **RHO, strategy="selective", like=before)
    with pytest.raises(BundleError, match="is not a release"):
        hc.plan(LAST_YEAR, "2-way", **RHO, strategy="selective", like=tmp_path / "nowhere")
    for wrong in (7, ["a"], True):
        with pytest.raises(BadInput, match="like: is no"):
            hc.plan(LAST_YEAR, "2-way", **RHO, strategy="selective", like=wrong)
        with pytest.raises(BadInput, match="like: is no"):
            FaceValue("integral", like=wrong)
    with pytest.raises(BadInput, match="like: is no release"):
        read_edition(object())


def test_an_edition_that_protects_nobody_is_refused(tmp_path):
    seeded = hc.release(hc.plan(LAST_YEAR, "1-way", **RHO), people(LAST_YEAR), seed=1, out=tmp_path / "seeded")
    for given in (seeded, tmp_path / "seeded"):
        with pytest.raises(BadInput, match=r"like: is stamped NOT PRIVATE.*Fix: name an edition"):
            hc.plan(LAST_YEAR, "2-way", **RHO, strategy="selective", like=given)


def test_only_guesses_take_an_edition(before):
    with pytest.raises(BadInput, match=r"like: only selective plans.*like=FOLDER"):
        hc.plan(LAST_YEAR, "2-way", **RHO, strategy="residual", like=before)
    with pytest.raises(BadInput, match="only selective plans"):
        hc.plan(LAST_YEAR, "2-way", **PURE, purpose="face-valid", effort="low", like=before)
    with pytest.raises(BadInput, match="like: is given twice"):
        hc.plan(LAST_YEAR, "2-way", **RHO, strategy=Selective(like=before), like=before)
    with pytest.raises(BadInput, match="like: the method auto guesses nothing"):
        hc.recover(before, FaceValue("integral", like=before))
    with pytest.raises(NotApplicable, match="its earlier edition is not read"):
        compare(make_request((2, 3), "2-way", rho=1), strategy="selective:like=folder")


def test_plans_hold_what_they_use(before, folder):
    ways = {
        "release": {"strategy": "selective", "like": before},
        "folder": {"strategy": "selective", "like": folder},
        "word": {"strategy": f"selective:like={folder}"},
        "purpose": {"purpose": "face-valid", "like": str(folder)},
    }
    larger = Schema((SEX, AGE, WORK, Attribute("z", codes=40)))
    plans = {way: hc.plan(larger, "2-way", **RHO, **given) for way, given in ways.items()}
    assert len({plan.digest for plan in plans.values()}) == 1
    plan = plans["folder"]
    assert plan.digest != hc.plan(larger, "2-way", **RHO, strategy="selective").digest
    again = Plan.from_json(plan.to_json())
    assert again.digest == plan.digest and again.count.like == plan.count.like
    assert plan.count.like.marginals == ((0, 1), (0, 2), (1, 2))
    raw = json.loads(plan.to_json())
    raw["parts"]["count"]["like"]["plan_digest"] = "0" * 64
    with pytest.raises(PlanError, match="does not fit the plan"):
        Plan.from_json(json.dumps(raw))
    raw["parts"]["count"]["like"]["tenths"] = "AAAA"
    with pytest.raises(BadInput, match="like"):
        Plan.from_json(json.dumps(raw))


def test_a_release_with_an_edition_is_whole_without_it(before, folder, tmp_path):
    gone = tmp_path / "gone"
    shutil.copytree(folder, gone)
    plan = hc.plan(LAST_YEAR, "2-way", **RHO, strategy="selective", like=gone)
    made = hc.release(plan, people(LAST_YEAR, seed=2), out=tmp_path / "new", face="integral")
    shutil.rmtree(gone)
    assert isinstance(made.plan.count, SelectedDesign) and made.plan.count.like is not None
    assert hc.verify(tmp_path / "new").holds
    again = hc.recover(hc.open(tmp_path / "new"), "nonnegative")
    same = hc.recover(made, "nonnegative")
    assert (again.table("sex*age", face="nonnegative").values == same.table("sex*age", face="nonnegative").values).all()
    text = (tmp_path / "new" / "PRIVACY.md").read_text()
    assert f"guessed from an earlier edition, the release of the plan `{before.plan.digest}`" in text
    with pytest.raises(BadInput, match="like: the plan is selective"):
        hc.recover(made, FaceValue("integral", method="entropy", like=before))


def test_a_face_with_an_edition_is_whole_without_it(before, folder, tmp_path):
    plan = hc.plan(LAST_YEAR, "2-way", **PURE, strategy="workload")
    hc.release(plan, people(LAST_YEAR, seed=2), out=tmp_path / "new")
    made = hc.recover(tmp_path / "new", f"nonnegative:method=entropy,like={folder}")
    assert hc.verify(tmp_path / "new").holds
    told = made.faces["nonnegative"].description["like"]
    assert told["plan_digest"] == before.plan.digest and "tenths" not in made.faces["nonnegative"].told["like"]
    text = (tmp_path / "new" / "faces" / "nonnegative" / "PRIVACY.md").read_text()
    assert before.plan.digest in text and "declares to be public" in text
    edition = made.faces["nonnegative"].edition(made.schema)
    again = hc.recover(hc.open(tmp_path / "new"), FaceValue("nonnegative", method="entropy", like=edition))
    pair = [one.table("sex*age", face="nonnegative").values for one in (made, again)]
    assert np.abs(pair[0] - pair[1]).max() < 1e-6
    copied = hc.recover(tmp_path / "new", "integral", out=tmp_path / "copy")
    assert copied.faces["nonnegative"].description["like"] == told
    assert hc.verify(tmp_path / "copy").holds
