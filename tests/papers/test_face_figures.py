"""`make faces` where the shared data is absent: people are made up, in the processes of the program too."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from benchmarks import face_values


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    """A clone beside which there is no data."""
    monkeypatch.setenv("HUSHCUBE_SHARED_DATA", str(tmp_path))


def test_people_are_made_up_with_the_same_sizes():
    schema, people, truth, made_up = face_values.data_of("Adult-8")
    assert made_up and schema.sizes == (9, 16, 7, 15, 6, 5, 2, 2) and people.num_rows == 32_561
    tables = truth.tables(np.array([[0, 1]], np.int32), (9, 16))
    assert tables.sum() == 32_561


def test_a_process_measures_what_the_data_would(monkeypatch):
    monkeypatch.setitem(face_values.OBJECTIVES, "workload", ("total-marginal",))
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        (row,) = pool.submit(face_values.barak, "workload").result()
    assert row["numbers fitted"] == 120 * 4 and row["largest L1 error of a table"] > 0


def test_the_page_stays_as_it_is(monkeypatch, capsys):
    class Here:
        """A pool whose work is done here."""

        def __init__(self, _workers):
            self.map = map

        __enter__ = __exit__ = lambda self, *_: self

        def submit(self, work, strategy):
            return self

        def result(self):
            return [{"strategy": "none"}]

    before = face_values.PAGE.read_bytes()
    monkeypatch.setattr(face_values, "ProcessPoolExecutor", Here)
    monkeypatch.setattr(face_values, "block", lambda case: ("none", [{"data": case[0][0]}]))
    face_values.main()
    assert "people were made up, and face-values.md stays as it is" in capsys.readouterr().out
    assert face_values.PAGE.read_bytes() == before
