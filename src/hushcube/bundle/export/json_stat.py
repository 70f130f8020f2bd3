"""JSON-stat 2.0: a dataset for each table, and a collection that lists them.

A table has one dimension for each of its attributes, and last one of the role `metric`, whose categories are what is
known of each cell. `value` has the numbers in row-major order, `status` the quality of those that are not reliable.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from hushcube.bundle.export.exported import Axis, ExportedTable
from hushcube.bundle.export.format import Listed, TableFiles
from hushcube.bundle.published_table import beside
from hushcube.bundle.statement import mark, stamp
from hushcube.model.quality import QUALITY_WORDS

COLLECTION: Final = "collection.json"
METRIC: Final = "measure"


class JsonStatFiles(TableFiles):
    """A folder with collection.json and one dataset for each table; or the dataset of one table."""

    suffix = ".json"

    def write_table(self, table: ExportedTable, path: Path) -> None:
        """The numbers follow the head of the document run by run."""
        (metric,) = beside((axis.name for axis in table.axes), METRIC)
        columns = [column for column in table.columns if column.is_number]
        categories = {column.name: column.title for column in columns}
        dimensions = {axis.name: _dimension(axis) for axis in table.axes}
        dimensions[metric] = {"label": "Measure", "category": {"index": [*categories], "label": categories}}
        head = {
            "version": "2.0",
            "class": "dataset",
            "label": f"{table.title}{mark(table.private)}",
            **self._about(table.word),
            "id": [*dimensions],
            "size": [*table.shape, len(categories)],
            "role": {"metric": [metric]},
            "dimension": dimensions,
        }
        with path.open("w", encoding="utf-8") as file:
            file.write(f'{_json(head)[:-1]}, "value": [')
            for at, row in enumerate(table.rows(columns)):
                file.write("," * (at > 0) + ",".join(map(_number, row)))
            file.write(f'], "status": {_json(_status(table))}}}\n')

    def _about(self, word: str | None = None) -> dict[str, Any]:
        """What is said about the release, and the words of hushcube for what is exported."""
        about = self.about
        own = {"name": about.name, **({} if word is None else {"table": word}), "face": about.face}
        notes = [] if about.stamp is None else [about.stamp]
        notes += [paragraph for _, paragraphs in about.sections for paragraph in paragraphs]
        return {
            "source": about.source,
            "note": notes,
            "extension": {"hushcube": {**own, **stamp(private=about.private)}},
        }

    def write_contents(self, listed: Sequence[Listed], folder: Path) -> None:
        """The collection."""
        items = [
            {"class": "dataset", "href": each.file, "label": f"{each.title}{mark(self.about.private)}"}
            for each in listed
        ]
        told = {
            "version": "2.0",
            "class": "collection",
            "label": f"{self.about.title}{mark(self.about.private)}",
            **self._about(),
            "link": {"item": items},
        }
        (folder / COLLECTION).write_text(f"{_json(told)}\n", encoding="utf-8")


def _dimension(axis: Axis) -> dict[str, Any]:
    labels = dict(zip(axis.codes, axis.labels, strict=True))
    return {"label": axis.title, "category": {"index": [*labels], "label": labels}}


def _status(table: ExportedTable) -> dict[str, str]:
    """The quality of estimates that are not reliable, by the position of each among all numbers."""
    width, first = sum(column.is_number for column in table.columns), 0
    found: dict[str, str] = {}
    for _, own in table.quantities:
        for quality in (column.numbers for column in own if not column.is_number):
            flagged = np.flatnonzero(quality != QUALITY_WORDS[0])
            found |= {str(at * width + first): quality[at] for at in flagged.tolist()}
        first += sum(column.is_number for column in own)
    return found


def _json(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


def _number(number: float) -> str:
    return "null" if math.isnan(number) else repr(number)
