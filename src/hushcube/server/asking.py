"""What analysts and owners may do: see what a question would cost, ask it; read the record, lock an account."""

from __future__ import annotations

from asyncio import to_thread
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import JSONResponse, Response

from hushcube.ledger.amounts import exactly
from hushcube.server.fields import Number, Text
from hushcube.server.reading import as_json, read_account, share_of
from hushcube.server.route import JSON, Call

if TYPE_CHECKING:
    from hushcube.session.answer import Answer, Offer

QUESTION: Final = Text("question", "a table of the schema's attributes, such as `age*sex`", required=True)
TARGETS: Final = (
    Number("std_error", "the largest standard error of a cell"),
    Number("relative_error", "the largest standard error as a part of a count that is `above` a number"),
    Number("above", "the least count that `relative_error` is for"),
    Number("epsilon", "how much to spend, in an account that counts epsilon"),
    Number("rho", "how much to spend, in an account that counts rho"),
)


async def offer(call: Call) -> Response:
    """What a question would cost and how good its answer would be; nothing is spent."""
    served = call.served

    def work() -> tuple[Offer, dict[str, Any]]:
        given: Any = call.given
        return served.session.offer(**given), share_of(call, call.desk.ledger.account(call.account))

    offered, mine = await served.work(work)
    call.noted["price"] = exactly(offered.price)
    allowed = min(offered.allowed, Fraction(mine["left"]))
    granted = offered.granted and offered.price <= allowed
    return JSONResponse(offered.to_dict() | {"allowed": exactly(allowed), "granted": granted})


async def ask(call: Call) -> Response:
    """An answer; what it costs is charged to the account, and to the token's share of it, before it is measured."""
    served, token = call.served, call.token

    def work() -> tuple[Answer, bytes]:
        given: Any = call.given
        answer = served.session.ask(**given, key=f"{token.name}/{call.key}", who=token.name, share=token.share)
        return answer, as_json(answer)

    answer, body = await served.work(work)
    call.noted |= {"key": call.key, "price": exactly(answer.charged)}
    return Response(body, media_type=JSON)


async def history(call: Call) -> Response:
    """Every charge to an account: who, what, how much, and what became of it."""

    def told() -> list[dict[str, Any]]:
        return [
            {
                "key": charge.key,
                "who": charge.who,
                "what": charge.what,
                "amount": exactly(charge.amount),
                "spent": exactly(charge.spent),
                "state": charge.state,
                "time": charge.time,
            }
            for charge in call.desk.ledger.charges(call.account)
        ]

    return JSONResponse({"charges": await to_thread(told)})


async def audit(call: Call) -> Response:
    """The last lines of the audit log about the token's accounts."""
    most: Any = call.given.get("last", 100)
    return JSONResponse({"lines": await to_thread(call.desk.audit.last, most, call.token.accounts)})


async def lock(call: Call) -> Response:
    """Close an account for good."""
    await to_thread(call.desk.ledger.lock, call.account)
    return await read_account(call)
