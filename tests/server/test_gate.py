"""What a request may be: rates, sizes, types, times, headers, one form of refusals, and an audit log without data."""

import json
import stat
import time

import pytest

from hushcube.server.desk import Limits
from hushcube.server.limits import Rate
from hushcube.web.answers import HEADERS
from server.hospital_desk import Hospital

REFUSED = {"field", "problem", "fix"}


def test_every_answer_has_the_strict_headers(hospital):
    answers = [
        hospital("GET", "/health"),
        hospital("GET", "/nowhere"),
        hospital("DELETE", "/health"),
        hospital("GET", "/me", "nobody"),
        hospital("GET", "/sessions/stays/answer"),
    ]
    assert [answer.status_code for answer in answers] == [200, 404, 405, 401, 400]
    for answer in answers:
        assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
        assert "server" not in answer.headers


AS_JSON = {"Content-Type": "application/json"}
BODY = {"question": "sex", "std_error": 20}
PROBLEMS = {
    "no such path": ("GET", "/nowhere", {}, 404, "path"),
    "no such method": ("PUT", "/me", {}, 405, "method"),
    "no token": ("GET", "/me", {"who": "nobody"}, 401, "token"),
    "wrong token": ("GET", "/me", {"who": "wrong"}, 401, "token"),
    "reader asks": ("POST", "/sessions/stays/ask", {"who": "reader", "json": BODY}, 403, "role"),
    "unknown session": ("GET", "/sessions/nothing/schema", {}, 404, "session"),
    "another's session": ("GET", "/sessions/others/schema", {}, 404, "session"),
    "another's account": ("GET", "/accounts/elsewhere", {}, 404, "account"),
    "unknown attribute": ("GET", "/sessions/stays/answer", {"params": {"question": "shoes"}}, 400, None),
    "not measured": ("GET", "/sessions/stays/answer", {"params": {"question": "ward*season*age"}}, 404, "question"),
    "no question": ("GET", "/sessions/stays/answer", {}, 400, "question"),
    "another field": ("GET", "/me", {"params": {"sudo": "1"}}, 400, "'sudo'"),
    "twice": ("GET", "/audit", {"who": "owner", "params": [("last", "1"), ("last", "2")]}, 400, "last"),
    "no key": ("POST", "/sessions/stays/ask", {"json": BODY}, 400, "Idempotency-Key"),
    "bad key": ("POST", "/sessions/stays/ask", {"json": BODY, "key": "a/b"}, 400, "Idempotency-Key"),
    "no JSON": ("POST", "/sessions/stays/offer", {"content": b"age", "headers": AS_JSON}, 400, "body"),
    "a list": ("POST", "/sessions/stays/offer", {"json": [BODY]}, 400, "body"),
    "another type": ("POST", "/sessions/stays/offer", {"content": b"age"}, 415, "Content-Type"),
    "too large": ("POST", "/sessions/stays/offer", {"json": BODY | {"pad": "x" * 70_000}}, 413, "body"),
    "no target": ("POST", "/sessions/stays/offer", {"json": {"question": "sex"}}, 400, None),
    "a huge number": (
        "POST", "/sessions/stays/offer",
        {"content": b'{"question": "sex", "std_error": 1e999999999}', "headers": AS_JSON},
        400, "std_error",
    ),
    "not a number": (
        "POST", "/sessions/stays/offer",
        {"content": b'{"question": "sex", "std_error": NaN}', "headers": AS_JSON},
        400, "body",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PROBLEMS)
def test_what_is_refused_has_one_form_and_charges_nothing(case, hospital):
    method, path, more, status, field = PROBLEMS[case]
    before = hospital.spent
    response = hospital(method, path, **more)
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json" and set(response.json()) == REFUSED
    assert field is None or response.json()["field"] == field
    assert hospital.spent == before


@pytest.fixture
def limited(laid_out):
    """Of each token 25 requests in a second that does not pass."""
    with Hospital(laid_out) as found:
        found.desk.rate = Rate(25, clock=lambda: 0.0)
        yield found


def test_too_many_requests_are_refused(limited):
    assert [limited("GET", "/me").status_code for _ in range(27)] == [200] * 25 + [429] * 2
    refused = limited("GET", "/me")
    assert set(refused.json()) == REFUSED and int(refused.headers["Retry-After"]) >= 1
    assert limited("GET", "/me", "owner").status_code == 200  # of each token for itself
    assert [limited.offer("sex", "owner").status_code for _ in range(2)] == [200, 429]  # which counts for twenty


def test_wrong_tokens_share_a_rate(limited):
    assert [limited("GET", "/me", "wrong").status_code for _ in range(26)] == [401] * 25 + [429]
    assert limited("GET", "/me", "nobody").status_code == 429 and limited("GET", "/me").status_code == 200


def test_what_takes_too_long_is_refused_but_ends(laid_out, monkeypatch):
    with Hospital(laid_out, Limits(rate=1e6, seconds=0.3)) as slow:
        session = slow.sessions["stays"]
        ask = session.ask

        def slowly(*args, **options):
            time.sleep(0.6)
            return ask(*args, **options)

        monkeypatch.setattr(session, "ask", slowly)
        late = slow.ask("sex", "late")
        assert late.status_code == 503 and "same Idempotency-Key" in late.json()["fix"]
        assert slow("GET", "/accounts").status_code == 200  # others do not wait
        time.sleep(0.8)
        monkeypatch.setattr(session, "ask", ask)
        spent = slow.spent
        assert spent > 0
        assert slow.ask("sex", "late").status_code == 200 and slow.spent == spent


def test_unexpected_failures_tell_nothing(hospital, monkeypatch):
    def fail(*args, **options):
        raise ValueError("row 17 is of somebody with a rare disease")

    monkeypatch.setattr(hospital.sessions["stays"], "offer", fail)
    response = hospital.offer("sex")
    assert response.status_code == 500 and set(response.json()) == REFUSED
    log = (hospital.folder / "audit.jsonl").read_text()
    assert "rare" not in response.text and "rare" not in log and '"cause": "ValueError"' in log


def test_the_audit_log_has_who_what_price_and_outcome_and_no_data(hospital):
    answer = hospital.ask("region*outcome", "audited").json()
    hospital("GET", "/accounts/elsewhere")
    place = hospital.folder / "audit.jsonl"
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    *_, asked, refused = map(json.loads, place.read_text().splitlines())
    assert asked.pop("time").endswith("+00:00")
    assert asked == {
        "who": "dana",
        "route": "POST /sessions/{session}/ask",
        "account": "hospital",
        "session": "stays",
        "question": "region*outcome",
        "key": "audited",
        "price": answer["charged"],
        "status": 200,
    }
    assert (refused["who"], refused["status"], refused["refused"]) == ("dana", 404, "account")
    secrets = [token.partition(".")[2] for token in hospital.tokens.values() if token]
    assert not [secret for secret in secrets if secret in place.read_text()]
    seen = hospital("GET", "/audit", "owner", params={"last": 5}).json()["lines"]
    assert seen[-1]["question"] == "region*outcome" and {line["account"] for line in seen} == {"hospital"}
    assert not hospital("GET", "/audit", "stranger").json()["lines"]


def test_an_audit_log_that_was_moved_or_removed_is_begun_anew(hospital):
    """As logrotate does it: what was written stays with whoever moved it, and no line is lost."""
    place, moved = hospital.folder / "audit.jsonl", hospital.folder / "audit.jsonl.1"
    hospital.offer("sex", std_error=31)
    before = place.read_text()
    place.rename(moved)
    hospital.offer("sex", std_error=32)
    assert moved.read_text() == before and len(place.read_text().splitlines()) == 1
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert len(hospital("GET", "/audit", "owner").json()["lines"]) == 1
    place.unlink()
    place.touch(mode=0o644)  # by somebody who makes the new file as well
    hospital.offer("sex", std_error=33)
    assert len(place.read_text().splitlines()) == 1 and stat.S_IMODE(place.stat().st_mode) == 0o600
    place.unlink()
    place.mkdir()
    refused = hospital.offer("sex", std_error=34)
    assert refused.status_code == 503 and refused.json()["field"] == "audit"
    place.rmdir()
    assert hospital.offer("sex", std_error=35).status_code == 200 and len(place.read_text().splitlines()) == 1
