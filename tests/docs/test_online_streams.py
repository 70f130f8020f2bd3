"""The benchmark of questions one by one: the optimum against vectors of the notes, contenders against each other."""

import numpy as np
import pytest
from benchmarks.online.__main__ import EPSILON, RHO, Setting, row
from benchmarks.online.contenders import a_or_b, alone, beforehand, one_by_one
from benchmarks.online.offline import least_rho
from benchmarks.online.streams import SCHEMAS, STREAMS

from hushcube.session.knowledge import Knowledge


@pytest.mark.parametrize(
    ("sizes", "targets", "rho"),
    [
        ((2, 3), {(0, 1): 2.0}, 1 / 4),
        ((3, 4), {(0,): 1.0, (0, 1): 2.0}, 20 / 31),
        ((3, 4, 2), {(0, 1): 4.0, (1, 2): 1.0, (0,): 0.5}, 1.4249989386),
    ],
    ids=str,
)
def test_the_least_rho_for_targets(sizes, targets, rho):
    found = least_rho(sizes, targets, 1e-10)
    assert found.bound == pytest.approx(rho, rel=1e-9)
    assert found.rho == pytest.approx(rho, rel=1e-9)


@pytest.mark.parametrize("name", STREAMS)
def test_streams_are_repeatable_and_ask_for_tables(name):
    first, second = (STREAMS[name](20, 250, np.random.default_rng(7)) for _ in range(2))
    assert first == second
    assert len(first) == 250
    assert all(list(question) == sorted(set(question)) and question[-1] < 20 for question in first)
    if name == "all 2-way":
        assert len(set(first[:190])) == 190
        assert {len(question) for question in first[190:]} == {3}


def test_schemas_are_those_of_the_page():
    assert SCHEMAS["20 binary"] == (2,) * 20
    assert (len(SCHEMAS["30 mixed"]), max(SCHEMAS["30 mixed"])) == (30, 100)


@pytest.mark.parametrize("account", [RHO, EPSILON], ids=str)
def test_choice_a_is_taken_where_nothing_is_magnified(account):
    """A table that is summed over an attribute of one value is as precise as its source; others are measured."""
    sizes, t = (2, 1, 3), 25.0 if account is RHO else 5000.0
    most = alone(sizes, t, account)
    stream = [(0, 1), (0,), (0, 2), (0,), (2,), (0, 1, 2)] + [(1, 2)] * most
    assert most >= 4
    assert a_or_b(sizes, stream, t, account) == len(stream)  # (0, 1), (0, 2) and (2,) are paid for
    assert a_or_b(sizes, [(0, 1, 2), (0,)], 1e9, RHO) == 2


@pytest.mark.parametrize(("stream", "times"), [("Zipf", 5), ("drill-down", 5), ("uniform", 2), ("all 2-way", 2)])
def test_a_session_answers_many_times_as_many_and_nearly_as_many_as_possible(stream, times):
    sizes, t = SCHEMAS["20 binary"], 36.0
    asked = STREAMS[stream](20, 300, np.random.default_rng(1))
    session = one_by_one(sizes, asked, t, RHO)
    assert alone(sizes, t, RHO) == 36 <= a_or_b(sizes, asked, t, RHO) < session
    assert session >= times * 36
    assert session <= beforehand(sizes, asked, t, 0.5) <= 2 * session


def test_what_is_counted_is_answered_within_the_account():
    """The optimum's beginning of the stream fits the account, and one question more does not."""
    sizes, t, rho = (2, 3, 4), 4.0, 0.5
    asked = STREAMS["uniform"](3, 60, np.random.default_rng(3))
    found = beforehand(sizes, asked, t, rho)
    assert least_rho(sizes, dict.fromkeys(asked[:found], t)).rho <= rho * (1 + 1e-9)
    assert found == 60 or least_rho(sizes, dict.fromkeys(asked[: found + 1], t)).bound > rho * (1 - 2e-3)
    assert Knowledge(sizes).variance(asked[0]) == np.inf


def test_lines_of_the_table_are_told_as_they_are():
    setting = Setting("20 binary", "Zipf", RHO, 5, (1,), 60)
    found = setting.run()
    told = row(setting, found)
    assert told["(a) alone"] == 25 == found["(a) alone"]
    assert told["session over (a)"] in (f"{found['session'] / 25:.1f}", f"over {found['session'] / 25:.1f}")
