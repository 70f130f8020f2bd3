"""`hushcube evaluate` on the built-in Titanic data: tables, JSON, seeds, and whatever is wrong with what is asked."""

import pytest
import yaml

from cli.desk import listing
from hushcube.cli import run
from hushcube.samples import TITANIC, titanic

WARNING = "NOT PRIVATE"
BUDGET = ["--epsilon", "1", "--neighbours", "replace-one", "--sanity-bound", "5"]
DATA = ["--schema", "titanic.yaml", "--data", "titanic.csv"]
ASKED = [*DATA, "--workload", "1-way", *BUDGET]
FIELDS = {
    *("method", "budgets", "recovery", "epsilon", "sanity_bound", "runs"),
    *("overall_error", "standard_error", "worst_error", "spent", "seconds"),
}


@pytest.fixture(autouse=True)
def aboard(desk):
    """The Titanic's people beside the desk's."""
    import pyarrow.csv

    (desk / "titanic.yaml").write_text(yaml.safe_dump(TITANIC.to_dict(), sort_keys=False))
    pyarrow.csv.write_csv(titanic(), desk / "titanic.csv")


@pytest.fixture
def refused(desk, drawn, capsys):
    """Run a command that must be refused: exit code 2, the field and the fix named, nothing drawn or written."""

    def check(arguments, *wanted):
        before = listing(desk)
        code = run(["evaluate", *arguments])
        captured = capsys.readouterr()
        assert code == 2, captured.err
        assert listing(desk) == before and drawn == [] and captured.out == ""
        assert "Fix:" in captured.err and "Traceback" not in captured.err
        for words in wanted:
            assert words in captured.err, captured.err

    return check


def test_all_methods_are_compared_and_a_warning_is_told(desk, done):
    before = listing(desk)
    out, err = done("evaluate", *ASKED, "--runs", "3", "--seed", "1")
    for method in ("dwork", "twophase", "iresamp", "ireduct", "oracle"):
        assert method in out
    assert "3 runs" in out and "±" in out and "sanity bound 5" in out
    assert WARNING in err and "do not publish" in err
    assert listing(desk) == before, "nothing is written"


def test_the_document(document):
    read = document("evaluate", *ASKED, "--method", "dwork", "--method", "proportional", "--runs", "4", "--seed", "3")
    assert WARNING in document.err
    assert read["private"] is False and read["seed"] == 3 and read["workload"] == ["1-way"]
    assert [result["method"] for result in read["results"]] == ["dwork", "proportional"]
    for result in read["results"]:
        assert set(result) == FIELDS
        assert result["runs"] == 4 and result["spent"] == pytest.approx(1)
        assert 0 < result["overall_error"] < result["worst_error"]
        assert (result["budgets"], result["recovery"]) == ("uniform", "none")


def test_the_document_of_one_run_has_no_standard_error(document):
    read = document("evaluate", *ASKED, "--method", "dwork", "--runs", "1")
    assert read["results"][0]["standard_error"] is None and read["seed"] is None


def test_a_seed_repeats(document):
    def results():
        read = document("evaluate", *ASKED, "--method", "ireduct", "--runs", "2", "--seed", "5")
        return [{**result, "seconds": 0} for result in read["results"]]

    assert results() == results()


def test_planning_options_reach_the_methods(document):
    more = ["--method", "dwork", "--method", "covering", "--budgets", "optimal", "--recovery", "gls", "--effort", "low"]
    read = document("evaluate", *DATA, "--workload", "2-way", *BUDGET, *more, "--runs", "2")
    assert all((r["budgets"], r["recovery"]) == ("optimal", "gls") for r in read["results"])
    stopped = document(
        *("evaluate", *DATA, "--workload", "1-way", "--epsilon", "20", "--neighbours", "replace-one"),
        *("--method", "ireduct:relative-error=0.2,above=100", "--sanity-bound", "100", "--runs", "2", "--seed", "1"),
    )
    assert stopped["results"][0]["spent"] < 10, "the target is met before the budget is used up"
    assert stopped["results"][0]["sanity_bound"] == 100


def test_data_may_come_from_a_query(document):
    query = ["--query", "SELECT * FROM 'titanic.csv' WHERE class <> 'crew'"]
    read = document(
        *("evaluate", "--schema", "titanic.yaml", "--workload", "class", *BUDGET, *query),
        *("--method", "proportional", "--runs", "2", "--seed", "1"),
    )
    assert read["results"][0]["overall_error"] > 0


def test_queries_are_compared(desk, document):
    (desk / "q.csv").write_text("1,1,0,0\n0,0,1,1\n1,0,0,0\n")
    read = document("evaluate", *DATA, "--queries", "class:q.csv", *BUDGET, "--runs", "2")
    assert all(0 < result["overall_error"] < 1 for result in read["results"])


def test_a_classifier_is_made(done, document):
    asked = ["evaluate", *DATA, "--classify", "survived", *BUDGET, "--folds", "4", "--seed", "1", "--method", "ireduct"]
    out, err = done(*asked)
    assert "accuracy" in out and "exact" in out and "4 folds" in out and WARNING in err
    read = document(*asked)
    exact, noisy = read["results"]
    assert read["classify"] == "survived" and "workload" not in read
    assert exact["method"] == "exact" and exact["epsilon"] is None and exact["overall_error"] == 0
    assert 0.7 < noisy["accuracy"] < 0.85 and noisy["accuracy"] == pytest.approx(exact["accuracy"], abs=0.05)
    assert document(*asked)["results"][1]["accuracy"] == noisy["accuracy"]


def test_help_offers_what_is_taken(done):
    out, _ = done("evaluate", "--help")
    assert "--method NAME" in out and "--classify ATTRIBUTE" in out and "--sanity-bound" in out
    assert "--strategy" not in out and "--rho" not in out


def without(arguments, *names):
    """The arguments without some options and their values."""
    kept = zip(arguments[::2], arguments[1::2], strict=True)
    return [word for pair in kept if pair[0] not in names for word in pair]


CLASSIFY = [*DATA, *BUDGET, "--classify", "survived"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([*ASKED, "--method", "nonsense"], "--method: 'nonsense' is unknown"),
        ([*ASKED, "--runs", "0"], "runs: 0 is less than one"),
        ([*ASKED, "--seed", "-1"], "seed: -1 is negative"),
        ([*ASKED, "--strategy", "ireduct"], "--strategy: methods are compared by name"),
        ([*ASKED, "--rho", "1"], "--rho: methods are compared under pure epsilon"),
        ([*ASKED, "--delta", "1e-6"], "--delta: methods are compared under pure epsilon"),
        ([*ASKED, "--folds", "3"], "--folds: nothing is to be predicted"),
        ([*ASKED, "--classify", "survived"], "--workload: cannot be combined with --classify"),
        ([*CLASSIFY, "--queries", "q.csv"], "--queries: cannot be combined with --classify"),
        ([*CLASSIFY, "--runs", "3"], "--runs: cannot be combined with --classify"),
        ([*CLASSIFY, "--folds", "1"], "folds: 1 is less than two"),
        ([*CLASSIFY, "--folds", "9999"], "folds: there are more folds than rows"),
        ([*CLASSIFY[:-1], "nonsense"], "--classify: 'nonsense' is not in the schema"),
        (without(CLASSIFY, "--schema"), "--schema: is not given"),
        (without(ASKED, "--schema"), "--schema: is not given"),
        (without(ASKED, "--workload"), "--workload: is not given"),
        (without(ASKED, "--data"), "--data: is not given"),
        (without(ASKED, "--epsilon"), "epsilon"),
        (without(ASKED, "--neighbours"), "neighbours"),
        (without(ASKED, "--sanity-bound"), "--sanity-bound: is not given"),
        ([*without(ASKED, "--sanity-bound"), "--sanity-bound", "1%"], "--sanity-bound: is a share of the people"),
        ([*without(ASKED, "--epsilon"), "--epsilon", "nonsense"], "epsilon"),
        ([*ASKED, "--method", "ireduct:lambda-max=1"], "--method ireduct:lambda-max: epsilon is too small to start"),
        ([*without(ASKED, "--data"), "--data", "nowhere.csv"], "data"),
        ([*without(ASKED, "--data"), "--data", "people.csv"], "the data has no column"),
        ([*without(CLASSIFY, "--data"), "--data", "people.csv"], "the data has no column"),
        ([*ASKED, "--budgets", "nonsense"], "budgets"),
    ],
)
def test_what_is_wrong_is_refused(refused, arguments, told):
    refused(arguments, told)
