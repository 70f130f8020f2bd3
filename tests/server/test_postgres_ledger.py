"""A server whose ledger is in Postgres: the same questions, charged there, and each of them once."""

from fractions import Fraction

import pytest

import hushcube as hc
from hushcube.server.serving import _one_ledger
from postgres_server import PASSWORD, Server
from server.hospital_desk import Hospital, lay_out

pytestmark = pytest.mark.service


@pytest.fixture
def place(monkeypatch):
    """Where its ledger is; who asks the database comes from the environment, as everywhere."""
    started = Server()
    monkeypatch.setenv("PGUSER", "owner")
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    yield f"postgresql://127.0.0.1:{started.port}/postgres#hospital"
    started.close()


def test_a_question_is_charged_once_in_postgres_and_read_again(place, tmp_path):
    folder = lay_out(tmp_path, ledger=place)
    found = _one_ledger([folder / "stays", folder / "others"])  # where `hushcube serve` looks for it
    assert found == place and not (folder / "ledger.db").exists()
    with Hospital(folder, ledger=found) as hospital:
        price = Fraction(hospital.offer("age*sex").json()["price"])
        first = hospital.ask("age*sex", "once")
        assert first.status_code == 200 and Fraction(first.json()["charged"]) == price > 0
        assert hospital.ask("age*sex", "once").json()["columns"] == first.json()["columns"]
        assert hospital.stored("age*sex").json()["columns"] == first.json()["columns"]
        mine = hospital("GET", "/me").json()["accounts"][0]
        assert Fraction(mine["spent"]) == price == hospital.spent
    with hc.Ledger.open(place) as ledger:
        (charge,) = ledger.charges("hospital")
        assert (charge.who, charge.spent, charge.state) == ("dana", price, "published")
        assert not ledger.charges("elsewhere") and ledger.verify().holds
