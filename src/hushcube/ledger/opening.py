"""What is agreed when an account is made: its terms, or why they are refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hushcube.errors import LedgerError
from hushcube.ledger.account import Account, Terms, currency_of
from hushcube.ledger.sources import declared_source
from hushcube.model.privacy import Number, Privacy
from hushcube.text import short, visible

_LONGEST: Final = 500


def check_text(field: str, text: Any) -> None:
    """Refuse names, keys and digests that nobody could read or type."""
    if not isinstance(text, str) or not text.strip() or len(text) > _LONGEST or not text.isprintable():
        problem = f"{short(text)} is not a text that can be read"
        raise LedgerError(field, problem, f"give a text of 1 to {_LONGEST} characters that can be printed")


def locked(account: Account) -> LedgerError:
    """Why a locked account is not charged."""
    problem = f"{visible(account.name)!r} is locked; nothing is charged"
    return LedgerError("account", problem, "use another account: a locked one stays closed")


def terms_of(
    above: Account | None,
    *,
    epsilon: Number | None,
    rho: Number | None,
    delta: Number | None,
    neighbours: str | None,
    rows_per_person: int | None,
    disjoint: bool | None,
    **texts: str | None,
) -> Terms:
    """The terms of an account, or of a part of the one `above`; `texts` are fields of `Terms`."""
    budget = {"epsilon": epsilon, "rho": rho, "delta": delta}
    for field, text in texts.items():
        if text is not None:
            check_text(field, text)
    if texts["source"] is not None:
        texts["source"] = declared_source(texts["source"])
    if above is None:
        if texts["part"] is not None:
            raise LedgerError("part", "is given without its parent", "name the parent, too")
        privacy = Privacy.of(**budget, neighbours=neighbours, rows_per_person=rows_per_person or 1)
    else:
        _check_part(above, texts["part"])
        given = {"neighbours": neighbours, "unit": texts["unit"], "rows_per_person": rows_per_person}
        own = above.privacy
        same = {"neighbours": own.neighbours, "unit": above.unit, "rows_per_person": own.rows_per_person}
        for field, value in given.items():
            if value is not None and value != same[field]:
                raise LedgerError(field, "is another than the parent's", "leave it out: a part protects as its parent")
        privacy, texts["unit"] = _part_privacy(above, budget), above.unit
    parts = _is_disjoint(texts["partition"], disjoint, privacy, texts["unit"])
    return Terms(privacy=privacy, disjoint=parts, **texts)


def _check_part(above: Account, part: str | None) -> None:
    """Refuse a part of an account that has none."""
    if above.partition is None:
        fix = "make the parent with a partition, for example `--partition year`"
        raise LedgerError("parent", f"the account {visible(above.name)!r} has no parts", fix)
    if part is None:
        raise LedgerError("part", "is not given", f"say which {visible(above.partition)} it is")
    if above.locked:
        raise locked(above)


def _part_privacy(above: Account, budget: Mapping[str, Number | None]) -> Privacy:
    """The guarantee of a part: its parent's, unless it is given one of the same kind."""
    if all(amount is None for amount in budget.values()):
        return above.privacy
    own = above.privacy
    privacy = Privacy.of(**budget, neighbours=own.neighbours, rows_per_person=own.rows_per_person)
    if currency_of(privacy) != above.currency:
        problem = f"the parent counts {above.currency}, and this guarantee another currency"
        raise LedgerError(currency_of(privacy), problem, "give a guarantee of the parent's kind, or none")
    return privacy


def _is_disjoint(partition: str | None, declared: bool | None, privacy: Privacy, unit: str | None) -> bool:
    """Whether nobody is in two parts: so it is where a row is a person, and where the owner declares it.

    Under replace-one a person who moves leaves one part and enters another, which changes the number of rows in both:
    a guarantee of replace-one within a part says nothing about that, so neither a maximum nor a sum would.
    """
    if partition is None:
        if declared is not None:
            raise LedgerError("disjoint", "is about parts, and there is no partition", "name a partition, too")
        return False
    if privacy.neighbours != "add-remove":
        problem = "somebody who is replaced may move from one part to another, which no part's guarantee covers"
        raise LedgerError("partition", problem, "use the neighbours add-remove, or accounts without parts")
    return declared if declared is not None else unit is None and privacy.rows_per_person == 1
