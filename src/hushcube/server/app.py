"""The application: routes behind the gate, one form for what is refused, strict headers on everything."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as Path
from starlette.types import ASGIApp

from hushcube.server.desk import Desk
from hushcube.server.gate import guarded
from hushcube.server.routes import ROUTES
from hushcube.web.answers import StrictHeaders, refused_response
from hushcube.web.refusals import Refusal


def application(desk: Desk) -> ASGIApp:
    """What serves a desk, and closes it when it shuts down."""

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await desk.close()

    app = Starlette(
        routes=[Path(route.path, guarded(route, desk), methods=[route.method]) for route in ROUTES],
        exception_handlers={HTTPException: _not_served},
        lifespan=lifespan,
    )
    return StrictHeaders(app)


async def _not_served(_request: Request, problem: Exception) -> Response:
    """A path or method that no route has."""
    if not isinstance(problem, HTTPException):
        raise problem
    headers = dict(problem.headers or {})
    if problem.status_code == 405:
        refused = Refusal(405, "method", "is not one of this path's", "see GET /openapi.json", headers=headers)
    else:
        refused = Refusal(problem.status_code, "path", "is not served", "see GET /openapi.json", headers=headers)
    return refused_response(refused)
