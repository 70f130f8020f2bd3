"""The steps of a session: noted, charged, measured, published, and read again.

A step is a release like any other, charged to the session's account under the key `SESSION/NUMBER`, so that whatever
happens in between leaves what a release leaves [verbs/charging.py]: nothing charged, or a charge that can be carried
out without a second one, or noise that was drawn and is never drawn again. What was asked stands in the session's
folder before the charge does, so that another process can go on with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hushcube.bundle.folder import open_bundle
from hushcube.bundle.release import Release
from hushcube.designs.lattice.design import LatticeDesign
from hushcube.errors import HushcubeError, SessionError
from hushcube.ledger.charge import Charge
from hushcube.ledger.ledger import Ledger
from hushcube.ledger.published import published_digest
from hushcube.model.noise import Measurement
from hushcube.progress import Progress
from hushcube.session.folder import Declared, Intent, SessionFolder, damaged

if TYPE_CHECKING:
    from hushcube.private.engines import BadRows

Told = Callable[[str], None]


@dataclass(frozen=True)
class Taken:
    """A step that was taken: what was asked, and what was measured for it."""

    intent: Intent
    design: LatticeDesign
    measurement: Measurement


class Steps:
    """Those of one session; whoever takes one holds the session's lock."""

    def __init__(self, folder: SessionFolder, declared: Declared, ledger: Ledger, data: object) -> None:
        self._folder, self._declared, self._ledger, self._data = folder, declared, ledger, data
        self._read: set[int] = set()
        self._recorded: set[int] = set()
        """Steps whose charge is known to be finished: they need no further look."""
        self._keys: dict[str, Intent] = {}

    def key(self, step: int) -> str:
        """Under which a step is charged."""
        return f"{self._declared.id}/{step:04d}"

    def fresh(self) -> Iterator[Taken]:
        """The steps that were published since the last look, also by other processes, in their order."""
        for step in self._folder.numbers():
            if step in self._read or not self._folder.step(step).is_dir():
                continue
            charge = self._ledger.find_charge(self.key(step))
            if charge is None:
                raise damaged(step, "is in the folder, and nothing was charged for it")
            if charge.state == "published":
                if charge.bundle_digest != published_digest(self._folder.step(step)):
                    raise damaged(step, "is not what was published for its charge")
                self._recorded.add(step)
            yield self._taken(self._folder.read(step), open_bundle(self._folder.step(step)))

    def _taken(self, intent: Intent, release: Release) -> Taken:
        design = release.plan.count
        if release.plan.digest != intent.plan.digest or not isinstance(design, LatticeDesign) or not release.private:
            raise damaged(intent.number, "is not what was planned for it")
        self._read.add(intent.number)
        if intent.key is not None:
            self._keys[intent.key] = intent
        return Taken(intent, design, release.source.measurement())

    def unfinished(self) -> list[tuple[Intent, Charge]]:
        """Steps that were charged and are not published, or not recorded as published."""
        found = []
        for step in self._open():
            charge = self._ledger.find_charge(self.key(step))
            if charge is not None and charge.state == "unfinished":
                found.append((self._folder.read(step), charge))
            elif charge is not None:
                self._recorded.add(step)
        return found

    def _open(self) -> list[int]:
        return [step for step in self._folder.numbers() if step not in self._recorded]

    def find(self, key: str) -> Intent | None:
        """The step that a caller's key stands for."""
        lost = (step for step in self._folder.numbers() if step not in self._read)
        return self._keys.get(key) or next((own for own in map(self._folder.read, lost) if own.key == key), None)

    def tidy(self) -> None:
        """Forget what was noted and never charged."""
        for step in self._open():
            if self._ledger.find_charge(self.key(step)) is None and not self._folder.step(step).exists():
                self._folder.forget(step)

    def take(
        self,
        question: str,
        target: dict[str, Any],
        key: str | None,
        plan: Any,
        payer: Ledger,
        progress: Progress | None,
        tell: Told | None,
    ) -> Taken:
        """Note a new step, and carry it out; the payer is the ledger, or that of somebody who asks."""
        used = self._folder.numbers()
        intent = Intent(1 + max(used, default=0), question, target, key, plan)
        self._folder.write(intent)
        return self.carry_out(intent, payer, progress, tell)

    def carry_out(self, intent: Intent, payer: Ledger, progress: Progress | None, tell: Told | None) -> Taken:
        """Charge, measure and publish a step, or go on with it; a note for which nothing was charged is taken back."""
        from hushcube.verbs.releasing import release

        declared = self._declared
        bad_rows: BadRows = "missing" if declared.bad_rows == "missing" else "refuse"
        try:
            published = release(
                intent.plan,
                self._data,
                out=self._folder.step(intent.number),
                query=declared.query,
                engine=declared.engine,
                bad_rows=bad_rows,
                ledger=payer,
                account=declared.account,
                key=self.key(intent.number),
                progress=progress,
                tell_owner=tell,
            )
        except BaseException:
            with suppress(HushcubeError, OSError):
                if self._ledger.find_charge(self.key(intent.number)) is None:
                    self._folder.forget(intent.number)
            raise
        self._recorded.add(intent.number)
        return self._taken(intent, published)

    def finish(self, progress: Progress | None = None, tell: Told | None = None) -> list[Taken]:
        """Go on with steps that were charged and for which no noise was drawn yet; it costs nothing more."""
        able = [intent for intent, charge in self.unfinished() if not charge.begun or self._is_there(intent)]
        return [self.carry_out(intent, self._ledger, progress, tell) for intent in able]

    def _is_there(self, intent: Intent) -> bool:
        return self._folder.step(intent.number).is_dir()

    def check_data(self) -> None:
        """Refuse to measure where the data has to be given again."""
        if self._data is None and self._declared.query is None:
            fix = "resume the session with the frame as `data`"
            raise SessionError("data", "the session was opened on a frame, which no file keeps", fix)
