"""The page of a release on this machine: the four documents are computed when they are asked for.

Whoever can reach a port of this machine can read what is published, and nothing else. Requests are GET, name this
machine as their host, so that no other page's script reaches the documents under a name of its own, and are answered
one at a time within a time limit. What is refused has one form [web/refusals.py]; no text of an error that is not the
reader's own leaves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from hushcube.errors import MissingDependency, TooLarge
from hushcube.explorer.documents import Document, Documents
from hushcube.explorer.page import as_json, render, title_of, vega
from hushcube.faces.value import UNBIASED
from hushcube.model.schema import COUNT
from hushcube.web.addresses import listening_at
from hushcube.web.refusals import Refusal, refusal

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

HOST: Final = "127.0.0.1"
MOST_CELLS: Final = 1_000_000
"""Of a table that a page is sent."""
_SECONDS: Final = 60.0
_LONGEST: Final = 4_000
"""Characters of a field, but for lists of cells, which the size of a request limits."""


def serve_page(
    documents: Callable[[], Documents], *, port: int = 0, ready: Callable[[str], None] | None = None
) -> None:
    """Serve the page of a release until a signal asks to stop; `ready` is called with its address."""
    try:
        from hushcube.web.connection import run
    except ImportError:
        raise MissingDependency("starlette, uvicorn and httptools", "the explorer", "explore") from None
    vega()
    opened = documents()
    with listening_at(HOST, port) as listening:
        run(application(opened, listening.getsockname()[1]), listening, HOST, ready=ready)


def application(documents: Documents, port: int) -> ASGIApp:
    """What answers the page's requests at a port of this machine."""
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.responses import Response
    from starlette.routing import Route

    from hushcube.web.answers import StrictHeaders, refused_response

    catalogue = documents.catalogue()
    page, policy = render(title_of(catalogue), {"mode": "served"}, connects="'self'")
    desk, hosts = ThreadPoolExecutor(1, "hushcube"), {f"{name}:{port}" for name in (HOST, "localhost")}

    def route(path: str, fields: tuple[str, ...], answer: Callable[..., str]) -> Route:
        async def endpoint(request: Request) -> Response:
            try:
                _check_host(request, hosts)
                given = _fields(request, fields)
                async with asyncio.timeout(_SECONDS):
                    text = await asyncio.get_running_loop().run_in_executor(desk, lambda: answer(**given))
            except Exception as problem:
                return refused_response(_refused(problem))
            return Response(text, media_type="text/html" if path == "/" else "application/json")

        return Route(path, endpoint, methods=["GET"])

    def document(name: str, fields: tuple[str, ...], made: Callable[..., Document]) -> Route:
        return route(f"/api/{name}", fields, lambda **given: as_json(made(documents, **given)))

    async def not_served(_request: Request, problem: Exception) -> Response:
        status = problem.status_code if isinstance(problem, HTTPException) else 500
        return refused_response(Refusal(status, "path", "is not served", "open the page at /"))

    told = as_json(catalogue)
    app = Starlette(
        routes=[
            route("/", (), lambda: page),
            route("/api/catalogue", (), lambda: told),
            document("search", ("text", "attributes", "offset"), _search),
            document("table", ("word", "quantity", "face"), _table),
            document("estimate", ("word", "quantity", "cells", "versus"), _estimate),
        ],
        exception_handlers={HTTPException: not_served},
    )
    return StrictHeaders(app, {"Content-Security-Policy": f"{policy}; frame-ancestors 'none'"})


def _check_host(request: Request, hosts: set[str]) -> None:
    if request.headers.get("host", "").lower() not in hosts:
        raise Refusal(421, "host", "is not this machine", "open the address that `hushcube explore` printed")


def _fields(request: Request, known: tuple[str, ...]) -> dict[str, str]:
    """What a request says, each field once."""
    given: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in known or name in given:
            fix = f"use each of these once: {', '.join(known)}" if known else "leave it out"
            raise Refusal(400, name[:80], "is not a field here, or is given twice", fix)
        if len(value) > _LONGEST and name not in ("cells", "versus"):
            raise Refusal(400, name, f"has more than {_LONGEST:,} characters", "ask for less")
        given[name] = value
    return given


def _refused(problem: Exception) -> Refusal:
    """Nothing is charged here: a request that took too long may simply be sent again."""
    if isinstance(problem, TimeoutError):
        return Refusal(503, "time", f"the answer took longer than {_SECONDS:.0f} seconds", "ask for a smaller table")
    return refusal(problem)


def _search(documents: Documents, text: str = "", attributes: str = "", offset: str = "0") -> Document:
    return documents.search(text, [name for name in attributes.split("*") if name], _whole("offset", offset))


def _table(documents: Documents, word: str = "total", quantity: str = COUNT, face: str = UNBIASED) -> Document:
    cells = documents.cells(word)
    if cells > MOST_CELLS:
        raise TooLarge("word", cells, MOST_CELLS, "ask for fewer attributes, or for coarser levels")
    return documents.table(word, quantity, face)


def _estimate(
    documents: Documents, word: str = "total", quantity: str = COUNT, cells: str = "0", versus: str = ""
) -> Document:
    return documents.estimate(word, quantity, _numbers("cells", cells), _numbers("versus", versus))


def _numbers(field: str, text: str) -> list[int]:
    """Numbers of cells and runs of them.

    >>> _numbers("cells", "0-3,7")
    [0, 1, 2, 3, 7]
    """
    found: list[int] = []
    for part in text.split(",") if text else []:
        first, _, last = part.partition("-")
        run = range(_whole(field, first), _whole(field, last or first) + 1)
        if len(found) + len(run) > MOST_CELLS:
            raise TooLarge(field, len(found) + len(run), MOST_CELLS, "name fewer cells")
        found += run
    return found


def _whole(field: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise Refusal(400, field, "is not a whole number", "write digits")
    return int(text)
