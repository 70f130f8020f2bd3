"""What readers may do: see accounts, schemas and questions, read stored answers, download releases."""

from __future__ import annotations

import io
from asyncio import to_thread
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import FileResponse, JSONResponse, Response

from hushcube.ledger.amounts import exactly
from hushcube.server.packing import is_release, packed
from hushcube.server.route import JSON, Call
from hushcube.text import json_text
from hushcube.web.refusals import Refusal

if TYPE_CHECKING:
    from hushcube.ledger.account import Account
    from hushcube.server.served import Served
    from hushcube.session.answer import Answer

ARROW: Final = "application/vnd.apache.arrow.stream"
CSV: Final = "text/csv"
ZIP: Final = "application/zip"


async def me(call: Call) -> Response:
    """Who the token is, and what is left of its share."""
    token = call.token
    shares = await to_thread(lambda: [share_of(call, one) for one in _mine(call)])
    expires = token.expires and token.expires.isoformat()
    return JSONResponse({"name": token.name, "role": token.role, "accounts": shares, "expires": expires})


def share_of(call: Call, account: Account) -> dict[str, Any]:
    """What the token spent of an account, and what it may still spend."""
    token = call.token
    spent = call.desk.ledger.spent_by(account.name, token.name)
    left = account.left if token.share is None else min(account.left, max(token.share - spent, Fraction(0)))
    share = None if token.share is None else exactly(token.share)
    return {"name": account.name, "share": share, "spent": exactly(spent), "left": exactly(left)}


async def accounts(call: Call) -> Response:
    """The token's accounts."""
    found = await to_thread(_mine, call)
    return JSONResponse({"accounts": [_account(one) for one in found]})


def _mine(call: Call) -> list[Account]:
    """The accounts that the token is for, and that there are."""
    return [one for one in call.desk.ledger.accounts() if one.name in call.token.accounts]


async def read_account(call: Call) -> Response:
    """One account."""
    return JSONResponse(_account(await to_thread(call.desk.ledger.account, call.account)))


def _account(found: Account) -> dict[str, Any]:
    """What may be told of an account: not where its data is."""
    figures = {name: exactly(getattr(found, name)) for name in ("total", "spent", "left")}
    told = {"name": found.name, "currency": found.currency, "privacy": found.privacy.to_dict()}
    return told | figures | {"locked": found.locked}


async def sessions(call: Call) -> Response:
    """The sessions of the token's accounts."""
    mine = [served for served in call.desk.sessions.values() if served.account in call.token.accounts]
    return JSONResponse({"sessions": [_session(served) for served in mine]})


def _session(served: Served) -> dict[str, Any]:
    names = list(served.session.schema.names)
    return {"name": served.name, "account": served.account, "attributes": names, "version": served.session.version}


async def schema(call: Call) -> Response:
    """The public schema of a session."""
    return JSONResponse(call.served.session.schema.to_dict())


async def questions(call: Call) -> Response:
    """What was answered so far, free answers too."""
    found = await to_thread(call.served.session.questions)
    return JSONResponse({"questions": [one.to_dict() for one in found]})


async def answer(call: Call) -> Response:
    """A stored answer: what was measured so far says, and costs nothing."""
    served = call.served
    question, form = str(call.given["question"]), str(call.given.get("format", "json"))
    media, write = FORMS[form]

    def make() -> bytes:
        found = served.session.stored(question)
        if found is None:
            fix = "ask it with POST /sessions/{session}/ask; POST /sessions/{session}/offer says what it costs"
            raise Refusal(404, "question", "nothing that was measured answers it", fix)
        return write(found)

    return Response(await served.read(question, form, make), media_type=media)


def as_json(found: Answer) -> bytes:
    """Columns by name, one entry a cell."""
    told = {
        "question": found.question,
        "version": found.version,
        "free": found.free,
        "charged": exactly(found.charged),
        "currency": found.currency,
        "std_error": found.std_error,
        "columns": {name: column.tolist() for name, column in found.table.columns().items()},
    }
    return json_text(told).encode()


def as_csv(found: Answer) -> bytes:
    """A header and one line a cell."""
    return found.table.to_csv().encode()


def as_arrow(found: Answer) -> bytes:
    """A stream of Arrow record batches."""
    import pyarrow as pa

    sink = io.BytesIO()
    table = found.table.to_arrow()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue()


FORMS: Final[dict[str, tuple[str, Callable[[Any], bytes]]]] = {
    "json": (JSON, as_json),
    "csv": (CSV, as_csv),
    "arrow": (ARROW, as_arrow),
}


async def export(call: Call) -> Response:
    """All that a session measured, as an ordinary release in an archive."""
    served = call.served

    def make() -> Path:
        if not served.session.version:
            raise Refusal(404, "session", "has measured nothing yet", "ask a question first")
        name = f"{served.name}-{served.session.version}"
        folder = call.desk.folder / name
        if not folder.exists():
            served.session.export(folder)
        return packed(folder, call.desk.folder, served.name)

    path = await served.work(make)
    return FileResponse(path, media_type=ZIP, filename=f"{served.name}.zip")


async def releases(call: Call) -> Response:
    """What was published under an account and can be downloaded."""

    def told() -> list[dict[str, Any]]:
        return [
            {"digest": one.bundle_digest, "what": one.what, "spent": exactly(one.spent), "time": one.time}
            for one in call.desk.ledger.charges(call.account)
            if is_release(one)
        ]

    return JSONResponse({"releases": await to_thread(told)})


async def release(call: Call) -> Response:
    """A release, if it is still what the ledger says was published."""
    digest = call.path["digest"]

    def make() -> Path:
        for one in call.desk.ledger.charges(call.account):
            if one.bundle_digest == digest and is_release(one):
                return packed(Path(one.place or ""), call.desk.folder, Path(one.place or "").name)
        fix = f"see GET /accounts/{call.account}/releases"
        raise Refusal(404, "digest", "there is no such release of this account", fix)

    return FileResponse(await to_thread(make), media_type=ZIP, filename=f"{digest[:16]}.zip")
