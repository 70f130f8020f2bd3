"""`hushcube evaluate --release`: the owner's check on the desk's people, its files, and what does not go with it."""

import csv

import pytest

CHECK = ["evaluate", "--release", "published"]


@pytest.fixture
def published(desk, done):
    """The desk's people, released with a seed, and one more face."""
    asked = ["--schema", "people.yaml", "--workload", "<=2-way", "--rho", "1", "--neighbours", "add-remove"]
    done("release", *asked, "--data", "people.csv", "--out", "checked", "--seed", "4")
    done("recover", "checked", "--face", "nonnegative")
    return ["evaluate", "--release", "checked", "--data", "people.csv"]


def test_a_release_is_checked(desk, done, published, document):
    out, err = done(*published, "--csv", "check.csv", "--chart", "check.svg", "--worst", "3")
    assert "NOT PRIVATE" in err and "do not publish" in err and "wrote check.csv, which is NOT PRIVATE" in err
    assert "of the 95% intervals hold the truth" in out and "furthest off" in out and "coverage" in out
    with (desk / "check.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 22 and {row["private"] for row in rows} == {"false"}
    assert {row["face"] for row in rows} == {"unbiased", "nonnegative"}
    assert "NOT PRIVATE" in (desk / "check.svg").read_text()
    read = document(*published, "--face", "unbiased", "--worst", "3")
    assert read["private"] is False and read["rows"] == 100 and read["caveat"] is None
    assert read["coverage"] > 0.85 and len(read["tables"]) == 11 and len(read["worst"]) == 3
    assert [result["face"] for result in read["results"]] == ["unbiased"]
    assert set(read["worst"][0]) >= {"table", "labels", "published", "truth", "standardised"}


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        (["--schema", "people.yaml"], "--schema"),
        (["--workload", "2-way"], "--workload"),
        (["--epsilon", "1"], "--epsilon"),
        (["--method", "fourier"], "--method"),
        (["--strategy", "fourier"], "--strategy"),
        (["--sanity-bound", "5"], "--sanity-bound"),
        (["--classify", "sex"], "--classify"),
        (["--runs", "3"], "--runs"),
        (["--seed", "3"], "--seed"),
        (["--by", "table"], "--by"),
        (["--keep", "runs.jsonl"], "--keep"),
    ],
    ids=lambda own: own if isinstance(own, str) else "",
)
def test_options_of_experiments_are_refused(refused, more, wanted):
    refused([*CHECK, "--data", "people.csv", *more], f"{wanted}: cannot be combined with --release")


@pytest.mark.parametrize(
    "more", [["--worst", "3"], ["--bad-rows", "missing"], ["--engine", "duckdb"]], ids=lambda own: own[0]
)
def test_options_of_the_check_need_a_release(refused, more):
    asked = ["evaluate", "--schema", "people.yaml", "--workload", "1-way", "--epsilon", "1", "--neighbours"]
    refused([*asked, "add-remove", "--data", "people.csv", *more], f"{more[0]}: goes with --release alone")


def test_what_is_wrong_is_named(refused):
    refused(CHECK, "--data: is not given")
    refused([*CHECK, "--data", "people.csv", "--face", "integral"], "no face 'integral'")
    refused([*CHECK, "--data", "people.csv", "--worst", "-1"], "--worst")
    refused(["evaluate", "--release", "nowhere", "--data", "people.csv"], "nowhere")
    refused([*CHECK, "--data", "people.csv", "--chart", "check.pdf"], "--chart")
