"""What the command line promises when the input is good."""

import io
import json
import re
import sys
from pathlib import Path

import pytest

from cli.desk import ASKED, BUDGET, SOURCES, listing
from hushcube.cli import run

PLAN_KEYS = {
    "schema",
    "privacy",
    "workload",
    "plans",
    "skipped",
    "lower_bound",
    "lower_bound_of_tables",
    "optimal",
    "chosen",
    "marginals",
}
PLAN_KEYS |= {"public_files", "bounds"}
CANDIDATE_KEYS = {
    "strategy",
    "budgets",
    "recovery",
    "groups",
    "total_variance",
    "rmse",
    "max_variance",
    "seconds",
    "noise",
    "proof",
    "total_variance_discrete",
}


# ------------------------------------------------------------------------------------------------------------- plan


def test_plan_json_is_the_contract(document):
    plan = document("plan", *ASKED, *BUDGET)
    assert plan.keys() == PLAN_KEYS
    assert plan["schema"] == {
        "name": "people",
        "attributes": ["sex", "age", "income", "region"],
        "sizes": [2, 10, 3, 3],
    }
    assert plan["privacy"] == {"epsilon": "1", "neighbours": "add-remove", "rows_per_person": 1}
    assert plan["workload"] == {"words": ["<=2-way"], "marginals": 11, "cells": 1 + 18 + (20 + 6 + 6 + 30 + 30 + 9)}
    for candidate in plan["plans"]:
        assert candidate.keys() == CANDIDATE_KEYS
        assert candidate["rmse"] == pytest.approx((candidate["total_variance"] / plan["workload"]["cells"]) ** 0.5)
        assert candidate["noise"] == "discrete laplace"
        assert candidate["seconds"] >= 0
    assert plan["chosen"].keys() == {"strategy", "budgets", "recovery", "digest", "details"}
    assert re.fullmatch("[0-9a-f]{64}", plan["chosen"]["digest"])
    best = min(plan["plans"], key=lambda candidate: candidate["total_variance_discrete"])
    assert {key: plan["chosen"][key] for key in ("strategy", "budgets", "recovery")}.items() <= best.items()
    assert [m["attributes"] for m in plan["marginals"]][:2] == [[], ["sex"]]
    for marginal in plan["marginals"]:
        assert marginal.keys() == {"attributes", "cells", "std_error", "margin_95"}
        assert 1.5 < marginal["margin_95"] / marginal["std_error"] < 2.5
    total = sum(m["cells"] * m["std_error"] ** 2 for m in plan["marginals"])
    assert total == pytest.approx(best["total_variance_discrete"])


def test_strategy_all_lists_every_variant(document):
    from hushcube.designs.design import BUDGETS, EVERY_RECOVERY
    from hushcube.strategies import REGISTRY

    plan = document("plan", *ASKED, *BUDGET, "--strategy", "all")
    listed = [(c["strategy"], c["budgets"], c["recovery"]) for c in plan["plans"]]
    assert len(set(listed)) == len(listed)
    # for ranges, a matrix or tables of one's own, and several levels
    elsewhere = {"wavelet", "hierarchy", "matrix", "given", "levels"}
    assert not plan["skipped"]
    assert set(listed) == {(s, b, r) for s in REGISTRY.keys() - elsewhere for b in BUDGETS for r in EVERY_RECOVERY}
    assert listed[0][0] in REGISTRY


def test_skipped_strategies_say_why(document, done, desk):
    (desk / "wide.yaml").write_text("attributes:\n" + "".join(f"- {{name: a{i}, size: 10}}\n" for i in range(12)))
    asked = ["--schema", "wide.yaml", "--workload", "1-way", *BUDGET]
    plan = document("plan", *asked)
    assert [s["strategy"] for s in plan["skipped"]] == ["identity"]
    assert "1,000,000,000,000" in plan["skipped"][0]["reason"]
    out, err = done("plan", *asked)
    assert "identity was skipped" in err and "identity was skipped" not in out


@pytest.mark.parametrize("name", ["identity", "workload", "fourier", "residual"])
@pytest.mark.parametrize("law", [["--epsilon", "0.1"], ["--rho", "1/2"], ["--epsilon", "1", "--delta", "1e-6"]])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_every_strategy_plans_under_every_guarantee(document, name, law, neighbours):
    plan = document("plan", *ASKED, *law, "--neighbours", neighbours, "--strategy", name, "--rows-per-person", "2")
    assert plan["chosen"]["strategy"] == name
    assert [c["recovery"] for c in plan["plans"]] == ["gls"]
    assert plan["privacy"]["rows_per_person"] == 2
    assert plan["plans"][0]["noise"] == (
        "discrete laplace" if len(law) == 2 and law[0] == "--epsilon" else "discrete gaussian"
    )


def test_budgets_and_recovery_can_be_chosen(document):
    plan = document("plan", *ASKED, *BUDGET, "--strategy", "workload", "--budgets", "uniform", "--recovery", "none")
    assert [(c["strategy"], c["budgets"], c["recovery"]) for c in plan["plans"]] == [("workload", "uniform", "none")]


def test_least_squares_on_answers_is_shown_beside_that_on_measured_tables(document, done):
    asked = ["plan", *ASKED, *BUDGET, "--strategy", "workload", "--recovery", "answers"]
    plan = document(*asked)
    both = plan["chosen"]["recoveries"]
    assert both.keys() == {"gls", "answers"} and both["gls"]["rmse"] < both["answers"]["rmse"]
    assert both["answers"]["total_variance"] == pytest.approx(plan["plans"][0]["total_variance"])
    out, _ = done(*asked)
    assert "(gls)" in out and "with that on the answers" in out


def test_workload_is_repeatable(document):
    plan = document("plan", "--schema", "people.yaml", "--workload", "1-way,sex*age", "--workload", "region=3", *BUDGET)
    assert plan["workload"]["words"] == ["1-way", "sex*age", "region=3"]
    assert plan["workload"]["marginals"] == 5


def test_a_printed_plan_shows_the_choice_and_every_table(done):
    out, err = done("plan", *ASKED, *BUDGET, "--strategy", "all", "--out", "new.json")
    assert out.count("→") == 1 and "typical error" in out
    assert "income*region" in out and "total" in out
    assert "saved the plan" in err and "saved" not in out


def test_a_comparison_has_a_line_for_each_distinct_strategy_and_all_has_one_for_each_variant(done):
    few, _ = done("plan", *ASKED, *BUDGET)
    every, _ = done("plan", *ASKED, *BUDGET, "--strategy", "all")
    assert "what it measures" in few and "budgets" not in few
    assert "budgets" in every and "what it measures" not in every
    lines = [line.split("│") for line in few.partition("expected error")[0].splitlines() if "│" in line]
    assert sum("±" in line[4] for line in lines) <= 8
    listed = " ".join(line[2] for line in lines).replace("=", " ").split()
    assert "workload" in listed and len(set(listed)) == len(listed)
    assert sum("│ workload " in line for line in every.splitlines()) > 1


# ---------------------------------------------------------------------------------------------------- the round trip


def test_plan_release_show(done, document, desk):
    planned = document("plan", *ASKED, *BUDGET, "--out", "new.json")
    assert "saved the plan" in document.err
    saved = json.loads((desk / "new.json").read_text())
    assert saved["digest"] == planned["chosen"]["digest"]
    released = document("release", "new.json", "--data", "people.parquet", "--out", "new")
    assert released.keys() == {"out", "tables", "cells", "strategy", "privacy", "plan_digest", "private", "faces"}
    assert released == {
        "out": "new",
        "tables": 11,
        "cells": 120,
        "strategy": planned["chosen"]["strategy"],
        "privacy": planned["privacy"],
        "plan_digest": saved["digest"],
        "private": True,
        "faces": {},
    }
    shown = document("show", "new")
    assert shown.keys() == {"name", "privacy", "private", "faces", "tables"}
    assert [t["attributes"] for t in shown["tables"]] == [m["attributes"] for m in planned["marginals"]]
    predicted = {tuple(m["attributes"]): m["std_error"] for m in planned["marginals"]}
    assert {tuple(t["attributes"]): t["std_error"] for t in shown["tables"]} == pytest.approx(predicted)
    table = document("show", "new", "sex*age")
    assert table.keys() == {"attributes", "face", "private", "cells"}
    assert table["attributes"] == ["sex", "age"] and table["face"] == "unbiased"
    assert len(table["cells"]) == 20
    for cell in table["cells"]:
        assert cell.keys() == {"sex", "age", "value", "std_error", "low_95", "high_95", "quality"}
        assert cell["low_95"] < cell["value"] < cell["high_95"]
        assert cell["std_error"] == pytest.approx(predicted["sex", "age"])


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_gives_the_same_release(done, document, kind):
    done("release", "plan.json", *SOURCES[kind], "--out", "new", "--seed", "7")
    done("release", "plan.json", "--data", "people.csv", "--out", "again", "--seed", "7")
    assert document("show", "new", "sex*income") == document("show", "again", "sex*income")


def test_a_release_without_a_plan_file(done, document):
    out, _ = done(
        "release", *ASKED, "--rho", "0.5", "--neighbours", "replace-one", "--data", "people.csv", "--out", "new"
    )
    assert "published 11 tables (120 cells) in new" in out and "hushcube show new" in out
    (total,) = document("show", "new", "total")["cells"]
    assert (total["value"], total["std_error"]) == (100.0, 0.0)


def test_an_unusual_column_name(done, document, desk):
    (desk / "odd.yaml").write_text('attributes: [{name: sex, column: "Sex of ""x""; --", values: [F, M]}]')
    (desk / "odd.csv").write_text('"Sex of ""x""; --"\nF\nM\nM\n')
    (desk / "odd.yaml").write_text("attributes: [{name: sex, column: 'Sex of \"x\"; --', values: [F, M]}]")
    asked = ["--schema", "odd.yaml", "--workload", "1-way", "--epsilon", "400", "--neighbours", "add-remove"]
    done("release", *asked, "--data", "odd.csv", "--out", "new")
    assert [c["value"] for c in document("show", "new", "sex")["cells"]] == [1.0, 2.0]


# ------------------------------------------------------------------------------------------------------------- show


def test_where_keeps_labels(document):
    whole = document("show", "published", "sex*region")["cells"]
    kept = document(
        "show", "published", "sex*region", "--where", "sex=Male", "--where", "region=2", "--where", "region=0"
    )
    wanted = [("Male", "2"), ("Male", "0")]
    assert [(c["sex"], c["region"]) for c in kept["cells"]] == wanted
    assert kept["cells"] == [next(c for c in whole if (c["sex"], c["region"]) == w) for w in wanted]


def test_a_label_may_hold_an_equals_sign(done, document, desk):
    (desk / "odd.yaml").write_text("attributes: [{name: a, values: ['x=1', ' y']}]")
    (desk / "odd.csv").write_text("a\nx=1\n y\n")
    asked = ["--schema", "odd.yaml", "--workload", "1-way", *BUDGET]
    done("release", *asked, "--data", "odd.csv", "--out", "new")
    assert len(document("show", "new", "a", "--where", "a=x=1", "--where", "a= y")["cells"]) == 2


def test_a_sum_has_an_interval(done, document):
    cells = document("show", "published", "sex*region", "--where", "sex=Male")["cells"]
    total = document("show", "published", "sex*region", "--where", "sex=Male", "--sum")
    assert total.keys() == {"value", "std_error", "low_95", "high_95", "private"}
    assert total["value"] == pytest.approx(sum(c["value"] for c in cells))
    assert total["low_95"] < total["value"] < total["high_95"]
    out, _ = done("show", "published", "sex*region", "--where", "sex=Male", "--sum")
    assert re.fullmatch(r"\S+ ± \S+  \(95%: \S+ to \S+\)\n", out)


def test_rows_limits_what_is_printed_but_not_the_json(done, document):
    out, err = done("show", "published", "sex*age", "--rows", "3")
    assert out.count("±") == 3 and "17 more cells" in err
    assert len(document("show", "published", "sex*age", "--rows", "3")["cells"]) == 20
    out, err = done("show", "published", "--rows", "4")
    assert "7 more tables" in err and "income*region" not in out
    assert "more" not in done("show", "published", "sex*age", "--rows", "20")[1]
    for asked in (["sex*age"], []):
        assert "more" not in done("show", "published", *asked, "--rows", "9" * 30)[1]


def test_rollups_and_the_order_of_attributes(document):
    asked, turned = document("show", "published", "age*sex"), document("show", "published", "sex*age")
    assert (asked["attributes"], turned["attributes"]) == (["age", "sex"], ["sex", "age"])
    assert [list(cell)[:2] for cell in asked["cells"][:1]] == [["age", "sex"]]
    by_labels = {(cell["sex"], cell["age"]): cell for cell in asked["cells"]}
    assert {(cell["sex"], cell["age"]): cell for cell in turned["cells"]} == by_labels
    assert {**asked, "attributes": [], "cells": []} == {**turned, "attributes": [], "cells": []}
    assert document("show", "published", "total")["attributes"] == []


def test_no_verify_reads_the_same(document):
    assert document("show", "published", "sex", "--no-verify") == document("show", "published", "sex")


def test_hostile_labels_are_only_text(done, desk):
    labels = ["[red]", "[/x]", "[bold", ":smile:", "\\[b]", "\x1b[31mred", "a\tb", "\u202eevil", "%s {0}", "é中"]
    listed = ", ".join(json.dumps(label) for label in labels)
    (desk / "odd.yaml").write_text(f'name: "[red]x\\e[2J"\nattributes: [{{name: "[/a]", values: [{listed}]}}]')
    (desk / "odd.csv").write_text("[/a]\n[red]\n")
    asked = ["--schema", "odd.yaml", "--workload", "<=1-way", *BUDGET]
    done("release", *asked, "--data", "odd.csv", "--out", "new")
    for command in (["show", "new", "[/a]"], ["show", "new"], ["schema", "check", "odd.yaml"], ["plan", *asked]):
        out, err = done(*command)
        assert "\x1b" not in out + err and "\u202e" not in out + err
        assert "[red]x\\x1b[2J" in out
    out, _ = done("show", "new", "[/a]")
    for label in ("[red]", "[/x]", ":smile:", "\\[b]", "\\x1b[31mred", "a\\tb", "\\u202eevil", "%s {0}", "é中"):
        assert label in out


# -------------------------------------------------------------------------------------------------------------- seed


def test_a_seed_stamps_the_release_not_private(done, document, desk):
    out, err = done("release", "plan.json", "--data", "people.csv", "--out", "new", "--seed", "1")
    assert out.startswith("NOT PRIVATE") and "NOT PRIVATE" in err
    assert "NOT PRIVATE" in (desk / "new" / "PRIVACY.md").read_text()
    manifest = json.loads((desk / "new" / "manifest.json").read_text())
    assert manifest["private"] is False and "NOT PRIVATE" in manifest["warning"]
    assert document("show", "new")["private"] is False
    assert "NOT PRIVATE" in document.err
    assert document("show", "new", "sex")["private"] is False
    assert document("show", "new", "sex", "--sum")["private"] is False
    assert document("release", "plan.json", "--data", "people.csv", "--out", "third", "--seed", "1")["private"] is False
    done("release", "plan.json", "--data", "people.csv", "--out", "again", "--seed", "1")
    assert listing(desk / "new") == listing(desk / "again")


def test_without_a_seed_nothing_is_stamped_and_noise_differs(done, document, desk):
    _, err = done("release", "plan.json", "--data", "people.csv", "--out", "new")
    assert (
        "NOT PRIVATE"
        not in err + (desk / "new" / "PRIVACY.md").read_text() + (desk / "new" / "manifest.json").read_text()
    )
    assert document("show", "new")["private"] is True
    assert document("show", "new", "sex*age") != document("show", "published", "sex*age")


# ------------------------------------------------------------------------------------------------------------ schema


def test_schema_check_says_what_is_declared(done, document):
    out, _ = done("schema", "check", "people.yaml")
    assert "people: 4 attributes, 180 cells" in out and "[0, 10), [10, 50], unknown" in out
    checked = document("schema", "check", "people.yaml")
    assert checked.keys() == {"name", "attributes", "cells", "findings"}
    assert checked["attributes"][2] == {
        "name": "income",
        "size": 3,
        "kind": "bins",
        "ordered": True,
        "levels": {},
        "missing": "unknown",
        "other": "error",
    }
    assert checked["findings"] == [] and checked["cells"] == 180


def test_schema_check_of_a_huge_domain(done, document, desk):
    (desk / "huge.yaml").write_text("attributes:\n" + "".join(f"- {{name: a{i}, size: 1000}}\n" for i in range(120)))
    assert "about 10^360 cells" in done("schema", "check", "huge.yaml")[0]
    assert document("schema", "check", "huge.yaml")["cells"] is None


def test_schema_check_compares_with_data(done, document, desk):
    assert document("schema", "check", "people.yaml", "--data", "people.csv")["findings"] == []
    (desk / "bad.csv").write_text("sex,age,income\nFemale,1,5\nOther,,70\nMan,3,5\n")
    found = document("schema", "check", "people.yaml", "--data", "bad.csv", code=2)["findings"]
    assert [(f["attribute"], f["kind"]) for f in found] == [
        ("sex", "outside"),
        ("age", "missing"),
        ("income", "outside"),
        ("region", "absent"),
    ]
    assert found[0]["examples"] == ["Man", "Other"]  # for the owner, who asked
    assert "data: does not fit the schema" in document.err
    _, err = done("schema", "check", "people.yaml", "--data", "bad.csv", code=2)
    assert "Man, Other" in err and err.count("Fix:") == 5


def test_schema_draft_can_be_used_at_once(done, document, desk):
    out, err = done("schema", "draft", "people.parquet", "--name", "people")
    assert out.startswith("# A draft made from the data.") and "public" in err
    done("schema", "draft", "people.parquet", "--out", "draft.yaml", "--name", "people", "--max-values", "50")
    assert (desk / "draft.yaml").read_text() == out
    assert document("schema", "check", "draft.yaml", "--data", "people.parquet")["findings"] == []
    done("schema", "draft", "--query", "SELECT sex FROM 'people.parquet'")


# -------------------------------------------------------------------------------------------------------------- demo


@pytest.mark.slow
def test_demo_of_the_titanic(done, desk):
    out, err = done("demo", "--sample", "titanic")
    assert out.count("class*survived") == 2 and "face-valid" in out and "truth" in out and not err
    assert (desk / "demo-release" / "manifest.json").is_file()
    done("demo", "--sample", "titanic")
    assert (desk / "demo-release-2").is_dir()
    done("demo", "--sample", "titanic", "--out", "mine")
    done("show", "mine", "sex*survived", "--where", "sex=female")


@pytest.mark.slow
def test_demo_of_the_hospital(done, desk):
    out, err = done("demo", "--out", "stays")
    assert "ward*sex" in out and "face-valid" in out and "avg(nights)" in out and "truth" in out and not err
    assert len(out.splitlines()) <= 90 and "stays" in out
    done("show", "stays", "diagnosis*outcome", "--where", "diagnosis=heart")


# ------------------------------------------------------------------------------------------------------- interruption


def test_an_interrupted_release_leaves_nothing(desk, monkeypatch, capsys):
    from contextlib import contextmanager

    import hushcube.cli.release as verb

    before = listing(desk)
    for stage in ("counting", "measuring", "writing"):
        seen = []

        def interrupt(told, share, stage=stage, seen=seen):
            seen.append(told)
            if told == stage and share > 0:
                raise KeyboardInterrupt

        @contextmanager
        def bar(interrupt=interrupt):
            yield interrupt

        monkeypatch.setattr(verb, "progress_bar", bar)
        assert run(["release", "plan.json", "--data", "people.csv", "--out", "new"]) == 130
        assert stage in seen
        assert "interrupted: nothing was published" in capsys.readouterr().err
        assert listing(desk) == before


def test_the_bar_goes_on_counting_seconds_after_a_stage_is_done(monkeypatch):
    from hushcube.cli import output

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    now, screen = [100.0], Terminal()
    monkeypatch.setattr("rich.console.monotonic", lambda: now[0])
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with output.progress_bar() as report:
        report("counting", 1.0)
        now[0] += 75
        report("fitting", 0.5)
    assert re.search(r"fitting.*50%.*0:01:15", screen.getvalue())


def test_a_release_appears_whole(desk, monkeypatch):
    """While it is written the folder is not there; then it is there with everything."""
    import hushcube.bundle.writing as bundle

    seen = []
    verb = bundle.make_manifest

    def manifest(*arguments):
        seen.append(sorted(path.name for path in desk.iterdir()))
        return verb(*arguments)

    monkeypatch.setattr(bundle, "make_manifest", manifest)
    before = sorted(path.name for path in desk.iterdir())
    assert run(["release", "plan.json", "--data", "people.csv", "--out", "new"]) == 0
    (during,) = seen
    assert "new" not in during and len(during) == len(before) + 1
    assert sorted(path.name for path in desk.iterdir()) == sorted([*before, "new"])
    assert Path("new").stat().st_mode & 0o777 == 0o755


def test_a_full_disk_is_a_failure_that_leaves_nothing(desk, monkeypatch, capsys):
    import hushcube.bundle.writing as bundle

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bundle, "_write_measurement", full)
    before = listing(desk)
    assert run(["release", "plan.json", "--data", "people.csv", "--out", "new"]) == 1
    told = capsys.readouterr().err
    assert "no space left on device" in told and "nothing was published" in told and "Fix:" in told
    assert listing(desk) == before


def test_an_unexpected_error_shows_no_data(desk, monkeypatch, capsys):
    def broken(*_, **__):
        raise ValueError("qz7731")

    monkeypatch.setattr("hushcube.verbs.releasing.check_output", broken)
    monkeypatch.delenv("HUSHCUBE_DEBUG", raising=False)
    assert run(["release", "plan.json", "--data", "people.csv", "--out", "new"]) == 1
    told = capsys.readouterr().err
    assert "unexpected ValueError" in told and "qz7731" not in told


def test_help_of_every_verb(done):
    for verb in ([], ["plan"], ["release"], ["show"], ["demo"], ["schema"], ["schema", "check"], ["schema", "draft"]):
        for word in ("--help", "-h"):
            out, err = done(*verb, word)
            assert out.startswith("Usage: hushcube") and not err
    assert done("--version")[0] == "hushcube, version 0.1.0\n"
