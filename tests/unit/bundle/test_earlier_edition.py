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
BANDS = Attribute("years", values=("0", "1", "2", "3", "4"), levels=(
    {"name": "band", "groups": {"low": ["0", "3"], "high": ["1", "2", "4"]}},
    {"name": "all", "groups": {"every": ["low", "high"]}},
))  # fmt: skip
LEVELS = Schema((SEX, BANDS, WORK))
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


def rolled_up(values):
    """Tables of sex and years, with years at their bands."""
    return np.stack([values[:, [0, 3]].sum(axis=1), values[:, [1, 2, 4]].sum(axis=1)], axis=1)


def test_finer_levels_are_summed_up():
    made = hc.recover(hc.release(hc.plan(LEVELS, "sex*years,years*work", **RHO), people(LEVELS)), "integral")
    asked = LEVELS.at_levels({"years": {"band"}})
    edition = EarlierEdition(made).within(asked, [(0, 1), (1, 2)])
    assert edition.marginals == ((0, 1), (1, 2))
    own = made.table("sex*years", face="face-valid").values
    assert edition.tables[0, 1].tolist() == rolled_up(own).tolist()
    turned = Attribute("years", values=BANDS.values, levels=(
        {"name": "band", "groups": {"high": ["1", "2", "4"], "low": ["0", "3"]}},
    ))  # fmt: skip
    schema = Schema((turned, SEX)).at_levels({"years": {"band"}})
    again = EarlierEdition(made).within(schema, [(0, 1)])
    assert again.tables[0, 1].tolist() == rolled_up(own).T[::-1].tolist()


def test_coarser_levels_say_nothing_of_cells():
    made = hc.recover(hc.release(hc.plan(LEVELS, "sex*years@band,work", **RHO), people(LEVELS)), "integral")
    assert EarlierEdition(made).within(LEVELS, [(0, 1), (1, 2)]).marginals == ((0,), (2,))
    with pytest.raises(BadInput, match=r"like: has no attribute in common.*levels asked for or finer"):
        EarlierEdition(made).within(Schema((BANDS,)), [(0,)])
    with pytest.raises(BadInput, match=r"like: has none of the tables.*levels asked for or finer"):
        EarlierEdition(made).within(LEVELS, [(1,)])
    other = {"name": "band", "groups": {"low": ["0"], "middle": ["3"], "high": ["1", "2", "4"]}}
    schema = Schema((Attribute("years", values=BANDS.values, levels=(other,)),)).at_levels({"years": {"band"}})
    with pytest.raises(BadInput, match=r"like: there the attribute 'years@band' has other values"):
        EarlierEdition(made).within(schema, [(0,)])
    schema = Schema((SEX, replace(BANDS, levels=({**other, "name": "own"},)))).at_levels({"years": {"own"}})
    assert EarlierEdition(made).within(schema, [(0, 1)]).marginals == ((0,),), "it knows no such level"


OF_SEVERAL = "sex*years@band,years*work,sex*work,sex*years@all"


def test_the_fine_tables_of_a_run_over_levels_are_an_edition(tmp_path):
    """What was published of sex and years are sums of their fine table, which synthetic people have."""
    plan = hc.plan(LEVELS, OF_SEVERAL, **RHO, strategy="selective")
    made = hc.release(plan, people(LEVELS, 2_000), out=tmp_path / "made", face="integral")
    pairs = [(0, 1), (0, 2), (1, 2)]
    edition = EarlierEdition(made).within(LEVELS, pairs)
    assert list(edition.marginals) == pairs
    assert rolled_up(edition.tables[0, 1]).tolist() == made.table("sex*years@band", face="face-valid").values.tolist()
    assert edition.tables[1, 2].tolist() == made.table("years*work", face="face-valid").values.tolist()
    assert read_edition(tmp_path / "made").within(LEVELS, pairs) == edition
    bands = EarlierEdition(made).within(LEVELS.at_levels({"years": {"band"}}), pairs)
    assert bands.tables[0, 1].tolist() == rolled_up(edition.tables[0, 1]).tolist()
    real = hc.recover(replace(made, faces={}), "nonnegative")
    for faces in ({}, real.faces):
        fitted = EarlierEdition(replace(made, faces=faces)).within(LEVELS, pairs)
        assert list(fitted.marginals) == pairs
        own = real.table("sex*years@band", face="nonnegative").values
        assert np.abs(rolled_up(fitted.tables[0, 1]) - own).max() < 1, "cells are held in tenths"


def test_unbiased_tables_at_several_levels_are_an_edition(tmp_path):
    made = hc.release(
        hc.plan(LEVELS, OF_SEVERAL, **RHO, strategy="levels"), people(LEVELS, 2_000), out=tmp_path / "made"
    )
    edition = EarlierEdition(made).within(LEVELS, [(0, 1), (0, 2), (1, 2)])
    assert edition.marginals == ((0, 2), (1, 2)), "sex and years are known with bands alone"
    assert np.abs(edition.tables[1, 2] - made.table("years*work").values).max() < 10
    assert read_edition(tmp_path / "made").within(LEVELS, [(0, 1), (0, 2), (1, 2)]) == edition
    bands = EarlierEdition(made).within(LEVELS.at_levels({"years": {"band"}}), [(0, 1), (1, 2)])
    assert bands.marginals == ((0, 1), (1, 2))
    assert np.abs(bands.tables[0, 1] - made.table("sex*years@band").values).max() < 10


def test_unbiased_tables_at_several_levels_lose_their_negative_cells():
    """Nearly all people are in few cells: were negative ones cut off, there would be far more people."""
    rng = np.random.default_rng(1)
    codes = rng.choice(200, 400, p=np.array([0.5, 0.5, *[0] * 198]))
    wide = Attribute("x", range=(0, 199), levels=({"name": "half", "starts": [0, 100]},))
    rows = pa.table({"x": codes, "sex": rng.choice(["F", "M"], 400)})
    plan = hc.plan(Schema((wide, SEX)), "x*sex,x@half*sex", **RHO, strategy="levels")
    made = hc.release(plan, rows)
    edition = EarlierEdition(made).within(Schema((wide, SEX)), [(0, 1)])
    unbiased = made.table("x*sex").values
    assert unbiased.min() < 0 and np.maximum(unbiased, 0).sum() > 460
    assert edition.tables[0, 1].sum() == pytest.approx(unbiased.sum(), abs=45)


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
