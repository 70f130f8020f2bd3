"""Every format, and writing tables in one: whole or not at all, and never over anything that is there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hushcube.bundle.export.about import About
from hushcube.bundle.export.choosing import Chosen
from hushcube.bundle.export.csv_tables import CsvFiles
from hushcube.bundle.export.exported import ExportedTable, Exporter
from hushcube.bundle.export.format import Format
from hushcube.bundle.export.json_stat import JsonStatFiles
from hushcube.bundle.export.pages import Pages
from hushcube.bundle.export.sdmx_csv import SdmxCsvFiles
from hushcube.bundle.export.workbook import Workbook
from hushcube.bundle.tables import safe_names
from hushcube.durable import check_file, new_file, new_folder
from hushcube.errors import BadInput, OutputError
from hushcube.progress import Progress

FORMATS: Final[dict[str, type[Format]]] = {
    "csv": CsvFiles,
    "xlsx": Workbook,
    "json-stat": JsonStatFiles,
    "sdmx-csv": SdmxCsvFiles,
    "html": Pages,
}


def check_format(word: str, out: Path) -> type[Format]:
    """The format that a word names, if it can be written there."""
    if word not in FORMATS:
        raise BadInput("format", f"{word!r} is not a format", f"use one of: {', '.join(FORMATS)}")
    kind = FORMATS[word]
    is_file = out.suffix.lower() == kind.suffix
    if kind.one_file and not is_file:
        raise OutputError("out", f"{word} is one file, and its name does not end in {kind.suffix}", "name it so")
    if is_file:
        check_file(out)
    else:
        check_file(out, kind="folder", kinds="folders")
    return kind


def write_export(chosen: Chosen, out: Path, kind: type[Format], progress: Progress) -> None:
    """Write tables to a new file, if its name has the suffix of the format, or to a new folder."""
    sizes = chosen.sizes
    is_file = out.suffix.lower() == kind.suffix
    if is_file and not kind.one_file and len(sizes) != 1:
        problem = f"a file ending in {kind.suffix} holds one table, and {len(sizes):,} are chosen"
        raise OutputError("out", problem, "name a folder, or choose one table with `tables`")
    kind.check(sizes)
    about, cells = About.of(chosen.release, chosen.face), sum(sizes)
    with new_file(out) if is_file else new_folder(out) as place:
        kind(about, cells).write(_reported(chosen, cells, progress), place)


def _reported(chosen: Chosen, total: int, progress: Progress) -> Iterator[ExportedTable]:
    """The tables, with a report of each that is written."""
    exporter = Exporter(chosen.release.schema, safe_names(chosen.release.plan))
    done = 0
    for table in chosen:
        found = exporter.table(table)
        yield found
        done += found.cells
        progress("exporting", done / total)
