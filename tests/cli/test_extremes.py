"""The ends of what may be asked: budgets, weights, entries, numbers of thousands of digits."""

import pytest

from cli.desk import ASKED, BUDGET

GUARANTEES = [
    ["--epsilon", "1e-9"],
    ["--epsilon", "500"],
    ["--rho", "1e-9"],
    ["--rho", "500"],
    ["--epsilon", "1e-9", "--delta", "1e-200"],
    ["--epsilon", "500", "--delta", "0.999"],
]
DIGITS = "9" * 5000


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("guarantee", GUARANTEES, ids=" ".join)
@pytest.mark.parametrize("words", ["prefix(age)*sex", "ranges(age)=1e-9,sex=1e9"])
def test_every_strategy_at_the_ends_of_budgets(document, words, guarantee, neighbours):
    asked = ["--schema", "people.yaml", "--workload", words, *guarantee, "--neighbours", neighbours]
    found = document("plan", *asked, "--strategy", "all", "--effort", "low")
    assert all(plan["total_variance_discrete"] >= 0 for plan in found["plans"])


@pytest.mark.parametrize("weight", ["1e308", "1e-300", "1e10", "1e-10"])
def test_weights_that_no_budget_can_follow(refused, weight):
    asked = [
        "--schema",
        "people.yaml",
        "--workload",
        f"sex={weight},age",
        "--epsilon",
        "1",
        "--neighbours",
        "add-remove",
    ]
    refused(["plan", *asked], "workload", "the weight of 'sex' is not between 1e-09 and 1e+09", "ratios")


@pytest.mark.parametrize("row", ["1e308,1e308", "1e-300,1", "1e16,0"])
def test_queries_of_extreme_numbers(desk, refused, row):
    (desk / "q.csv").write_text(row + "\n")
    asked = ["--schema", "people.yaml", "--queries", "sex:q.csv"]
    refused(["plan", *asked, *BUDGET], "--queries", "sizes are not between 1e-15 and 1e+15", "common factor")


@pytest.mark.parametrize(
    "word", ["hierarchy:fan-out", "sketch:buckets", "sketch:repetitions", "twophase:people", "pmost:threshold"]
)
def test_options_of_thousands_of_digits(refused, word):
    refused(["plan", *ASKED, *BUDGET, "--strategy", f"{word}={DIGITS}"], f"--strategy {word}: ", "Fix:")


@pytest.mark.parametrize("option", ["--epsilon", "--rho", "--rows-per-person"])
def test_numbers_of_thousands_of_digits(desk, refused, option):
    budget = [] if option in ("--epsilon", "--rho") else ["--epsilon", "1"]
    refused(["plan", *ASKED, *budget, "--neighbours", "add-remove", option, DIGITS], option.removeprefix("--")[:4])


@pytest.mark.parametrize("words", [f"{DIGITS}-way", f"star:{DIGITS}", f"anchored:{DIGITS}:sex", f"sex={DIGITS}"])
def test_words_of_thousands_of_digits(refused, words):
    refused(["plan", "--schema", "people.yaml", "--workload", words, *BUDGET], "Fix:")


@pytest.mark.parametrize("field", [f"size: {DIGITS}", f"range: [0, {DIGITS}]", f"bins: [0, {DIGITS}]"])
def test_schemas_of_thousands_of_digits(desk, refused, field):
    (desk / "long.yaml").write_text(f"name: long\nattributes:\n  - {{name: x, {field}}}\n")
    refused(["schema", "check", "long.yaml"], "schema", "too long")
