"""All routes, in one table: what is not in it is not served, and a test has a line for every role on each."""

from __future__ import annotations

from typing import Final

from starlette.responses import JSONResponse, Response

from hushcube import __version__
from hushcube.server import asking, openapi, reading, shapes
from hushcube.server.asking import QUESTION, TARGETS
from hushcube.server.fields import Count, Text
from hushcube.server.reading import ARROW, CSV, FORMS, ZIP
from hushcube.server.route import JSON, Call, Route

WORK: Final = 20
"""What a question counts for."""
_BYTES: Final[shapes.Schema] = {"type": "string", "format": "binary"}


async def described(_call: Call) -> Response:
    """This table as an OpenAPI document."""
    return JSONResponse(openapi.document(ROUTES))


async def health(_call: Call) -> Response:
    """That it is there."""
    return JSONResponse({"status": "up", "version": __version__})


ROUTES: Final = (
    Route(
        "GET", "/health", None, "Whether the server is up",
        health, {JSON: shapes.thing(status=shapes.TEXT, version=shapes.TEXT)},
    ),
    Route("GET", "/openapi.json", None, "This document", described, {JSON: {"type": "object"}}),
    Route("GET", "/me", "reader", "Who the token is, and what is left of its share", reading.me, {JSON: shapes.TOKEN}),
    Route(
        "GET", "/accounts", "reader", "The token's accounts",
        reading.accounts, {JSON: shapes.thing(accounts=shapes.many(shapes.ACCOUNT))},
    ),
    Route("GET", "/accounts/{account}", "reader", "An account", reading.read_account, {JSON: shapes.ACCOUNT}),
    Route(
        "GET", "/accounts/{account}/releases", "reader", "What was published under an account",
        reading.releases, {JSON: shapes.thing(releases=shapes.many(shapes.RELEASE))}, weight=WORK,
    ),
    Route(
        "GET", "/accounts/{account}/releases/{digest}", "reader", "A release, as a zip archive",
        reading.release, {ZIP: _BYTES}, weight=WORK,
    ),
    Route(
        "GET", "/sessions", "reader", "The sessions of the token's accounts",
        reading.sessions, {JSON: shapes.thing(sessions=shapes.many(shapes.SESSION))},
    ),
    Route(
        "GET", "/sessions/{session}/schema", "reader", "The public schema", reading.schema, {JSON: {"type": "object"}},
    ),
    Route(
        "GET", "/sessions/{session}/questions", "reader", "What was answered so far",
        reading.questions, {JSON: shapes.thing(questions=shapes.many(shapes.ANSWERED))},
    ),
    Route(
        "GET", "/sessions/{session}/answer", "reader", "A stored answer; it costs nothing",
        reading.answer, {JSON: shapes.ANSWER, CSV: shapes.TEXT, ARROW: _BYTES},
        query=(QUESTION, Text("format", "json (the default), csv or arrow", words=tuple(FORMS))),
    ),
    Route(
        "GET", "/sessions/{session}/export", "reader", "All that was measured, as a release in a zip archive",
        reading.export, {ZIP: _BYTES}, weight=WORK,
    ),
    Route(
        "POST", "/sessions/{session}/offer", "analyst", "What a question would cost; nothing is spent",
        asking.offer, {JSON: shapes.OFFER}, weight=WORK, body=(QUESTION, *TARGETS),
    ),
    Route(
        "POST", "/sessions/{session}/ask", "analyst", "An answer, charged before it is measured",
        asking.ask, {JSON: shapes.ANSWER}, weight=WORK, body=(QUESTION, *TARGETS), takes_key=True,
    ),
    Route(
        "GET", "/accounts/{account}/charges", "owner", "Every charge to an account",
        asking.history, {JSON: shapes.thing(charges=shapes.many(shapes.CHARGE))},
    ),
    Route(
        "GET", "/audit", "owner", "The last lines of the audit log about the token's accounts",
        asking.audit, {JSON: shapes.thing(lines=shapes.many(shapes.LINE))},
        query=(Count("last", "how many lines, at most 1,000", most=1000),),
    ),
    Route(
        "POST", "/accounts/{account}/lock", "owner", "Close an account for good",
        asking.lock, {JSON: shapes.ACCOUNT},
    ),
)  # fmt: skip
