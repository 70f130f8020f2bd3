"""Answers as they are sent: strict headers on all of them, and refusals as documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hushcube.web.refusals import Refusal

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Of every answer, whatever it is."""
OVER_TLS: Final = {"Strict-Transport-Security": "max-age=31536000"}


def refused_response(refused: Refusal) -> Response:
    """A refusal as it is sent."""
    return JSONResponse(refused.to_dict(), refused.status, headers=refused.headers)


class StrictHeaders:
    """Every answer carries the headers, also those that no route made."""

    def __init__(self, app: ASGIApp, own: Mapping[str, str] | None = None) -> None:
        """`own` are headers that differ from the usual ones."""
        self._app = app
        self._headers = {**HEADERS, **(own or {})}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and add the headers where an answer starts."""
        wanted = self._headers | (OVER_TLS if scope.get("scheme") == "https" else {})
        added = [(name.lower().encode(), value.encode()) for name, value in wanted.items()]

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *added]
            await send(message)

        await self._app(scope, receive, with_headers)
