"""Labels and names: texts that people write, that files hold and that workload words can name."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any, Final

from hushcube.errors import BadInput, SchemaError
from hushcube.text import short

MAX_LABEL: Final = 10_000
MAX_NAME: Final = 200
_WORKLOAD_WORD: Final = re.compile(r"cube|queries|(prefix|ranges)\(.*\)|(<=|\d+\.\.)?\d+-way|(star|anchored):.*")
_RESERVED: Final = frozenset("*,:=@\"'\\\x7f") | {chr(code) for code in range(32)}


def check_name(name: Any, what: str) -> None:
    """Refuse what cannot name an attribute or a measure in workload words."""
    if not is_label(name) or name != name.strip() or len(name) > MAX_NAME:
        raise SchemaError(f"{what} name", f"{short(name)} is not a name", "use a non-empty text without outer blanks")
    bad = sorted(set(name) & _RESERVED)
    if bad:
        problem = f"its name holds {bad[0]!r}, which workload words use"
        raise SchemaError(f"{what} {name!r}", problem, "rename it, and give `column:`")
    if _WORKLOAD_WORD.fullmatch(name):
        raise SchemaError(f"{what} {name!r}", "its name is a workload word", "rename it, and give `column:`")


def check_column(where: str, column: Any) -> None:
    """Refuse what cannot name a column of the data."""
    if column is not None and not is_label(column):
        raise SchemaError(f"{where}, column", "must be a column name", "write the name of the data's column")


def check_keys(where: str, raw: Any, keys: Sequence[str], example: str, error: type[BadInput] = SchemaError) -> None:
    """Refuse what is not a mapping, and keys that are not known."""
    if not isinstance(raw, Mapping):
        raise error(where, "must be a mapping", example)
    unknown = [key for key in raw if key not in keys]
    if unknown:
        fix = f"use only {', '.join(keys[:-1])} and {keys[-1]}"
        raise error(where, f"has the unknown key {short(unknown[0])}", fix)


def label_of(field: str, raw: Any, error: type[BadInput] = SchemaError) -> str:
    """Labels are texts; a number or a truth value, in YAML or in Python, stands for its usual text."""
    if isinstance(raw, bool):
        return str(raw).lower()
    if isinstance(raw, str):
        return raw
    if isinstance(raw, Integral):
        return str(int(raw))
    if isinstance(raw, float) and math.isfinite(raw):
        return number_text(raw)
    raise error(field, f"{short(raw)} is not a label", "use texts or numbers (null is declared by `missing:`)")


def is_label(raw: Any) -> bool:
    """A text that can be written: not empty, not endless, and without half characters (lone surrogates)."""
    if not isinstance(raw, str) or not 0 < len(raw) <= MAX_LABEL:
        return False
    return raw.isascii() or not any("\ud800" <= c <= "\udfff" for c in raw)


def number_text(number: float) -> str:
    """The usual digits of a number."""
    return str(int(number)) if number == int(number) else repr(number)


@dataclass(frozen=True)
class LabelFile:
    """A mapping file as it was read: its name beside the schema, its size and its checksum."""

    name: str
    size: int
    sha256: str

    def __post_init__(self) -> None:
        is_size = type(self.size) is int and self.size >= 0
        is_sum = isinstance(self.sha256, str) and re.fullmatch("[0-9a-f]{64}", self.sha256) is not None
        if not is_label(self.name) or not is_size or not is_sum:
            raise SchemaError("labels", "do not say correctly which file they come from", "leave the key out")

    @classmethod
    def of(cls, name: str, text: str) -> LabelFile:
        """A file by its content."""
        content = text.encode("utf-8")
        return cls(name, len(content), hashlib.sha256(content).hexdigest())

    def is_copied(self, path: Path) -> bool:
        """Whether another file has the same content."""
        if path.stat().st_size != self.size:
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == self.sha256

    def to_dict(self) -> dict[str, Any]:
        """The YAML form."""
        return {"file": self.name, "bytes": self.size, "sha256": self.sha256}

    @classmethod
    def from_dict(cls, raw: Any) -> LabelFile | None:
        """Read the YAML form."""
        if raw is None:
            return None
        if not isinstance(raw, Mapping) or raw.keys() != {"file", "bytes", "sha256"}:
            raise SchemaError("labels", "do not say correctly which file they come from", "leave the key out")
        return cls(raw["file"], raw["bytes"], raw["sha256"])
