"""What analysts get: offers, answers, stored answers in three forms, archives, and never more than their share."""

import csv
import io
import zipfile
from fractions import Fraction

import pyarrow as pa
import pytest

import hushcube as hc
from hushcube.samples import HOSPITAL


def test_an_offer_is_what_is_charged(hospital):
    offered = hospital.offer("age*sex").json()
    before = hospital.spent
    assert offered["price"] != "0" and not offered["free"] and offered["std_error"] <= 20
    answer = hospital.ask("age*sex", "offered").json()
    assert answer["charged"] == offered["price"] and hospital.spent - before == Fraction(offered["price"])
    again = hospital.offer("age*sex").json()
    assert (again["price"], again["free"]) == ("0", True)
    assert hospital.offer("sex", std_error=100).json()["free"]


def test_the_same_key_is_charged_once_and_answers_the_same(hospital):
    first = hospital.ask("diagnosis", "again")
    spent = hospital.spent
    second = hospital.ask("diagnosis", "again")
    assert first.json()["columns"] == second.json()["columns"] and hospital.spent == spent
    other = hospital.ask("diagnosis*sex", "again")
    assert other.status_code == 409 and other.json()["field"] == "key" and hospital.spent == spent
    assert hospital.ask("diagnosis", "again", "owner").status_code == 200  # a key of its own for every token


def test_a_stored_answer_is_the_same_in_every_form(hospital):
    hospital.ask("region*season", "forms")
    found = hospital.stored("region*season").json()
    assert set(found["columns"]) >= {"region", "season", "value", "std_error"}
    assert len(found["columns"]["value"]) == 24
    text = hospital.stored("region*season", format="csv")
    assert text.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(text.text)))
    assert [float(row["value"]) for row in rows] == found["columns"]["value"]
    arrow = hospital.stored("region*season", format="arrow")
    assert pa.ipc.open_stream(arrow.content).read_all().to_pydict() == found["columns"]


def test_stored_answers_get_better_with_what_others_ask(hospital):
    hospital.ask("ward", "coarse", std_error=30)
    before = hospital.stored("ward").json()
    hospital.ask("ward*admission", "finer", std_error=5)
    after = hospital.stored("ward").json()
    assert after["version"] > before["version"]
    assert max(after["columns"]["std_error"]) < min(before["columns"]["std_error"])


def test_an_analyst_cannot_spend_more_than_the_share(hospital):
    share = Fraction(hospital("GET", "/me").json()["accounts"][0]["left"])
    assert share <= Fraction("0.2")
    offered = hospital.offer("age*region*sex", rho=0.15).json()
    assert offered["granted"] == (Fraction(offered["price"]) <= share == Fraction(offered["allowed"]))
    dear = hospital.ask("age*region*sex", "dear-1", rho=0.15).status_code
    hospital.ask("age*region*season", "dear-2", rho=0.15)
    before = hospital.spent
    refused = hospital.ask("age*ward*sex", "dear-3", rho=0.15)
    assert dear in (200, 409) and refused.status_code == 409 and "share" in refused.json()["problem"]
    assert hospital.spent == before
    mine = hospital("GET", "/me").json()["accounts"][0]
    assert Fraction(mine["spent"]) <= Fraction(mine["share"]) == Fraction("0.2")
    charged = hospital("GET", "/accounts/hospital/charges", "owner").json()["charges"]
    assert sum(Fraction(one["spent"]) for one in charged if one["who"] == "dana") == Fraction(mine["spent"])
    assert hospital.ask("age*ward*sex", "dear-3", "owner", rho=0.15).status_code == 200  # whose share is all


def test_what_cannot_be_had_says_what_could(hospital):
    refused = hospital.ask("age*diagnosis", "impossible", "owner", std_error=0.001)
    assert refused.status_code == 409 and set(refused.json()) == {"field", "problem", "fix"}


def test_an_export_is_a_release_that_verifies(hospital, tmp_path):
    hospital.ask("season", "exported", "owner")
    response = hospital("GET", "/sessions/stays/export", "reader")
    assert response.headers["content-type"] == "application/zip"
    zipfile.ZipFile(io.BytesIO(response.content)).extractall(tmp_path)
    assert hc.verify(tmp_path / "stays").holds
    stored = hospital.stored("season").json()["columns"]["value"]
    assert hc.open(tmp_path / "stays")["season"].values.ravel().tolist() == pytest.approx(stored)


def test_releases_of_the_account_can_be_downloaded_while_they_are_what_was_published(hospital, tmp_path):
    plan = hc.plan(HOSPITAL, "region", rho="0.01", neighbours="add-remove")
    charged = {"ledger": hospital.ledger, "account": "hospital", "key": "release"}
    hc.release(plan, hospital.folder / "stays.parquet", out=tmp_path / "out", **charged)
    *_, listed = listing = hospital("GET", "/accounts/hospital/releases", "reader").json()["releases"]
    path = f"/accounts/hospital/releases/{listed['digest']}"
    response = hospital("GET", path, "reader")
    zipfile.ZipFile(io.BytesIO(response.content)).extractall(tmp_path / "got")
    assert hc.verify(tmp_path / "got" / "out").holds
    assert hospital("GET", path.replace("hospital", "elsewhere"), "stranger").status_code == 404
    plan_file = tmp_path / "out" / "manifest.json"
    plan_file.write_text(plan_file.read_text().replace('"hushcube": "0', '"hushcube": "9'))
    assert hospital("GET", path, "reader").status_code == 503  # the owner's to fix, and not served meanwhile
    (tmp_path / "out" / "plan.json").write_text("{}")
    assert hospital("GET", "/accounts/hospital/releases", "reader").json()["releases"] == listing[:-1]
    assert hospital("GET", path, "reader").status_code == 404


def test_a_locked_account_answers_what_is_stored_and_nothing_else(hospital):
    hospital.ask("outcome", "before", "owner")
    assert hospital("POST", "/accounts/hospital/lock", "owner").json()["locked"]
    assert hospital.stored("outcome").status_code == 200
    refused = hospital.ask("outcome*diagnosis", "after", "owner")
    assert refused.status_code == 409 and "locked" in refused.json()["problem"]
