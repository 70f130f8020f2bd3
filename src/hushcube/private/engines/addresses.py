"""What may be repeated of the text that a user calls the data: never a user, a password, a token, or rows."""

from __future__ import annotations

import re
from typing import Final

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_SECRET: Final = re.compile(r"@|(passw|pwd|token|secret|credential|key)[a-z_]*\s*=", re.IGNORECASE)
_LONGEST: Final = 300


def shown(text: str) -> str:
    """A path or the name of a table as an error may repeat it; of an address only its kind.

    >>> shown("people.csv"), shown("MySQL://me:secret@host/db"), shown("host=h password=secret")
    ("'people.csv'", 'mysql://...', "'...'")
    """
    if address := _SCHEME.search(text):
        return f"{address[1].lower()}://..."
    if _SECRET.search(text) or not text.isprintable() or len(text) > _LONGEST:  # a text may be the data itself
        return "'...'"
    return repr(text)


def normal(text: str) -> str:
    """An address with its scheme in lower case.

    >>> normal("POSTGRES://Host/db#T")
    'postgres://Host/db#T'
    """
    scheme, mark, rest = text.partition("://")
    return scheme.lower() + mark + rest if mark else text
