"""A made-up hospital's server for tests: one ledger, two accounts, a session on each, and a token of every kind."""

from __future__ import annotations

import pyarrow.parquet as pq
from starlette.testclient import TestClient

import hushcube as hc
from hushcube.samples import HOSPITAL, hospital
from hushcube.server.app import application
from hushcube.server.audit import Audit
from hushcube.server.desk import Desk, Limits
from hushcube.server.tokens import Tokens

STAYS = 2000
TARGET = {"std_error": 20}


def lay_out(folder, *, rho="0.5", ledger=None):
    """The files of a server: data, sessions, and their ledger, unless it is elsewhere."""
    data = folder / "stays.parquet"
    pq.write_table(hospital(STAYS), data)
    ledger = hc.Ledger.create(ledger or folder / "ledger.db")
    for name in ("hospital", "elsewhere"):
        ledger.create_account(name, rho=rho, neighbours="add-remove")
    for session, account in (("stays", "hospital"), ("others", "elsewhere")):
        hc.Session.open(HOSPITAL, ledger=ledger, account=account, data=data, folder=folder / session).close()
    ledger.close()
    return folder


def give_tokens(folder):
    """A token of every kind, by what it is called."""
    tokens = Tokens(folder / "tokens.json")
    mine = {"accounts": ["hospital"]}
    found = {
        "reader": tokens.create("rita", role="reader", **mine),
        "analyst": tokens.create("dana", role="analyst", share="0.2", **mine),
        "owner": tokens.create("olga", role="owner", share="all", **mine),
        "stranger": tokens.create("egon", role="owner", share="all", accounts=["elsewhere"]),
        "revoked": tokens.create("rolf", role="owner", share="all", **mine),
        "expired": tokens.create("elsa", role="owner", share="all", days=1e-9, **mine),
        "wrong": "olga." + "x" * 43,
        "nobody": None,
    }
    tokens.revoke("rolf")
    return found


class Hospital:
    """A server in this process, and requests to it."""

    def __init__(self, folder, limits=None, ledger=None):
        self.folder = folder
        self.tokens = give_tokens(folder)
        self.ledger = hc.Ledger.open(ledger or folder / "ledger.db")
        self.sessions = {name: hc.Session.resume(folder / name, ledger=self.ledger) for name in ("stays", "others")}
        audit = Audit(folder / "audit.jsonl")
        self.desk = Desk(self.ledger, self.sessions, Tokens(folder / "tokens.json"), audit, limits or Limits(rate=1e6))
        self.client = TestClient(application(self.desk), raise_server_exceptions=False)

    def __enter__(self):
        self.client.__enter__()
        return self

    def __exit__(self, *problem):
        self.client.__exit__(*problem)
        self.ledger.close()
        self.desk.audit.__exit__()

    def __call__(self, method, path, who="analyst", *, key=None, headers=None, **more):
        sent = {} if self.tokens[who] is None else {"Authorization": f"Bearer {self.tokens[who]}"}
        sent |= {} if key is None else {"Idempotency-Key": key}
        return self.client.request(method, path, headers=sent | (headers or {}), **more)

    def ask(self, question, key, who="analyst", **target):
        return self("POST", "/sessions/stays/ask", who, key=key, json={"question": question, **(target or TARGET)})

    def offer(self, question, who="analyst", **target):
        return self("POST", "/sessions/stays/offer", who, json={"question": question, **(target or TARGET)})

    def stored(self, question, who="reader", **more):
        return self("GET", "/sessions/stays/answer", who, params={"question": question, **more})

    @property
    def spent(self):
        return self.ledger.account("hospital").spent
