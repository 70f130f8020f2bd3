"""The one way in: every request is checked in the same order, and nothing reaches a route that did not pass.

    token         valid, or 401; those without share one rate
    role          at least the route's, or 403
    rate          of the token, or 429
    account       one of the token's, or 404: as if there were none
    fields        known, complete and well-formed, or 400; the body not too large, slow or of another type
    work          not too much of it under way, or 429
    answer        within the time limit, or 503
    audit         a line for every request, before its answer leaves

Whatever fails becomes a refusal in one form [web/refusals.py].
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from hushcube.server.desk import NOBODY, Desk
from hushcube.server.fields import Value, read_document, read_fields
from hushcube.server.route import JSON, KEY, Call, Route
from hushcube.server.served import Served
from hushcube.server.tokens import Token
from hushcube.web.answers import refused_response
from hushcube.web.refusals import Refusal, refusal

_UPLOAD: Final = 10.0
"""Seconds until a body must have arrived."""
_ANYBODY: Final = Token("anybody", "reader", (), None, datetime.fromtimestamp(0, UTC))


def guarded(route: Route, desk: Desk) -> Callable[[Request], Awaitable[Response]]:
    """What answers a route's requests."""

    async def endpoint(request: Request) -> Response:
        call = None
        token = _ANYBODY
        try:
            token = _token(route, request, desk)
            call = await _call(route, request, desk, token)
            with desk.under_way.one_more(token.name) if route.is_work else nullcontext():
                async with asyncio.timeout(desk.limits.seconds):
                    response = await route.answer(call)
            refused = None
        except Exception as problem:
            refused = refusal(problem)
            response = refused_response(refused)
        told = {} if call is None else {"account": call.account or None, **call.noted}
        if refused is not None:
            told |= {"refused": refused.field, "cause": refused.cause}
        try:
            desk.audit.note(who=token.name, route=route.name, **told, status=response.status_code)
        except OSError:  # what cannot be noted is not answered; what was charged is stored
            fix = "tell the owner; ask again with the same key"
            return refused_response(Refusal(503, "audit", "the audit log cannot be written", fix))
        return response

    return endpoint


def _token(route: Route, request: Request, desk: Desk) -> Token:
    """Who asks; may they use the route, and is it not too soon."""
    if route.role is None:
        desk.rate.check(NOBODY, route.weight)
        return _ANYBODY
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    token = desk.tokens.find(text.strip()) if scheme.lower() == "bearer" else None
    if token is None:
        desk.rate.check(NOBODY)
        fix = "send `Authorization: Bearer TOKEN` with a token of `hushcube token create`"
        problem = "is missing, wrong, expired or revoked"
        raise Refusal(401, "token", problem, fix, headers={"WWW-Authenticate": "Bearer"})
    desk.rate.check(token.name, route.weight)
    if not token.may(route.role):
        fix = "ask the owner of the data for a token of that role"
        raise Refusal(403, "role", f"this needs the role {route.role}, and the token has {token.role}", fix)
    return token


async def _call(route: Route, request: Request, desk: Desk, token: Token) -> Call:
    """What is asked; of which account or session, if that is one of the token's."""
    path = {name: str(value) for name, value in request.path_params.items()}
    session, account = _about(path, desk, token)
    query: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name in query:
            raise Refusal(400, name, "is given twice", "give it once")
        query[name] = value
    given = read_fields(route.query, query, "query")
    key = _key(request) if route.takes_key else ""
    if route.body:
        given |= await _body(route, request, desk.limits.size)
    noted = {"session": path.get("session"), "question": given.get("question")}
    return Call(desk, token, account, given, key, session, path, noted)


def _about(path: dict[str, str], desk: Desk, token: Token) -> tuple[Served | None, str]:
    """The session and the account that a path names; those of others are not there."""
    if (name := path.get("session")) is not None:
        served = desk.sessions.get(name)
        if served is None or served.account not in token.accounts:
            raise Refusal(404, "session", "there is no such session for this token", "see GET /sessions")
        return served, served.account
    account = path.get("account", "")
    if "account" in path and account not in token.accounts:
        raise Refusal(404, "account", "there is no such account for this token", "see GET /accounts")
    return None, account


def _key(request: Request) -> str:
    given = request.headers.get(KEY.name)
    if given is None:
        raise Refusal(400, KEY.name, "is not given", KEY.says)
    return str(KEY.read(given))


async def _body(route: Route, request: Request, most: int) -> dict[str, Value]:
    """The fields of a JSON document that is not too large and arrives in time."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise Refusal(415, "Content-Type", "is not application/json", "send a JSON document, and say so")
    parts, size = [], 0
    try:
        async with asyncio.timeout(_UPLOAD):
            async for part in request.stream():
                size += len(part)
                if size > most:
                    fix = "ask for less at a time"
                    raise Refusal(413, "body", f"is larger than {most:,} bytes", fix, headers={"Connection": "close"})
                parts.append(part)
    except TimeoutError:
        raise Refusal(408, "body", "did not arrive in time", "send it again", headers={"Connection": "close"}) from None
    return read_fields(route.body, read_document(b"".join(parts)), "body")
