"""Labels and names: texts that people write, that files hold and that workload words can name."""

from __future__ import annotations

import math
import re
import reprlib
from numbers import Integral
from typing import Any, Final

from hushcube.errors import BadInput, SchemaError

MAX_LABEL: Final = 10_000
MAX_NAME: Final = 200
_WORKLOAD_WORD: Final = re.compile(r"cube|queries|(prefix|ranges)\(.*\)|(<=|\d+\.\.)?\d+-way|(star|anchored):.*")
_RESERVED: Final = frozenset("*,:=@\"'\\\x7f") | {chr(code) for code in range(32)}


def check_name(name: Any, kind: str) -> None:
    """Refuse what cannot name an attribute or a measure in workload words."""
    if not is_label(name) or name != name.strip() or len(name) > MAX_NAME:
        raise SchemaError(f"{kind} name", f"{short(name)} is not a name", "use a non-empty text without outer blanks")
    bad = sorted(set(name) & _RESERVED)
    if bad:
        raise SchemaError(
            f"{kind} {name!r}",
            f"its name holds {bad[0]!r}, which workload words use",
            "rename it, and give `column:`",
        )
    if _WORKLOAD_WORD.fullmatch(name):
        raise SchemaError(f"{kind} {name!r}", "its name is a workload word", "rename it, and give `column:`")


def check_column(where: str, column: Any) -> None:
    """Refuse what cannot name a column of the data."""
    if column is not None and not is_label(column):
        raise SchemaError(f"{where}, column", "must be a column name", "write the name of the data's column")


def label_of(field: str, raw: Any, kind: type[BadInput] = SchemaError) -> str:
    """Labels are texts; a number or a truth value, in YAML or in Python, stands for its usual text."""
    if isinstance(raw, bool):
        return str(raw).lower()
    if isinstance(raw, str):
        return raw
    if isinstance(raw, Integral):
        return str(int(raw))
    if isinstance(raw, float) and math.isfinite(raw):
        return number_text(raw)
    raise kind(field, f"{short(raw)} is not a label", "use texts or numbers (null is declared by `missing:`)")


def is_label(raw: Any) -> bool:
    """A text that can be written: not empty, not endless, and without half characters (lone surrogates)."""
    if not isinstance(raw, str) or not 0 < len(raw) <= MAX_LABEL:
        return False
    return raw.isascii() or not any("\ud800" <= c <= "\udfff" for c in raw)


def short(raw: Any) -> str:
    """A few characters of what was written, for a message; YAML's anchors can make a small text a huge list."""
    return repr(raw[:40]) if isinstance(raw, str) else reprlib.repr(raw)[:40]


def number_text(number: float) -> str:
    """The usual digits of a number."""
    return str(int(number)) if number == int(number) else repr(number)
