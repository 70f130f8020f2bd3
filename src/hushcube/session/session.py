"""A session: one account, asked question after question, every answer consistent with all the others.

A question is answered from what was measured before, if that is precise enough; else as little as possible is measured,
charged first, drawn second and published third. What is asked next may depend on all earlier answers: the account is a
filter [ledger/ledger.py]. Every decision is made from the schema, the account, the policy and noisy answers, and from
nothing else: on neighbouring data with the same noisy answers every step is the same.
"""

from __future__ import annotations

import math
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from hushcube.bundle.release import Release
from hushcube.errors import LedgerError, SessionError
from hushcube.ledger.account import Account
from hushcube.ledger.amounts import exactly
from hushcube.ledger.charge import Charge, DataIdentity
from hushcube.ledger.ledger import Ledger
from hushcube.ledger.sources import source_name
from hushcube.model.privacy import Number
from hushcube.model.schema import COUNT, Schema
from hushcube.planning.plan import Plan
from hushcube.progress import Progress
from hushcube.session.answer import Answer, Answered, Offer
from hushcube.session.answering import make_answer, make_offer
from hushcube.session.cube import Cube, LatticeCube, Proposal
from hushcube.session.folder import Declared, SessionFolder, lasting
from hushcube.session.levels import LevelCube, at_all_levels
from hushcube.session.measuring import Steps, Taken
from hushcube.session.policy import Outlook, Policy
from hushcube.session.question import Question
from hushcube.session.steps import question_word
from hushcube.session.target import Target
from hushcube.shown import Grid, Page, Shown
from hushcube.text import at_least, at_most, visible

if TYPE_CHECKING:
    from hushcube.private.engines import BadRows

ROWS: Final = 60  # questions that are printed


class Session(Shown):
    """An open account that answers questions about one cube, one by one."""

    def __init__(self, folder: SessionFolder, ledger: Ledger, data: object, *, closes: bool) -> None:
        self._folder, self._ledger, self._closes = folder, ledger, closes
        self._declared = folder.declared()
        self._steps = Steps(folder, self._declared, ledger, data)
        self._lock = threading.RLock()
        kind, seen = (LevelCube, at_all_levels(self.schema)) if self._declared.levels else (LatticeCube, self.schema)
        self._cube: Cube = kind(seen, self.account.privacy, self.policy)
        with self._alone():
            pass

    # ------------------------------------------------------------------------------------------------ open and close

    @classmethod
    def open(
        cls,
        schema: Schema | str | Path,
        *,
        ledger: Ledger | str | Path,
        account: str,
        data: object,
        folder: str | Path,
        query: str | None = None,
        engine: str | None = None,
        bad_rows: BadRows = "refuse",
        policy: Policy | None = None,
        levels: bool | None = None,
    ) -> Self:
        """A new session on an account of a ledger, kept in a new folder; nothing is read or charged yet.

        Where the schema declares levels, questions may be at any of them, unless `levels` is False: then residual
        spaces can be measured, which under rho costs less.
        """
        from hushcube.private.engines import open_source

        schema = (schema if isinstance(schema, Schema) else Schema.read(schema)).declared
        with _opened(ledger) as (kept, closes):
            payer = kept.account(account)
            if payer.locked:
                raise LedgerError("account", f"{visible(account)!r} is locked", "use an account that is open")
            _check_unit(schema, payer)
            payer.check_data(DataIdentity(source_name(data, query), payer.digest))
            open_source(data, query=query, engine=engine, bad_rows=bad_rows)
            policy = Policy() if policy is None else policy
            Outlook(policy, schema)  # refuses what no table is
            declared = Declared(
                id=secrets.token_hex(8),
                schema=schema,
                ledger=lasting(kept.place) or "",
                account=account,
                data=lasting(data),
                query=query,
                engine=engine,
                bad_rows=bad_rows,
                levels=any(each.grouped for each in schema.attributes) if levels is None else levels,
                policy=policy,
            )
            return cls(SessionFolder.create(Path(folder), declared), kept, data, closes=closes)

    @classmethod
    def resume(cls, folder: str | Path, *, data: object = None, ledger: Ledger | str | Path | None = None) -> Self:
        """A session that was opened before; a frame has to be given again, and a ledger that has moved.

        What a crash left is in `unfinished`; the next question that is paid for goes on with it first.
        """
        place = SessionFolder(Path(folder))
        declared = place.declared()
        with _opened(declared.ledger if ledger is None else ledger) as (kept, closes):
            return cls(place, kept, declared.data if data is None else data, closes=closes)

    def close(self) -> None:
        """Let go of the ledger."""
        if self._closes:
            self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --------------------------------------------------------------------------------------------- what it is about

    @property
    def id(self) -> str:
        """The name under which its steps are charged."""
        return self._declared.id

    @property
    def folder(self) -> Path:
        """Where it is kept."""
        return self._folder.place

    @property
    def schema(self) -> Schema:
        """The declared domain."""
        return self._declared.schema

    @property
    def policy(self) -> Policy:
        """What was declared about the questions to come."""
        return self._declared.policy

    @property
    def account(self) -> Account:
        """The account as it is now."""
        return self._ledger.account(self._declared.account)

    @property
    def version(self) -> int:
        """How many steps have been taken."""
        return self._cube.version

    @property
    def unfinished(self) -> list[Charge]:
        """What was charged and is not published: a crash, or a process that is at work."""
        return [charge for _, charge in self._steps.unfinished()]

    def questions(self) -> list[Answered]:
        """What was answered, free answers too, in order, and how precise each answer would be now."""
        with self._lock:
            return [Answered(**told, now=self._now(told["question"])) for told in self._folder.answered()]

    def _now(self, question: str) -> float:
        return math.sqrt(self._cube.worst(self._read(question).marginal))

    # ---------------------------------------------------------------------------------------------------- questions

    def offer(
        self,
        question: str | Sequence[str],
        *,
        std_error: Number | None = None,
        epsilon: Number | None = None,
        rho: Number | None = None,
        relative_error: Number | None = None,
        above: Number | None = None,
    ) -> Offer:
        """What a question would be answered with, and what it would cost; nothing is spent."""
        asked = self._read(question)
        named = {"std_error": std_error, "epsilon": epsilon, "rho": rho, "relative_error": relative_error}
        target = Target.read(self.account, **named, above=above)
        with self._alone():
            return self._offer(asked, target)[0]

    def ask(
        self,
        question: str | Sequence[str],
        *,
        std_error: Number | None = None,
        epsilon: Number | None = None,
        rho: Number | None = None,
        relative_error: Number | None = None,
        above: Number | None = None,
        key: str | None = None,
        who: str | None = None,
        share: Number | None = None,
        progress: Progress | None = None,
        tell_owner: Callable[[str], None] | None = None,
    ) -> Answer:
        """The answer: free where enough is known, else by measuring as little as meets the target.

        What cannot be met is refused, with what could be had, and nothing is spent. The same `key` never charges
        twice: it stands for one question, and gives its answer again. `who` asks on behalf of the owner, and `share`
        is the most that they may be charged for of the account in all.
        """
        asked = self._read(question)
        named = {"std_error": std_error, "epsilon": epsilon, "rho": rho, "relative_error": relative_error}
        target = Target.read(self.account, **named, above=above)
        payer = self._ledger if who is None else self._ledger.asked_by(who, share)
        with self._alone():
            self._steps.tidy()
            for taken in self._steps.finish(progress, tell_owner):
                self._learn(taken)
            if key is not None and (before := self._steps.find(key)) is not None:
                return self._again(before.question, asked, key)
            offer, proposal = self._offer(asked, target)
            offer.check()
            if proposal is not None:
                self._steps.check_data()
                plan = Plan.of_counts(proposal.step.design(self._cube.schema, self._cube.account))
                self._learn(self._steps.take(offer.question, target.to_dict(), key, plan, payer, progress, tell_owner))
            answer = self._answer(asked, Fraction(0) if proposal is None else proposal.price)
            told = {"question": answer.question, "version": answer.version, "std_error": answer.std_error}
            self._folder.note({**told, "charged": exactly(answer.charged)})
            return answer

    def stored(self, question: str | Sequence[str]) -> Answer | None:
        """The answer from what is known, however precise that is; None where nothing is known of a part of it."""
        asked = self._read(question)
        with self._lock:
            return None if self._cube.variances(asked.marginal) is None else self._answer(asked, Fraction(0))

    def export(self, out: str | Path, *, progress: Progress | None = None) -> Release:
        """Everything that was measured as an ordinary release, a new folder: the tables of all questions."""
        from hushcube.verbs.releasing import open as open_release

        with self._alone():
            if not self._cube.version:
                raise SessionError("session", "has measured nothing yet", "ask a question first")
            asked = [self._read(each.question).marginal for each in self.questions()]
            words = [question_word(self._cube.schema, one) for one in asked if self._cube.variances(one) is not None]
            every = list(dict.fromkeys([*words, *self._cube.words()]))
            design, measurement = self._cube.joined(every, self.account.total)
        Release.of(Plan.of_counts(design), {COUNT: measurement}).save(Path(out), progress=progress)
        return open_release(out, verify=False)

    # ---------------------------------------------------------------------------------------------------- the inside

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Among threads and processes; what others have published meanwhile is learned first."""
        with self._lock, self._folder.locked():
            for taken in self._steps.fresh():
                self._learn(taken)
            yield

    def _learn(self, taken: Taken) -> None:
        self._cube.learn(taken.design, taken.measurement)

    def _read(self, question: str | Sequence[str]) -> Question:
        return Question.read(question, self._cube.schema)

    def _offer(self, asked: Question, target: Target) -> tuple[Offer, Proposal | None]:
        return make_offer(self._cube, asked, target, self.account, self.policy)

    def _answer(self, asked: Question, charged: Fraction) -> Answer:
        return make_answer(self._cube, asked, charged)

    def _again(self, question: str, asked: Question, key: str) -> Answer:
        """The answer to a question whose key was used before."""
        if question != asked.word:
            problem = f"{visible(key)!r} was used for {visible(question)!r}"
            raise SessionError("key", problem, "give every question a key of its own")
        if self._cube.variances(asked.marginal) is None:
            problem = f"noise was drawn for {visible(key)!r} and lost; what was charged stays charged"
            raise SessionError("key", problem, "ask again with another key")
        return self._answer(asked, Fraction(0))

    # -------------------------------------------------------------------------------------------------------- shown

    def __repr__(self) -> str:
        account = self.account
        spent = f"{at_most(account.spent)} of {at_least(account.total)} {account.currency} spent"
        return f"Session({visible(self.schema.name)!r}: {self.version:,} steps, {spent})"

    def page(self, rows: int = ROWS) -> Page:
        """What was answered, how precise it is now, and what is left."""
        account, every = self.account, self.questions()
        left = at_least(self.policy.left(account.total, account.left))
        told = f"{self!r}; {left} {account.currency} may still be spent"
        lost = [f"unfinished: {charge.key}: {charge.advice}" for charge in self.unfinished]
        grid = Grid(
            f"{self.schema.name}: {len(every):,} questions",
            Answered.heads(account),
            [each.cells for each in every[-rows:]],
        )
        return Page((grid, told, *lost))

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "session": self.id,
            "name": self.schema.name,
            "version": self.version,
            "account": self.account.to_dict(),
            "policy": self.policy.to_dict(),
            "questions": [each.to_dict() for each in self.questions()],
            "unfinished": [charge.to_dict() for charge in self.unfinished],
        }


def _check_unit(schema: Schema, account: Account) -> None:
    """Refuse an account that protects somebody else than the schema says."""
    schema.check_unit(account.privacy.rows_per_person)
    column = None if schema.unit is None else schema.unit.column
    if column != account.unit:
        owned = ("a row" if each is None else f"all rows of one {visible(each)!r}" for each in (account.unit, column))
        told = "in the account a person is {}, in the schema {}".format(*owned)
        raise LedgerError("unit", told, "declare the account's unit in the schema, or use another account")


@contextmanager
def _opened(ledger: Ledger | str | Path) -> Iterator[tuple[Ledger, bool]]:
    """A ledger, and whether it was opened here; closed again only if something fails."""
    if isinstance(ledger, Ledger):
        yield ledger, False
        return
    kept = Ledger.open(ledger)
    try:
        yield kept, True
    except BaseException:
        kept.close()
        raise
