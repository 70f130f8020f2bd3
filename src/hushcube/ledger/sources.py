"""The name of a source, as an account is bound to it and a charge records it: where data is, and nothing secret.

people.csv, csv:people.csv              /home/me/people.csv
people.duckdb#stays                     /home/me/people.duckdb#stays
Postgres://me@Host:5432/hospital#stays  postgresql://host:5432/hospital#stays
a query                                 the same, and the digest of the SQL, which may quote rows
a frame                                 frame:pandas.DataFrame, since it has no place
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

_PREFIXES: Final = ("csv:", "parquet:", "duckdb:")
_SCHEMES: Final = {"postgres": "postgresql"}
_TELLING: Final = ("dbname", "host", "hostaddr", "options", "port", "service")
"""Parameters of an address that say which data it is; others may be credentials, and are left out."""


def source_name(data: object, query: str | None = None) -> str:
    """What a source is called, whoever reads it.

    >>> source_name("Postgres://me:secret@Host:5432/hospital?sslmode=require#stays")
    'postgresql://host:5432/hospital#stays'
    >>> source_name("parquet:/data/../data/people"), source_name("/data/people.duckdb#stays")
    ('/data/people', '/data/people.duckdb#stays')
    >>> source_name(None, "SELECT 1")
    'query sha256:e004ebd5b5532a4b'
    """
    if query is None:
        return _place(data)
    asked = f"query sha256:{hashlib.sha256(query.encode()).hexdigest()[:16]}"
    return asked if data is None else f"{_place(data)} {asked}"


def declared_source(text: str) -> str:
    """What an account is bound to, as its owner writes it: a source, or the name that a charge records for it.

    >>> declared_source("frame:pandas.DataFrame"), declared_source("/data/../data/people.csv")
    ('frame:pandas.DataFrame', '/data/people.csv')
    """
    return text if text.startswith(("frame:", "query sha256:")) else source_name(text)


def _place(data: object) -> str:
    if not isinstance(data, str | os.PathLike):
        return f"frame:{type(data).__module__.partition('.')[0]}.{type(data).__name__}"
    text = os.fsdecode(data)
    if "://" in text:
        return _address(text)
    text = next((text.removeprefix(prefix) for prefix in _PREFIXES if text.startswith(prefix)), text)
    return str(Path(text).resolve())


def _address(text: str) -> str:
    """Without user, password and what else may be secret."""
    parts = urlsplit(text)
    scheme = _SCHEMES.get(parts.scheme, parts.scheme)
    host = parts.netloc.rpartition("@")[2].lower()
    kept = urlencode([(name, value) for name, value in parse_qsl(parts.query) if name in _TELLING])
    return f"{scheme}://{host}{parts.path}{'?' * bool(kept)}{kept}{'#' * bool(parts.fragment)}{parts.fragment}"
