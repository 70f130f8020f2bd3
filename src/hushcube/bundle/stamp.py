"""The stamp of a release whose noise came from a seed: whatever is written or printed about it carries these words."""

from __future__ import annotations

from typing import Any, Final

from hushcube.shown import Page

NOT_PRIVATE: Final = "NOT PRIVATE: the noise came from a seed. This release is for experiments and protects nobody."


def stamp(*, private: bool | None) -> dict[str, Any]:
    """The fields of a JSON document that say whether a release is private; None where nobody knows.

    >>> stamp(private=True)
    {'private': True}
    >>> stamp(private=False)["warning"][:12]
    'NOT PRIVATE:'
    """
    return {"private": private, **({"warning": NOT_PRIVATE} if private is False else {})}


def file_stamp(*, private: bool) -> dict[str, str]:
    """The metadata of a Parquet file of a release, which goes with the file wherever that is copied."""
    return {} if private else {"hushcube": NOT_PRIVATE}


def stamped(page: Page, *, private: bool | None, caveat: str | None = None) -> Page:
    """A page under the stamp of its release, and under it what the errors of tables do not cover."""
    above = (NOT_PRIVATE,) if private is False else ()
    return Page((*above, *page.parts, *([] if caveat is None else [caveat])))


def mark(private: bool) -> str:
    """The stamp at the end of a line that introduces a release."""
    return "" if private else ", NOT PRIVATE"
