"""Runs side by side and kept in a file: the same whatever their number, their order and where they were stopped."""

import json
import multiprocessing
import os
import signal
import stat
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from helpers import MemoryEngine, make_schema, random_codes
from hushcube import errors
from hushcube.errors import BadInput, HushcubeError, OutputError, ResourceError, TooLarge
from hushcube.experiments.contender import Contender
from hushcube.experiments.errors import RunErrors
from hushcube.experiments.experiment import evaluate
from hushcube.experiments.kept import keeping
from hushcube.experiments.runs import side_by_side
from hushcube.experiments.trial import Trial
from hushcube.model.privacy import Privacy
from hushcube.model.workload import Workload

SIZES = (2, 3, 4)
SCHEMA = make_schema(SIZES)
CODES = random_codes(SIZES, 300, seed=4)
ORDERS = [(at, run) for run in range(4) for at in range(3)]


def tried(words="<=2-way", codes=CODES, epsilon=("1", "1/10"), **changed):
    trial = Trial(
        methods=["dwork", "ireduct", "oracle"],
        privacies=[Privacy.of(epsilon=one, neighbours="add-remove") for one in epsilon],
        **{"sanity_bound": 5, "runs": 4, "seed": 7, "workers": 1, **changed},
    )
    found, _ = evaluate(Workload.parse(words, SCHEMA), MemoryEngine(codes), trial)
    return [replace(result, seconds=0, planning_seconds=0) for result in found]


def numbered(at, run):
    return RunErrors(*(np.array([float(at), run, i]) for i in range(5)), spent=float(os.getpid()))


class Stop(Exception):
    """Somebody had enough."""


def stopping(after):
    """Progress that stops an experiment after some runs."""
    done = []

    def progress(stage, share):
        if stage not in ("planning", "counting"):
            done.append(share)
            if len(done) == after:
                raise Stop

    progress.done = done
    return progress


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_processes():
    alone = tried()
    for workers in (2, 3, 50):
        assert tried(workers=workers) == alone


@pytest.mark.parametrize("workers", [1, 2])
def test_results_do_not_depend_on_where_an_experiment_was_stopped(tmp_path, workers):
    whole, keep = tried(), tmp_path / "runs.jsonl"
    with pytest.raises(Stop) as stopped:
        tried(keep=keep, workers=workers, progress=stopping(after=5))
    assert stopped.value.__notes__ == [f"5 of 24 runs are kept in {keep}, and the same command goes on"]
    assert len(keep.read_text().splitlines()) == 1 + 5
    assert not multiprocessing.active_children()
    rest = stopping(after=-1)
    assert tried(keep=keep, workers=workers, progress=rest) == whole
    assert rest.done == [n / 24 for n in range(6, 25)], "what was kept is not run again"
    assert stat.S_IMODE(keep.stat().st_mode) == 0o600, "it is not private"


def test_settings_and_runs_may_be_added(tmp_path, monkeypatch):
    keep, ran = tmp_path / "runs.jsonl", []
    tried(keep=keep, epsilon=["1"], runs=2)
    run = Contender.run
    monkeypatch.setattr(Contender, "run", lambda *given: (ran.append(given), run(*given))[1])
    assert tried(keep=keep) == tried()
    assert len(ran) == (24 - 6) + 24


def test_a_torn_line_is_cut_off(tmp_path):
    keep, whole = tmp_path / "runs.jsonl", tried()
    tried(keep=keep, runs=2)
    text = keep.read_bytes()
    keep.write_bytes(text[:-20])
    assert tried(keep=keep) == whole
    assert len(keep.read_bytes().splitlines()) == 1 + 24
    assert all(json.loads(line) for line in keep.read_text().splitlines())


@pytest.mark.parametrize(
    ("changed", "another"),
    [
        ({"seed": 8}, "seed"),
        ({"seed": None}, "seed"),
        ({"sanity_bound": 6}, "sanity bound"),
        ({"words": "2-way"}, "workload"),
        ({"codes": CODES[1:]}, "data set"),
    ],
)
def test_runs_of_another_experiment_are_refused(tmp_path, changed, another):
    keep = tmp_path / "runs.jsonl"
    tried(keep=keep, runs=1)
    before = keep.read_bytes()
    with pytest.raises(BadInput, match=f"keep: the runs in .* another experiment, with another {another}. Fix: name a"):
        tried(keep=keep, **changed)
    assert keep.read_bytes() == before


@pytest.mark.parametrize("text", ["hello", "hello\n", "{}\n", "[1]\n", '{"kept": "recipes"}\n'])
def test_other_files_are_refused_and_left_alone(tmp_path, text):
    keep = tmp_path / "runs.jsonl"
    keep.write_text(text)
    with pytest.raises(BadInput, match=r"keep: .* is not a file of runs"):
        tried(keep=keep)
    assert keep.read_text() == text


def test_places_where_no_file_can_be_are_refused(tmp_path):
    for keep in (tmp_path / "nowhere" / "runs.jsonl", tmp_path, tmp_path / ("z" * 300), Path("/dev/null")):
        with pytest.raises(OutputError, match="keep: "):
            tried(keep=keep)


def test_a_file_is_written_by_one_process(tmp_path):
    keep = tmp_path / "runs.jsonl"
    with keeping(keep, {}), pytest.raises(BadInput, match="another process keeps its runs"), keeping(keep, {}):
        pass


def test_errors_are_kept_digit_for_digit():
    first = numbered(1, 2)
    again = RunErrors.from_dict(json.loads(json.dumps(first.to_dict())))
    assert all((getattr(first, name) == getattr(again, name)).all() for name in ("mean", "largest_relative"))
    assert again.spent == first.spent and np.isnan(again.accuracy)


def test_every_order_is_carried_out_once():
    for workers in (1, 2, 20):
        found = dict(side_by_side(numbered, ORDERS, workers))
        assert {order: tuple(errors.mean[:1]) for order, errors in found.items()} == {o: (o[0],) for o in ORDERS}
        assert len({errors.spent for errors in found.values()}) <= workers
    assert os.getpid() not in {errors.spent for _, errors in side_by_side(numbered, ORDERS, 2)}
    assert list(side_by_side(numbered, [], 3)) == []


def test_what_fails_in_a_process_is_raised():
    def failing(at, run):
        if (at, run) == (1, 1):
            raise TooLarge("face", 10**9, 10**8, "ask for less")
        return numbered(at, run)

    with pytest.raises(TooLarge, match="Fix: ask for less") as problem:
        list(side_by_side(failing, ORDERS, 2))
    assert (problem.value.field, problem.value.cells) == ("face", 10**9)


def test_a_process_that_is_killed_is_told_about():
    def dying(at, run):
        if run == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return numbered(at, run)

    with pytest.raises(ResourceError, match=r"memory ran out.*Fix: use fewer `workers`"):
        list(side_by_side(dying, ORDERS, 2))


def test_no_process_is_left_behind():
    running = side_by_side(numbered, ORDERS, 2)
    pids = {int(next(running)[1].spent) for _ in range(6)}
    running.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


EXAMPLES = {
    "NotApplicable": ("cover", "it is cloudy"),
    "BudgetExceeded": (Fraction(2), 1.0, "epsilon"),
    "TooLarge": ("face", 10, 5),
    "NotEnoughBudget": ("people", Fraction(2), Fraction(1), "epsilon"),
    "OutOfReach": ("age*sex", Fraction(2), Fraction(1), "rho", 5.0),
    "UnknownAccount": ("people",),
    "NoLedger": ("ledger.db",),
    "TimeLimitReached": (3.0, "rounding"),
    "MissingDependency": ("altair", "drawing", "charts"),
    "HushcubeError": ("something",),
}


@pytest.mark.parametrize(
    "kind", [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, HushcubeError)]
)
def test_every_error_reaches_another_process_whole(kind):
    import pickle

    problem = kind(*EXAMPLES.get(kind.__name__, ("field", "problem", "fix")))
    again = pickle.loads(pickle.dumps(problem))
    assert (type(again), str(again), vars(again)) == (kind, str(problem), vars(problem))


def test_the_folder_is_checked_before_the_data_is_read(tmp_path):
    class Unread:
        def count(self, *_wanted, **_more):
            raise AssertionError("the data was read")

    privacies = [Privacy.of(epsilon=1, neighbours="add-remove")]
    trial = Trial(methods=["dwork"], privacies=privacies, keep=Path(tmp_path, "nowhere", "runs.jsonl"))
    with pytest.raises(BadInput, match="keep: "):
        evaluate(Workload.parse("1-way", SCHEMA), Unread(), trial)
