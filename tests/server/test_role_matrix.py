"""Every route and every kind of token: a new route fails here until it has its line."""

import pytest

from hushcube.server.routes import ROUTES

KINDS = ("nobody", "wrong", "revoked", "expired", "reader", "analyst", "owner", "stranger")
PUBLIC = dict.fromkeys(KINDS, 200)
NOT_IN = dict.fromkeys(("nobody", "wrong", "revoked", "expired"), 401)
READ = NOT_IN | {"reader": 200, "analyst": 200, "owner": 200, "stranger": 404}
OWN = READ | {"stranger": 200}  # the same for everybody, each about what is theirs
ASK = READ | {"reader": 403}
OWNER = READ | {"reader": 403, "analyst": 403}
LINES = {
    "GET /health": PUBLIC,
    "GET /openapi.json": PUBLIC,
    "GET /me": OWN,
    "GET /accounts": OWN,
    "GET /accounts/{account}": READ,
    "GET /accounts/{account}/releases": READ,
    "GET /accounts/{account}/releases/{digest}": READ | dict.fromkeys(("reader", "analyst", "owner"), 404),
    "GET /sessions": OWN,
    "GET /sessions/{session}/schema": READ,
    "GET /sessions/{session}/questions": READ,
    "GET /sessions/{session}/answer": READ,
    "GET /sessions/{session}/export": READ,
    "POST /sessions/{session}/offer": ASK,
    "POST /sessions/{session}/ask": ASK,
    "GET /accounts/{account}/charges": OWNER,
    "GET /audit": OWNER | {"stranger": 200},
    "POST /accounts/{account}/lock": OWNER,
}
PLACES = {"{account}": "hospital", "{session}": "stays", "{digest}": "0" * 64}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_every_route_and_role(route, kind, hospital):
    if route.path.endswith(("/answer", "/export")):
        hospital.ask("sex", "measured")
    path = route.path
    for name, value in PLACES.items():
        path = path.replace(name, value)
    sent = {}
    if route.body:
        sent["json"] = {"question": "sex", "std_error": 20}
    elif route.path.endswith("answer"):
        sent["params"] = {"question": "sex"}
    response = hospital(route.method, path, kind, key="measured" if route.takes_key else None, **sent)
    assert response.status_code == LINES[route.name][kind], response.text


def test_every_route_has_its_line():
    assert set(LINES) == {route.name for route in ROUTES}


def test_what_is_locked_is_locked_last():
    """The lines above ask before they lock: tests of a module share their hospital."""
    assert list(LINES)[-1].endswith("lock") and ROUTES[-1].path.endswith("lock")
