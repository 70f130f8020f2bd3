"""Whether what explains a release says what is so: the facts of its guides, not their wording.

A guide may have been written by another version of hushcube, in other words. So no text is compared with the one that
this version would write. What is checked is what a reader relies on:

    index.csv                  every table once, with the file, cells, attributes and errors that it has
    README.md, index.html      a line for each table: a link to its file, how many cells, their standard error; links
                               lead to files of the release
    README.md                  epsilon, rho and delta wherever they are given a value, and the factor by which standard
                               errors become margins
    all                        NOT PRIVATE, if the noise came from a seed

At the top, other faces are listed in index.csv and linked in the other files. A guide that does not name one is told
about, and no problem: earlier versions did not, nor does a guide that was to be replaced when a process was stopped.

Sentences around the facts are free, and so are titles. That nobody changed them after the release is what checksums are
for.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from posixpath import normpath
from typing import Final

from hushcube.bundle.checks.verdict import Check
from hushcube.bundle.guide import guide
from hushcube.bundle.listing import Line, Listing
from hushcube.bundle.manifest import INDEX, README, earlier_guide
from hushcube.bundle.reading import read_text
from hushcube.bundle.tables import Entry
from hushcube.errors import BundleError
from hushcube.faces.value import UNBIASED
from hushcube.planning.plan import Plan

_STAMP: Final = "NOT PRIVATE"
_FREE: Final = frozenset({"title", "warning"})  # columns of the index in which words stand
_LINK: Final = re.compile(r"(?<!\\)\]\(([^)\s]*)\)")
_ROW: Final = re.compile(r"^\|.*\|$", re.MULTILINE)
_GUARANTEES: Final = re.compile(r"\b(epsilon|rho|delta)\b\s*=\s*([0-9](?:[0-9.,]*[0-9])?(?:e[+-]?[0-9]+)?)", re.ASCII)
_FACTORS: Final = re.compile(r"([0-9.]+) × `std_error`(?: \+ ([0-9.]+))?")
_NUMBER: Final = re.compile(r"[0-9][0-9,]*(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?", re.ASCII)
Row = tuple[list[str], list[str]]
"""A line of a list of tables: its links, and the texts of its cells."""
_SHOWN: Final = 0.006
"""How far a number for people may be from the one it stands for: they have three digits or more."""


def check_guides(
    folder: Path, manifest: Entry, plan: Plan, places: Mapping[str, str], broken: frozenset[str], files: Check
) -> None:
    """What explains the tables of each face, in its place, says what the plan and the manifest say."""
    entries, private = manifest["tables"], manifest["private"]
    for face, place in {UNBIASED: "", **places}.items():
        listing = Listing.of(plan, face, entries, places, private=private)
        for name, expected in guide(plan, face, entries, places, private=private).items():
            listed = f"{place}/{name}" if place else name
            if listed not in manifest["checksums"]:
                files.add(f"manifest.json: has no checksum of {listed}")
                continue
            try:
                text = read_text(folder, listed)
            except BundleError as problem:
                if listed not in broken:
                    files.add(f"{problem.field}: {problem.problem}")
                continue
            if hashlib.sha256(text.encode()).hexdigest() == earlier_guide(manifest).get(listed, [None])[0]:
                files.remark(f"{listed}: is the one of before the last face was added")
                continue
            known = {*manifest["checksums"], "manifest.json"}
            for problem_found in _problems(name, text, expected, listing, known):
                files.add(f"{listed}: {problem_found}")
            for other in listing.others:
                if f"{other.folder}/" not in text:
                    files.remark(f"{listed}: does not name the face {other.face}")


def _problems(name: str, text: str, expected: str, listing: Listing, known: set[str]) -> Iterator[str]:
    if (_STAMP in expected) and _STAMP not in text:
        yield f"does not say {_STAMP}"
    if name == INDEX:
        unnamed = {other.face for other in listing.others if f"{other.folder}/" not in text}
        yield from _index_problems(text, expected, unnamed)
        return
    rows = _markdown_rows(text) if name == README else _Page(text).rows
    links = _LINK.findall(text) if name == README else _Page(text).links
    yield from _list_problems(rows, listing)
    for link in dict.fromkeys(links):
        place = normpath(f"{listing.place}/{link}" if listing.place else link)
        if ":" not in link and place not in known:
            yield f"links to {link[:80]!r}, which is not part of the release"
    if name == README:
        for what, pattern in (("the guarantee", _GUARANTEES), ("margins", _FACTORS)):
            if wrong := set(pattern.findall(text)) - set(pattern.findall(expected)):
                given = " ".join(sorted(wrong)[0]).strip()
                yield f"says of {what} what the plan does not say: {given[:80]}"


def _index_problems(text: str, expected: str, unnamed: Collection[str] = ()) -> Iterator[str]:
    """Lines of the index that say something else than the plan; columns of words, and unknown ones, say what they like.

    The tables of faces that are `unnamed` need not be listed.

    >>> good = "table,title,cells,std_error\\na,A,2,1.5\\n"
    >>> list(_index_problems("table,cells,note,std_error\\na,2,see below,1.5000001\\n", good))
    []
    >>> list(_index_problems("table,title,cells,std_error\\na,A,3,1.5\\n", good))
    ['a: `cells` is not 2']
    """
    found, wanted = ({_key(line): line for line in csv.DictReader(io.StringIO(each))} for each in (text, expected))
    if len(found) != sum(1 for _ in csv.DictReader(io.StringIO(text))):
        yield "lists a table twice"
    for key in wanted.keys() - found.keys():
        if key[-1] in unnamed:
            continue
        yield f"does not list the table {' of the face '.join(key)}"
    for key in found.keys() - wanted.keys():
        yield f"lists {' of the face '.join(map(str, key))[:120]}, which is no table of the release"
    for key in wanted.keys() & found.keys():
        for column, value in wanted[key].items():
            if column not in _FREE and not _same(found[key].get(column), value):
                yield f"{key[0]}: `{column}` is not {value or 'empty'}"


def _key(line: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(str(line[name]) for name in ("table", "face") if name in line)


def _same(found: str | None, wanted: str) -> bool:
    """Whether two fields are the same text, or the same number but for the last digits."""
    if found == wanted:
        return True
    try:
        return math.isclose(float(found or ""), float(wanted), rel_tol=1e-6)
    except ValueError:
        return False


def _list_problems(rows: Iterable[Row], listing: Listing) -> Iterator[str]:
    """Tables that have no line, or a line with other numbers."""
    lines: dict[str, Line] = {line.file: line for line in listing.lines}
    seen: set[str] = set()
    for links, texts in rows:
        numbers = [float(text.replace(",", "")) for text in map(str.strip, texts) if _NUMBER.fullmatch(text)]
        for file in links:
            if file not in lines:
                continue
            seen.add(file)
            line = lines[file]
            facts = {"cells": float(line.cells), "a standard error": line.errors[0]}
            for what, fact in facts.items():
                near = any(math.isclose(number, fact, rel_tol=_SHOWN, abs_tol=1e-12) for number in numbers)
                if not math.isnan(fact) and not near:
                    yield f"does not give {file} {what} of {fact:.6g}"
    for file in lines.keys() - seen:
        yield f"does not list {file}"


def _markdown_rows(text: str) -> Iterator[Row]:
    for row in _ROW.findall(text):
        yield _LINK.findall(row), re.split(r"(?<!\\)\|", row)


class _Page(HTMLParser):
    """The links of a page, and the rows of its tables."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.rows: list[Row] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A row begins, or a cell of it, or a link."""
        if tag == "tr":
            self.rows.append(([], []))
        found = [value for name, value in attrs if name in ("href", "src") and value is not None]
        self.links += found
        if self.rows:
            self.rows[-1][0].extend(found)
            self.rows[-1][1].append("")

    def handle_data(self, data: str) -> None:
        """A text in a cell."""
        if self.rows:
            self.rows[-1][1][-1] += data
