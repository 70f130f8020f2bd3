"""What a format is: how tables are written to one file, or to a folder with one file for each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from hushcube.bundle.export.about import About
from hushcube.bundle.export.exported import ExportedTable
from hushcube.bundle.tables import file_stem
from hushcube.errors import TooLarge

NOTES: Final = "notes.txt"
_FEWER: Final = "choose some with `tables`, or another format"


@dataclass(frozen=True)
class Listed:
    """A table in a list of contents."""

    word: str
    title: str
    attributes: tuple[str, ...]
    cells: int
    file: str
    """Where it is, seen from the list."""

    @classmethod
    def of(cls, table: ExportedTable, file: str) -> Listed:
        """A table that is written."""
        return cls(table.word, table.title, tuple(axis.name for axis in table.axes), table.cells, file)


class Format(ABC):
    """A way to write tables; limits are checked before anything is read."""

    suffix: ClassVar[str]
    one_file: ClassVar[bool] = False
    """Whether a file holds any number of tables; other formats have a folder for more than one."""
    most_tables: ClassVar[int | None] = None
    most_cells: ClassVar[int | None] = None
    """Of one table."""

    def __init__(self, about: About, cells: int = 0) -> None:
        """What is to be said of the release, and how many cells there will be in all."""
        self.about, self.cells = about, cells

    @classmethod
    def check(cls, sizes: Sequence[int]) -> None:
        """Refuse more tables, or larger ones, than the format can hold."""
        if cls.most_tables is not None and len(sizes) > cls.most_tables:
            raise TooLarge("tables", len(sizes), cls.most_tables, _FEWER, "tables")
        if cls.most_cells is not None and max(sizes, default=0) > cls.most_cells:
            raise TooLarge("tables", max(sizes), cls.most_cells, _FEWER, "cells of one table")

    @abstractmethod
    def write(self, tables: Iterable[ExportedTable], place: Path) -> None:
        """Write tables to a new file, or into a new folder."""


class TableFiles(Format):
    """One file for each table, in a folder with a list of them; or the file of one table alone."""

    in_folder = False

    def write(self, tables: Iterable[ExportedTable], place: Path) -> None:
        """Table by table, and the list of contents in the end."""
        if not place.is_dir():
            (table,) = tables
            self.write_table(table, place)
            return
        self.in_folder = True
        (place / "tables").mkdir()
        listed = []
        for number, table in enumerate(tables):
            file = f"tables/{file_stem(number, table.word)}{self.suffix}"
            self.write_table(table, place / file)
            listed.append(Listed.of(table, file))
        self.write_contents(listed, place)

    @abstractmethod
    def write_table(self, table: ExportedTable, path: Path) -> None:
        """Write one table; `in_folder` says whether there is a list of contents beside it."""

    @abstractmethod
    def write_contents(self, listed: Sequence[Listed], folder: Path) -> None:
        """Write the list of contents, and what is said about the release."""
