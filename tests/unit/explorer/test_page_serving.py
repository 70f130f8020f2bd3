"""The explorer's answers: only GET, only for this machine, in one form; nothing of an error's text leaves."""

import json
import sys

import pytest
from starlette.testclient import TestClient

import hushcube as hc
from hushcube import samples
from hushcube.explorer import serving
from hushcube.explorer.documents import Documents

OWN = "http://127.0.0.1:8123"


@pytest.fixture(scope="module")
def documents():
    plan = hc.plan(samples.TITANIC, "<=2-way", epsilon=1, neighbours="add-remove")
    return Documents(hc.release(plan, samples.titanic()))


@pytest.fixture(scope="module")
def client(documents):
    return TestClient(serving.application(documents, 8123), base_url=OWN)


def test_the_documents_are_those_of_the_release(client, documents):
    assert client.get("/api/catalogue").json() == json.loads(json.dumps(documents.catalogue()))
    assert client.get("/api/search?text=sex&attributes=sex*age&offset=0").json() == documents.search(
        "sex", ["sex", "age"]
    )
    assert client.get("/api/table?word=class*sex&quantity=count&face=unbiased").json() == documents.table("class*sex")
    told = client.get("/api/estimate?word=class*sex&quantity=count&cells=0-2,5&versus=7").json()
    assert told == documents.estimate("class*sex", "count", [0, 1, 2, 5], [7])


def test_the_page_has_a_strict_policy_as_header_too(client):
    answer = client.get("/")
    policy = answer.headers["content-security-policy"]
    assert answer.headers["content-type"].startswith("text/html") and '{"mode":"served"}' in answer.text
    assert "frame-ancestors 'none'" in policy and "connect-src 'self'" in policy and "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff" and answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("path", "status", "field"),
    [
        ("/api/table?word=class*wage", 400, "marginal"),
        ("/api/table?word=class*sex*age", 400, "marginal"),
        ("/api/table?word=sex&quantity=avg(x)", 400, "measure"),
        ("/api/table?word=sex&face=integral", 400, "face"),
        ("/api/table?word=sex&word=age", 400, "word"),
        ("/api/table?table=sex", 400, "table"),
        (f"/api/table?word={'x' * 5_000}", 400, "word"),
        ("/api/search?offset=-1", 400, "offset"),
        ("/api/search?attributes=wage", 400, "attributes"),
        ("/api/estimate?word=sex&cells=2", 400, "cells"),
        ("/api/estimate?word=sex&cells=0-999999999", 400, "cells"),
        ("/api/estimate?word=sex&cells=a", 400, "cells"),
        ("/api/rows", 404, "path"),
        ("/../secrets", 404, "path"),
    ],
)
def test_what_is_refused_has_one_form(client, path, status, field):
    answer = client.get(path)
    assert answer.status_code == status and set(answer.json()) == {"field", "problem", "fix"}
    assert answer.json()["field"] == field


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_only_get_is_answered(client, method):
    assert client.request(method, "/api/catalogue").status_code == 405


@pytest.mark.parametrize(
    "host", ["example.org", "example.org:8123", "127.0.0.1", "127.0.0.1:80", "localhost.example.org:8123"]
)
def test_other_names_of_this_machine_are_refused(client, host):
    answer = client.get("/api/catalogue", headers={"host": host})
    assert answer.status_code == 421 and answer.json()["field"] == "host"
    assert client.get("/", headers={"host": "localhost:8123"}).status_code == 200


def test_large_tables_are_refused_before_they_are_made(client, monkeypatch):
    monkeypatch.setattr(serving, "MOST_CELLS", 3)
    assert client.get("/api/table?word=class*sex").json()["field"] == "word"


def test_no_text_of_a_failure_leaves(client, documents, monkeypatch):
    def fail(*_):
        raise RuntimeError("/secret/place")

    monkeypatch.setattr(documents, "search", fail)
    answer = client.get("/api/search")
    assert answer.status_code == 500 and "secret" not in answer.text


def test_missing_packages_are_named(documents, monkeypatch):
    monkeypatch.setitem(sys.modules, "hushcube.web.connection", None)
    with pytest.raises(hc.MissingDependency, match=r"hushcube\[explore\]"):
        hc.explore(documents.release, browser=False)
