"""What the command line says: names of files cannot steer it, and what a plan file tells is not repeated."""

import json

import pytest

from cli.desk import BUDGET
from hushcube.plan.plan import Plan, digest_of

ADAPTIVE = ["--schema", "people.yaml", "--workload", "1-way", "--relative-error", "0.5", "--above", "5", *BUDGET]


def test_a_run_that_was_just_made_says_what_it_reached(done, desk):
    out, _ = done("release", *ADAPTIVE, "--data", "people.csv", "--out", "new")
    plan = Plan.from_json((desk / "new" / "plan.json").read_text())
    assert plan.details["adaptive"]["target_met"] == ("the target is met" in out)
    assert "the answers cost" in out


def test_the_plan_of_a_release_that_adapted_is_not_released_again(done, desk, drawn):
    done("release", *ADAPTIVE, "--data", "people.csv", "--out", "new")
    drawn.clear()
    (desk / "other.csv").write_text("sex,age,income,region\nMale,1,2,0\n")
    out, err = done("release", "new/plan.json", "--data", "other.csv", "--out", "again", code=2)
    assert "records what a run ended with" in err and "target" not in out + err
    assert not (desk / "again").exists() and not drawn


def test_the_plan_of_another_release_can_be_released_again(done):
    done("release", "published/plan.json", "--data", "people.csv", "--out", "again")


@pytest.mark.parametrize("changes", [{"strategy": "x\n\x1b[2J\u202e"}, {"details": {"adaptive": {"target_met": True}}}])
def test_a_doctored_plan_is_refused_in_one_plain_line(done, desk, drawn, changes):
    raw = Plan.from_json((desk / "published" / "plan.json").read_text()).to_dict() | changes
    (desk / "plan.json").write_text(json.dumps({**raw, "digest": digest_of(raw)}))
    out, err = done("release", "plan.json", "--data", "people.csv", "--out", "again", code=2)
    assert not out and err.count("\n") == 1 and err[:-1].isprintable()
    assert not (desk / "again").exists() and not drawn


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "no\x1b[2J\u202e\nsuch"],
        ["show", "published", "se\x1bx"],
        ["sh\x1bow"],
        ["show", "published", "--ro\u202ews"],
    ],
)
def test_messages_hold_nothing_that_steers_a_terminal(done, arguments):
    out, err = done(*arguments, code=2)
    assert all(line.isprintable() for line in (out + err).split("\n"))


def test_json_holds_no_invisible_characters_and_reads_back(done, desk):
    label = "a\x9b2J\u202eb"
    schema = {"name": label, "attributes": [{"name": "x", "values": [label, "c"]}]}
    (desk / "odd.yaml").write_text(json.dumps(schema))
    (desk / "odd.csv").write_text(f"x\n{label}\n", encoding="utf-8")
    asked = ["--schema", "odd.yaml", "--workload", "x", *BUDGET]
    done("release", *asked, "--data", "odd.csv", "--out", "new")
    for command in (["show", "new"], ["show", "new", "x"], ["schema", "check", "odd.yaml"], ["plan", *asked]):
        out, _ = done(*command, "--json")
        assert out[:-1].isprintable()
        assert command[0] == "plan" or label in json.dumps(json.loads(out), ensure_ascii=False)
    assert all(line.isprintable() for line in (desk / "new" / "schema.yaml").read_text().split("\n"))
    done("verify", "new")
