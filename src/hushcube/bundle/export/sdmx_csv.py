"""SDMX-CSV 2.0: observations with their dimensions and attributes, for systems that exchange statistics.

    STRUCTURE,STRUCTURE_ID,ACTION,SEX,AGE,MEASURE,OBS_VALUE,STD_ERROR,LOW_95,HIGH_95,QUALITY,OBS_STATUS
    dataflow,HUSHCUBE:people-sex-age(1.0.0),I,Female,3,count,41.2,6.5,28.5,53.9,reliable,A

A table is a dataflow. Its attributes and MEASURE (count, sum(days), ...) are the dimensions; codes are what stands in
the data. Where labels or titles differ from codes and names, the columns are those that the format calls `labels=name`:
after the column of each component stands one with its title, which holds labels.

The id of a dataflow is made from the name of the schema and the word of the table: HUSHCUBE:NAME-ATTRIBUTE-...(1.0.0).
A character that ids cannot have becomes an underscore; where that happens, $ and eight digits of the SHA-256 of both
follow, so that different tables have different ids. The ids of components are names in capitals, made likewise.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, product
from pathlib import Path
from typing import Final

from hushcube.bundle.export.csv_tables import NOT_PRIVATE, digits, write_csv, write_list
from hushcube.bundle.export.exported import ExportedTable
from hushcube.bundle.export.format import Listed, TableFiles
from hushcube.model.quality import QUALITY_WORDS
from hushcube.text import guarded

_VALUES: Final = {
    "value": ("OBS_VALUE", "Value"),
    "std_error": ("STD_ERROR", "Standard error"),
    "low_95": ("LOW_95", "Lower end of the 95% interval"),
    "high_95": ("HIGH_95", "Upper end of the 95% interval"),
    "quality": ("QUALITY", "Quality"),
    "estimated_error": ("ESTIMATED_ERROR", "Estimated error"),
    "estimated_low": ("ESTIMATED_LOW", "Lower end of the estimated interval"),
    "estimated_high": ("ESTIMATED_HIGH", "Upper end of the estimated interval"),
}
_STATUS: Final = ("OBS_STATUS", "Observation status")
_NORMAL, _UNRELIABLE, _MISSING = "A", "U", "O"  # of the cross-domain code list CL_OBS_STATUS
_HEAD: Final = ("STRUCTURE", "STRUCTURE_ID", "STRUCTURE_NAME", "ACTION", "SERIES_KEY", "OBS_KEY")
_MEASURE: Final = ("MEASURE", "Measure")
_WARNING: Final = ("WARNING", "Warning")
_LONGEST: Final = 200  # characters of an id


class SdmxCsvFiles(TableFiles):
    """A folder with contents.csv, notes.txt and one file for each table; or the file of one table."""

    suffix = ".csv"

    def write_table(self, table: ExportedTable, path: Path) -> None:
        """One observation for each cell and quantity."""
        write_csv(path, self._rows(table), "utf-8")

    def write_contents(self, listed: Sequence[Listed], folder: Path) -> None:
        """contents.csv and notes.txt, as those of CSV."""
        write_list(self, listed, folder)

    def _rows(self, table: ExportedTable) -> Iterator[list[str]]:
        statistics = [own for own in _VALUES if any(column.statistic == own for column in table.columns)]
        fixed = [_MEASURE, *(_VALUES[own] for own in statistics), _STATUS, *([] if table.private else [_WARNING])]
        ids = component_ids([axis.name for axis in table.axes], [*_HEAD, *(own for own, _ in fixed)])
        named = any(axis.has_labels or axis.title != axis.name for axis in table.axes)
        names = _unique([axis.title for axis in table.axes], [*_HEAD, *ids, *chain.from_iterable(fixed)])
        components = [*zip(ids, names, strict=True), *fixed]
        head = ["dataflow", dataflow_id(self.about.name, table.word), *[table.title] * named, "I"]
        yield [*_HEAD[: 2 + named], "ACTION", *_flat(components, named)]
        texts = [list(zip(map(guarded, a.codes), map(guarded, a.labels), strict=True)) for a in table.axes]
        stamp = [] if table.private else [(NOT_PRIVATE, "")]
        for quantity, columns in table.quantities:
            title = next(column.title for column in columns)
            present = [column.statistic for column in columns]
            for own, row in zip(product(*texts), table.rows(columns), strict=True):
                found = dict(zip(present, row, strict=True))
                numbers = [(digits(found.get(each, math.nan)), "") for each in statistics]
                is_flagged = found.get("quality", QUALITY_WORDS[0]) != QUALITY_WORDS[0]
                status = _MISSING if math.isnan(found["value"]) else _UNRELIABLE if is_flagged else _NORMAL
                cells = [*own, (guarded(quantity), guarded(title)), *numbers, (status, ""), *stamp]
                yield [*head, *_flat(cells, named)]


def _flat(pairs: Iterable[tuple[str, str]], named: bool) -> Iterator[str]:
    """Ids, and beside each its name where names are wanted."""
    return chain.from_iterable(pair if named else pair[:1] for pair in pairs)


def dataflow_id(name: str, word: str) -> str:
    """What identifies a table.

    >>> dataflow_id("people", "age*sex"), dataflow_id("people", "total")
    ('HUSHCUBE:people-age-sex(1.0.0)', 'HUSHCUBE:people-total(1.0.0)')
    >>> dataflow_id("people", "age@band")
    'HUSHCUBE:people-age_band$c592d7c0(1.0.0)'
    """
    parts = [name, *word.split("*")]
    safe = [re.sub(r"[^A-Za-z0-9_]", "_", part) for part in parts]
    text = "-".join(safe)
    if safe != parts or len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}${hashlib.sha256(f'{name}*{word}'.encode()).hexdigest()[:8]}"
    return f"HUSHCUBE:{text}(1.0.0)"


def component_ids(names: Sequence[str], taken: Sequence[str]) -> list[str]:
    """Ids of dimensions: letters of ASCII, digits and underscores, the first of them a letter; each once.

    >>> component_ids(["age@band", "2nd visit", "Größe", "größe"], ["OBS_VALUE"])
    ['AGE_BAND', 'D_2ND_VISIT', 'GR_SSE', 'GR_SSE_2']
    """
    safe = [re.sub(r"[^A-Z0-9]+", "_", name.upper()).strip("_")[:_LONGEST] for name in names]
    return _unique([text if text[:1].isalpha() else f"D_{text}".rstrip("_") for text in safe], taken)


def _unique(texts: Sequence[str], taken: Iterable[str]) -> list[str]:
    """Texts that differ from each other and from what is taken; the second of a kind is called `_2`."""
    used, found = set(taken), []
    for text in texts:
        own, number = text, 1
        while own in used:
            number += 1
            own = f"{text}_{number}"
        used.add(own)
        found.append(own)
    return found
