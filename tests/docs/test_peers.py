"""Other libraries beside hushcube: the judge, why one is skipped, and the page. None of them is installed for this."""

import sys

import numpy as np
import pytest
from benchmarks.peers import __main__ as peers
from benchmarks.peers.judge import compared, judge
from benchmarks.peers.one_job import Job

CODES = np.array([[0, 0], [0, 1], [1, 2], [1, 2]])
JOB = Job((2, 3), ((0,), (0, 1)), CODES, epsilon=1.0)


def test_the_judge_measures_errors_against_exact_counts():
    off = [np.array([2.0, 5.0]), np.array([[1.0, 1.0, -4.0], [0.0, 0.0, 2.0]])]
    assert judge(JOB, off) == pytest.approx({"mean_error": 7 / 8, "max_error": 4.0, "rmse": (25 / 8) ** 0.5})
    exact = [JOB.exact(table) for table in JOB.tables]
    assert judge(JOB, exact) == {"mean_error": 0.0, "max_error": 0.0, "rmse": 0.0}


MISSING, MISSHAPEN = [np.zeros(2)], [np.zeros(3), np.zeros((2, 3))]
UNKNOWN = [np.zeros(2), np.full((2, 3), np.nan)]


@pytest.mark.parametrize("wrong", [MISSING, MISSHAPEN, UNKNOWN], ids=["missing", "misshapen", "unknown"])
def test_the_judge_refuses_what_is_not_the_tables(wrong):
    with pytest.raises(ValueError, match="table"):
        judge(JOB, wrong)


def test_ratios_are_over_the_yardstick_and_only_of_what_ran():
    ours = {"tool": "hushcube", "seconds": 2.0, "peak_GB": 0.5, "mean_error": 3.0, "rmse": 4.0}
    other = {"tool": "other", "seconds": 6.0, "peak_GB": 1.0, "mean_error": 1.5, "rmse": 4.0}
    _, told, none = compared([ours, other, {"tool": "absent", "skipped": "no package"}], "hushcube")
    assert (told["time_ratio"], told["memory_ratio"], told["mean_error_ratio"], told["rmse_ratio"]) == (3, 2, 0.5, 1)
    assert none == {"tool": "absent", "skipped": "no package"}


def test_what_is_not_installed_is_skipped_with_the_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "ROOT", tmp_path)
    with pytest.raises(peers.Skipped, match="make peers"):
        peers.interpreter("opendp")


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("print('it has no zCDP'); raise SystemExit(3)", "^it has no zCDP$"),
        ("import no_such_library", "No module named 'no_such_library'"),
        ("import time; time.sleep(60)", "more than 0.2 seconds"),
    ],
)
def test_a_library_that_cannot_do_a_job_is_skipped_with_the_reason(program, reason, tmp_path, monkeypatch):
    (tmp_path / "with_other.py").write_text(program)
    monkeypatch.setattr(peers, "LIMIT", 0.2 if "sleep" in program else 60)
    with pytest.raises(peers.Skipped, match=reason):
        peers.run(sys.executable, tmp_path / "with_other.py", JOB)


def test_hushcube_answers_a_job_in_a_process_of_its_own():
    job = Job((2, 3), ((0,), (0, 1)), np.repeat(CODES, 1000, axis=0), rho=0.5)
    told = peers.run(sys.executable, peers.HERE / "with_hushcube.py", job)
    assert 0 < told["mean_error"] < 20 and told["seconds"] > 0 and told["peak_GB"] > 0


def test_there_is_a_stand_in_where_the_data_is_not(monkeypatch, tmp_path):
    monkeypatch.setenv("HUSHCUBE_SHARED_DATA", str(tmp_path))
    for task in peers.TASKS.values():
        job = task.job()
        assert len(job.codes) > 20_000 and (job.codes.max(axis=0) < job.sizes).all()


def test_every_library_has_its_program_and_its_package():
    for peer in set(peers.PEERS) - {peers.OURS}:
        assert (peers.HERE / f"with_{peer}.py").is_file()
        assert "//" not in (peers.HERE / "requirements" / f"{peer}.txt").read_text()


def test_a_part_of_the_page_is_renewed_and_the_others_stay():
    page = f"# Title\n\ntext\n\n{peers.MARK}\n"
    for name, words in (("rho", "old"), ("histograms", "kept"), ("rho", "new")):
        page = peers.with_part(page, name, f"<!-- part: {name} -->\n\n## {name}\n\n{words}\n")
    assert page.startswith("# Title\n\ntext\n") and page.count(peers.MARK) == 1 and "old" not in page
    assert page.index("kept") < page.index("new")
