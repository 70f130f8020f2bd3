"""Generated commands: the short form of the fuzzing, and that each of its requirements can be broken."""

import sys
import time
from pathlib import Path

import pytest

from audit.fuzz import judge
from audit.fuzz.commands import make_case
from audit.fuzz.driver import SEED, SHORT, figures, run_case, workshop
from audit.fuzz.hostile import CANARY
from hushcube.private.noise import SystemEntropy

AT_ONCE = 50


@pytest.fixture(scope="module")
def shop():
    """A folder for cases, and the pool of releases."""
    with workshop() as places:
        yield places


@pytest.mark.parametrize("first", range(0, SHORT, AT_ONCE))
def test_generated_commands_are_answered_or_refused(shop, first):
    cases = [run_case(SEED, number, *shop) for number in range(first, first + AT_ONCE)]
    broken = [str(case) for case in cases if case.broken]
    assert not broken, "\n\n".join(broken)


def test_a_case_is_the_same_each_time(shop, tmp_path):
    _, pool = shop
    for number in range(40):
        places = [tmp_path / f"{number}-{again}" for again in range(2)]
        for place in places:
            place.mkdir()
        first, second = (make_case(SEED, number, place, pool) for place in places)
        assert first == second
        one, two = (sorted(str(path.relative_to(place)) for path in place.rglob("*")) for place in places)
        assert one == two


def test_the_figures_are_those_of_the_cases(monkeypatch):
    monkeypatch.setattr("audit.fuzz.driver.SHORT", 20)
    found = figures("short")
    assert found["violations"] == 0
    assert found["figures"]["cases"] == 20 == sum(count for _, count in found["table"]["rows"])


# --------------------------------------------------------------------------------------------- what the judge finds


def refusing(arguments):
    print("hushcube: field: problem. Fix: fix.", file=sys.stderr)
    return 2


def crashing(arguments):
    raise KeyError("x")


def warning(arguments):
    import warnings

    warnings.warn("overflow", RuntimeWarning, stacklevel=1)
    return 0


def hanging(arguments):
    time.sleep(60)


def interrupted(arguments):
    return 130


def without_a_fix(arguments):
    print("hushcube: no", file=sys.stderr)
    return 2


def without_a_reason(arguments):
    print("hushcube: the moon is full", file=sys.stderr)
    return 1


def littering(arguments):
    Path("litter.txt").write_text("x")
    return refusing(arguments)


def littering_elsewhere(arguments):
    Path("../litter.txt").write_text("x")
    return 0


def changing(arguments):
    Path("schema.yaml").write_text("other")
    return refusing(arguments)


def deleting(arguments):
    Path("schema.yaml").unlink()
    return 0


def promising(arguments):
    return 0


def spending(arguments):
    SystemEntropy().words(1)
    return refusing(arguments)


def not_a_number(arguments):
    print('{"error": NaN}')
    return 0


def two_documents(arguments):
    print("{}\n{}")
    return 0


def steering(arguments):
    print("\x1b[2J", file=sys.stderr)
    return 0


def turning(arguments):
    print("a\u202eb", file=sys.stderr)
    return refusing(arguments)


def leaking(arguments):
    print(f"hushcube: data: {CANARY} is not a number. Fix: fix.", file=sys.stderr)
    return 2


@pytest.mark.parametrize(
    ("command", "options", "requirement"),
    [
        (crashing, [], "message: unexpected KeyError"),
        (warning, [], "message: unexpected RuntimeWarning"),
        (hanging, [], "hang"),
        (interrupted, [], "code: 130"),
        (without_a_fix, [], "message: exit 2 without a fix"),
        (without_a_reason, [], "message: exit 1 for an undocumented reason"),
        (littering, [], "litter: 'litter.txt' was left"),
        (littering_elsewhere, [], "litter: '../litter.txt' was left"),
        (changing, [], "litter: 'schema.yaml' was changed"),
        (deleting, [], "litter: 'schema.yaml' was lost"),
        (promising, ["--out", "plan.json"], "litter: 'plan.json' was promised"),
        (spending, [], "spent: noise was drawn"),
        (not_a_number, ["--json"], "json: standard output is no document"),
        (two_documents, ["--json"], "json: standard output is no document"),
        (promising, ["--json"], "json: standard output is no document"),
        (steering, [], "printed: '\\x1b' on standard error"),
        (turning, [], "printed: '\\u202e' on standard error"),
        (leaking, [], "canary: a value of the data"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_broken_requirement_is_found(command, options, requirement, tmp_path, monkeypatch):
    place = tmp_path / "desk"
    place.mkdir()
    (place / "schema.yaml").write_text("name: people")
    monkeypatch.setattr(judge, "run", command)
    broken, _ = judge.judged(["plan", *options], place, apart=False, seconds=1 if command is hanging else 60)
    assert [told.startswith(requirement) for told in broken] == [True]


def test_a_plain_refusal_breaks_nothing(tmp_path, monkeypatch):
    place = tmp_path / "desk"
    place.mkdir()
    monkeypatch.setattr(judge, "run", refusing)
    assert judge.judged(["plan", "--json"], place, apart=False, seconds=60)[0] == []


def test_a_process_of_its_own_is_judged_alike(tmp_path):
    place = tmp_path / "desk"
    place.mkdir()
    broken, outcome = judge.judged(["plan", "--json"], place, apart=True, seconds=60)
    assert (broken, outcome.code) == ([], 2)
