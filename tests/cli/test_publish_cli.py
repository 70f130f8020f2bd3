"""`pmost:publish=precise`: the plan, the release and its statement say what is left out."""

import json

import hushcube as hc
from cli.desk import BUDGET

ASKED = ["--schema", "people.yaml", "--workload", "sex*region,sex*income,income*region,age*region*income=2", *BUDGET]
STRATEGY = ["--strategy", "pmost:threshold=10,publish=precise"]
LEFT = "age*income*region"


def test_a_release_of_the_precise_tables(desk, done, document):
    plan = document("plan", *ASKED, *STRATEGY, "--out", "precise.json")
    assert plan["workload"]["marginals"] == 3 == len(plan["marginals"])
    assert plan["chosen"]["details"]["left_out"] == [LEFT]
    assert all(table["std_error"] ** 2 <= 10 for table in plan["marginals"])
    out, err = done("plan", *ASKED, *STRATEGY)
    assert f"left out: {LEFT}" in out
    assert "1 of 4 tables asked for left out: they would not be precise" in err
    done("release", "precise.json", "--data", "people.csv", "--out", "some")
    manifest = json.loads((desk / "some" / "manifest.json").read_text())
    assert manifest["left_out"] == [LEFT]
    assert len(manifest["tables"]) == 3
    assert f"left out, for they would not be precise: `{LEFT}`." in (desk / "some" / "PRIVACY.md").read_text()
    done("verify", "some")
    done("show", "some", "sex*region")
    release = hc.open("some")
    assert release.plan.count.left_out == (LEFT,)
    assert len(release.plan.workload) == 3


def test_thresholds_that_nothing_meets_and_options_that_do_not_go_together(refused):
    low = ["--strategy", "pmost:threshold=1,publish=precise"]
    refused(["plan", *ASKED, *low], "no table can have a variance of at most 1. Fix: give at least 2")
    refused(["plan", *ASKED, *STRATEGY, "--strategy", "bmax"], "may leave tables out")
    told = "the tables that pmost:threshold=10,publish=precise publishes depend on the budget"
    refused(["plan", *ASKED, *STRATEGY, "--what-if", "1,2"], told)


def test_an_altered_manifest_is_found(desk, done):
    done("release", *ASKED, *STRATEGY, "--data", "people.csv", "--out", "some")
    from hushcube.bundle.manifest import manifest_text

    path = desk / "some" / "manifest.json"
    manifest = json.loads(path.read_text())
    for changed in ({**manifest, "left_out": ["age"]}, {k: v for k, v in manifest.items() if k != "left_out"}):
        path.write_text(manifest_text(changed))
        out, _ = done("verify", "some", code=1)
        assert "`left_out` does not say what plan.json says" in out
