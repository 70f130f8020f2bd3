"""A session from its opening to its export: what is free, what is charged, what is refused, and what a crash leaves."""

import json
from fractions import Fraction

import numpy as np
import pytest

import hushcube as hc
from hushcube.verbs import charging

SCHEMA = hc.Schema(
    [
        hc.Attribute("sex", values=["F", "M"]),
        hc.Attribute("age", range=(0, 4), ordered=True),
        hc.Attribute("region", values=["n", "e", "s", "w"]),
    ],
    "people",
)
ADD = {"neighbours": "add-remove"}


@pytest.fixture
def place(tmp_path):
    """A folder with people and a ledger that has accounts of every kind."""
    rng = np.random.default_rng(0)
    columns = {a.name: np.array(a.labels)[rng.integers(0, a.size, 400)] for a in SCHEMA.attributes}
    lines = [",".join(columns), *(",".join(row) for row in zip(*columns.values(), strict=True))]
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    with hc.Ledger.create(tmp_path / "ledger.db") as ledger:
        ledger.create_account("rho", rho=1, **ADD)
        ledger.create_account("epsilon", epsilon=2, **ADD)
        ledger.create_account("delta", epsilon=1, delta="1e-6", **ADD)
        ledger.create_account("replaced", rho=1, neighbours="replace-one")
        ledger.create_account("elsewhere", rho=1, source="/elsewhere.csv", **ADD)
        ledger.create_account("persons", rho=1, unit="id", **ADD)
        ledger.create_account("locked", rho=1, **ADD)
        ledger.lock("locked")
    return tmp_path


def opened(place, account="rho", name="session", schema=SCHEMA, **given):
    return hc.Session.open(
        schema,
        **{"ledger": place / "ledger.db", "data": str(place / "people.csv"), **given},
        account=account,
        folder=place / name,
    )


@pytest.mark.parametrize("account", ["rho", "epsilon", "delta", "replaced"])
def test_a_session_from_its_opening_to_its_export(place, account):
    policy = hc.Policy(ahead=account != "epsilon")  # otherwise the first table answers all questions
    with opened(place, account, policy=policy) as session:
        whole = session.account.left
        assert session.stored("sex") is None and session.questions() == []
        offer = session.offer("age*sex", std_error=8)
        assert offer.granted and not offer.free and offer.std_error <= 8 * (1 + 1e-9)
        assert session.account.left == whole  # an offer spends nothing
        first = session.ask("age*sex", std_error=8)
        assert (first.charged, first.version, first.table.attributes) == (offer.price, 1, ("age", "sex"))
        assert first.std_error == pytest.approx(8) and session.account.left == whole - offer.price
        again = session.ask(["sex", "age"], std_error=8)
        assert again.free and again.version == 1 and session.account.left == whole - offer.price
        second = session.ask("age*region", relative_error="0.08", above=100)
        assert second.std_error <= 8 * (1 + 1e-9) and second.version == 2
        spent = session.ask("total", **{session.account.currency: "0.01"})
        assert spent.charged <= Fraction("0.01")
        better = session.stored("age*sex")
        assert better.free and better.std_error < first.std_error and better.version == 3  # earlier answers improve
        by_age = [session.stored(q).table.values for q in ("age", "age*sex", "age*region")]
        for values in (by_age[1].sum(axis=1), by_age[2].sum(axis=1)):
            np.testing.assert_allclose(values, by_age[0], atol=1e-9)
        assert [each.question for each in session.questions()] == ["sex*age", "sex*age", "age*region", "total"]
        release, paid = session.export(place / "published"), session.account
        told = [each.epsilon or each.rho for each in (release.plan.privacy, release.plan.count.spent)]
        assert told == [paid.total, paid.spent]  # what comes next was chosen by earlier answers: the account promises
        assert hc.verify(place / "published").holds
        table = release.table("age*sex")
        np.testing.assert_allclose(table.values, better.table.values, atol=1e-9)
        np.testing.assert_allclose(table.std_errors, better.table.std_errors, rtol=1e-9)
    with hc.Session.resume(place / "session") as later:
        same = later.stored("age*sex")
        assert (same.table.values == better.table.values).all() and later.version == 3 and not later.unfinished
        assert later.ask("age*region", std_error=8).free
        assert "4" not in json.dumps(later.to_dict()["unfinished"]) and "std_error" in str(later)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_under_epsilon_what_lacks_of_a_table_of_bits_is_measured_and_exported(tmp_path, neighbours):
    """Pairs are measured as tables, and then one coefficient of the triple; all of it agrees, and is published."""
    schema = hc.Schema([hc.Attribute(name, values=["no", "yes"]) for name in "abc"], "bits")
    rng = np.random.default_rng(1)
    rows = [",".join(np.array(["no", "yes"])[rng.integers(0, 2, 3)]) for _ in range(300)]
    (tmp_path / "people.csv").write_text("\n".join(["a,b,c", *rows]) + "\n")
    with hc.Ledger.create(tmp_path / "ledger.db") as ledger:
        ledger.create_account("pure", epsilon=9, neighbours=neighbours)
    with opened(tmp_path, "pure", schema=schema, policy=hc.Policy(ahead=False)) as session:
        for pair in ("a*b", "a*c", "b*c"):
            session.ask(pair, std_error=4)
        offer = session.offer("a*b*c", std_error=4)
        assert offer.measures == "1 Fourier coefficient of a*b*c"
        answer = session.ask("a*b*c", std_error=4)
        assert answer.charged == offer.price and answer.std_error == pytest.approx(4, rel=1e-6)
        pair = session.stored("a*b").table
        np.testing.assert_allclose(answer.table.values.sum(axis=2), pair.values, atol=1e-9)
        release = session.export(tmp_path / "published")
        assert hc.verify(tmp_path / "published").holds
        table = release.table("a*b*c")
        np.testing.assert_allclose(table.values, answer.table.values, atol=1e-9)
        np.testing.assert_allclose(table.std_errors, answer.table.std_errors, rtol=1e-9)
    with hc.Session.resume(tmp_path / "session") as later:
        assert (later.stored("a*b*c").table.values == answer.table.values).all()


QUESTIONS = {
    "an attribute that is not there": ({"question": "height", "std_error": 5}, "attribute"),
    "an attribute twice": ({"question": "sex*sex", "std_error": 5}, "marginal"),
    "several tables": ({"question": "sex,age", "std_error": 5}, "question"),
    "a range": ({"question": "prefix(age)", "std_error": 5}, "question"),
    "a sum": ({"question": "sum(days)", "std_error": 5}, "question"),
    "an empty name": ({"question": "sex*", "std_error": 5}, "question"),
    "a level that is not declared": ({"question": "age@band", "std_error": 5}, "attribute"),
    "no target": ({"question": "sex"}, "std_error"),
    "two targets": ({"question": "sex", "std_error": 5, "rho": 1}, "std_error"),
    "a relative error of nothing": ({"question": "sex", "relative_error": "0.1"}, "above"),
    "counts without a relative error": ({"question": "sex", "std_error": 5, "above": 5}, "above"),
    "another currency": ({"question": "sex", "epsilon": 1}, "epsilon"),
    "an error that is none": ({"question": "sex", "std_error": 0}, "std_error"),
    "no number": ({"question": "sex", "std_error": "a few"}, "std_error"),
    "an amount that is too small": ({"question": "sex", "rho": "1e-12"}, "rho"),
    "more than is left": ({"question": "age*sex*region", "rho": 2}, "question"),
    "a finer error than can be paid": ({"question": "age*sex*region", "std_error": "0.69"}, "question"),
    "a finer error than whole numbers have": ({"question": "sex", "std_error": "0.01"}, "question"),
}


def test_what_is_refused_costs_nothing(place):
    with opened(place) as session:
        for asked, field in QUESTIONS.values():
            for verb in (session.ask, session.offer):
                if verb == session.offer and field == "question" and "(" not in asked["question"]:
                    continue  # an offer says that it is out of reach, and refuses nothing
                with pytest.raises(hc.BadInput) as refused:
                    verb(**asked)
                assert refused.value.field == field, asked
        assert session.account.spent == 0 and session.version == 0
        assert [path.name for path in (place / "session" / "steps").iterdir()] == []


def test_a_target_out_of_reach_says_what_could_be_had(place):
    with opened(place) as session:
        with pytest.raises(hc.OutOfReach, match="nothing is charged") as refused:
            session.ask("age*sex", std_error="0.6")
        offer = session.offer("age*sex", std_error="0.6")
        assert not offer.granted and offer.to_dict()["std_error"] is None
        assert refused.value.std_error == offer.could
        had = session.ask("age*sex", std_error=offer.could * 1.001)
        assert had.std_error <= offer.could * 1.001 * (1 + 1e-9)


OPENINGS = {
    "a locked account": ({"account": "locked"}, "account"),
    "no such account": ({"account": "nobody"}, "account"),
    "another account's data": ({"account": "elsewhere"}, "data"),
    "another unit": ({"account": "persons"}, "unit"),
    "no such data": ({"data": "missing.csv"}, "data"),
    "no ledger": ({"ledger": "missing.db"}, "ledger"),
    "an engine that is not there": ({"engine": "abacus"}, "engine"),
    "a share that is none": ({"policy": {"largest": 2}}, "largest"),
    "an expected question of nothing": ({"policy": {"expected": ("height",)}}, "attribute"),
    "an expected range": ({"policy": {"expected": ("prefix(age)",)}}, "expected"),
}


@pytest.mark.parametrize("case", OPENINGS, ids=str)
def test_what_cannot_be_opened_leaves_nothing(place, case, monkeypatch):
    monkeypatch.chdir(place)
    given, field = OPENINGS[case]
    with pytest.raises(hc.BadInput) as refused:
        policy = {} if "policy" not in given else {"policy": hc.Policy(**given["policy"])}
        opened(place, **{**given, **policy})
    assert refused.value.field == field
    assert not (place / "session").exists()


def test_a_folder_is_never_overwritten_and_must_be_a_session(place):
    opened(place).close()
    with pytest.raises(hc.OutputError, match="exists"):
        opened(place)
    (place / "other").mkdir()
    with pytest.raises(hc.SessionError):
        hc.Session.resume(place / "other")
    (place / "session" / "session.json").write_text('{"format": 1}')
    with pytest.raises(hc.SessionError, match="session"):
        hc.Session.resume(place / "session")


def test_a_policy_limits_what_is_spent(place):
    policy = hc.Policy(kept="0.5", largest="0.25", expected=("sex*age",))
    with opened(place, policy=policy) as session:
        assert session.offer("sex", rho="0.3").allowed == Fraction(1, 4)
        with pytest.raises(hc.OutOfReach):
            session.ask("sex", rho="0.3")
        session.ask("sex", rho="0.25")
        session.ask("age", rho="0.25")
        offer = session.offer("region", std_error=100)
        assert not offer.granted and offer.allowed < Fraction(1, 10**6)
    with hc.Session.resume(place / "session") as later:
        assert later.policy == policy


# ------------------------------------------------------------------------------------------------------ what is left


class Crash(Exception):
    """A process that dies: nothing is cleaned up."""


def test_a_charge_without_noise_is_carried_out_without_a_second_one(place, monkeypatch):
    with opened(place) as session:
        monkeypatch.setattr(charging.Payment, "begin", lambda self: (_ for _ in ()).throw(Crash))
        with pytest.raises(Crash):
            session.ask("sex", std_error=5)
        monkeypatch.undo()
    with hc.Session.resume(place / "session") as later:
        ((charge,), paid) = later.unfinished, later.account.spent
        assert charge.amount == paid > 0 and "unfinished" in str(later) and later.version == 0
        assert later.ask("sex", std_error=5).free and later.version == 1
        assert later.account.spent == paid and not later.unfinished


def test_noise_that_was_lost_is_never_drawn_again(place, monkeypatch):
    with opened(place) as session:
        monkeypatch.setattr("hushcube.bundle.release.Release.save", lambda *a, **k: (_ for _ in ()).throw(Crash))
        monkeypatch.setattr(hc.Ledger, "abandon", lambda *a, **k: (_ for _ in ()).throw(hc.LedgerError("a", "b", "c")))
        with pytest.raises(Crash):
            session.ask("sex", std_error=5, key="mine")
        monkeypatch.undo()
    with hc.Session.resume(place / "session") as later:
        ((charge,), paid) = later.unfinished, later.account.spent
        with pytest.raises(hc.SessionError, match="lost"):
            later.ask("sex", std_error=5, key="mine")
        answer = later.ask("sex", std_error=5)
        assert later.account.spent == paid + answer.charged and later.version == 1
        assert [each.key for each in later.unfinished] == [charge.key]


def test_a_step_that_was_published_and_not_recorded_is_recorded(place, monkeypatch):
    with opened(place) as session:
        monkeypatch.setattr(charging.Payment, "publish", lambda self, done: (_ for _ in ()).throw(Crash))
        with pytest.raises(Crash):
            session.ask("sex", std_error=5)
        monkeypatch.undo()
    with hc.Session.resume(place / "session") as later:
        assert later.version == 1 and len(later.unfinished) == 1  # it is there, and it was paid for
        paid = later.account.spent
        assert later.ask("sex", std_error=5).free and not later.unfinished
        assert later.account.spent == paid


def test_a_key_stands_for_one_question(place):
    with opened(place) as session:
        first = session.ask("sex", std_error=5, key="mine")
        again = session.ask("sex", std_error=1.8, key="mine")
        assert again.free and (again.table.values == first.table.values).all()
        with pytest.raises(hc.SessionError, match="mine"):
            session.ask("age", std_error=5, key="mine")
        assert session.account.spent == first.charged


def test_what_was_noted_and_never_charged_is_forgotten(place, monkeypatch):
    with opened(place) as session:
        monkeypatch.setattr("hushcube.session.folder.SessionFolder.forget", lambda *a: None)  # it dies before
        monkeypatch.setattr(hc.Ledger, "charge", lambda *a, **k: (_ for _ in ()).throw(Crash))
        with pytest.raises(Crash):
            session.ask("sex", std_error=5, key="mine")
        monkeypatch.undo()
        assert [path.name for path in (place / "session" / "steps").iterdir()] == ["0001.json"]
    with hc.Session.resume(place / "session") as later:
        assert not later.unfinished and later.account.spent == 0
        answer = later.ask("sex", std_error=5, key="mine")
        assert answer.charged == later.account.spent > 0


def test_a_session_is_found_from_anywhere_and_keeps_its_addresses(place, monkeypatch):
    monkeypatch.chdir(place)
    opened(place, data="people.csv", ledger="ledger.db").close()
    assert (place / "session" / "session.json").stat().st_mode & 0o077 == 0
    monkeypatch.chdir(place.parent)
    with hc.Session.resume(place / "session") as later:
        assert later.ask("sex", std_error=5).version == 1


def test_two_processes_share_what_they_measure(place):
    with opened(place) as one, hc.Session.resume(place / "session") as other:
        asked = one.ask("sex*age", std_error=8)
        assert other.ask("sex*age", std_error=8).free and other.version == 1
        assert (other.stored("age").table.values == one.stored("age").table.values).all()
        assert other.ask("region", std_error=8).version == 2
        assert one.ask("region", std_error=8).free
        assert one.account.spent > asked.charged


def test_a_step_that_was_changed_is_not_believed(place):
    with opened(place) as session:
        session.ask("sex", std_error=5)
        session.ask("age", std_error=5)
    steps = place / "session" / "steps"
    (steps / "0001").rename(steps / "kept")
    (steps / "0002").rename(steps / "0001")
    with pytest.raises(hc.BundleError, match="step 1"):
        hc.Session.resume(place / "session")


def test_a_frame_is_given_again(place):
    import pandas as pd

    frame = pd.read_csv(place / "people.csv", dtype=str)
    with opened(place, data=frame) as session:
        session.ask("sex", std_error=5)
    with hc.Session.resume(place / "session") as later:
        assert later.ask("sex", std_error=5).free
        with pytest.raises(hc.SessionError, match="frame"):
            later.ask("age", std_error=5)
    with hc.Session.resume(place / "session", data=frame) as later:
        assert later.ask("age", std_error=5).version == 2


@pytest.mark.slow
def test_levels_are_asked_for_and_agree(place):
    region = hc.Attribute(
        "region",
        values=["n", "e", "s", "w"],
        levels=[{"name": "half", "groups": {"cold": ["n"], "warm": ["e", "s", "w"]}}],
    )
    schema = hc.Schema([*SCHEMA.attributes[:2], region], "people")
    for account in ("rho", "epsilon"):
        with opened(place, account, account, schema) as session:
            coarse = session.ask("sex*region@half", std_error=8)
            assert coarse.std_error <= 8 and coarse.table.attributes == ("sex", "region@half")
            fine = session.ask("region", std_error=8)
            assert fine.std_error <= 8 < 2 * fine.std_error and session.stored("age") is None
            halves = session.stored("region@half").table.values
            np.testing.assert_allclose(session.stored("sex*region@half").table.values.sum(axis=0), halves, atol=1e-9)
            np.testing.assert_allclose([fine.table.values[0], fine.table.values[1:].sum()], halves, atol=1e-9)
            assert session.ask("region@half", std_error=12).free
            session.export(place / f"{account}-out")
            assert hc.verify(place / f"{account}-out").holds
