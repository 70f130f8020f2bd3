"""The indexes of packs: where each table is, so that one is found without the list of a million others and the plan.

    tables/3-way-index.parquet     one row for each table of tables/3-way.parquet, in the order of the pack:
        attribute_1, ...           the names of its attributes
        offset, cells              its first row in the pack, and how many it has
        margin_95                  the half-width of the 95% interval of each of its cells; null where cells differ

The manifest has one entry for a pack: `pack` (the number of attributes), `file`, `index`, and how many `tables` and
`cells` there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hushcube.bundle.manifest import MANIFEST, STATEMENT, file_sizes, read_manifest, steadily
from hushcube.bundle.published_table import Table
from hushcube.bundle.reading import check_file, damaged, parquet, read_text
from hushcube.bundle.statement import is_stamped
from hushcube.bundle.tables import read_numbers
from hushcube.errors import BadInput, BundleError
from hushcube.faces.value import UNBIASED
from hushcube.model.arrays import Floats
from hushcube.model.schema import Schema

Entry = dict[str, Any]
Rows = NDArray[np.int32]
_MOST: Final = 10**8
"""Tables of one pack that an index is read for."""


@dataclass(frozen=True)
class Found:
    """A table of a release, with what is printed around it."""

    name: str
    private: bool
    table: Table


def find_table(folder: Path, words: str, *, face: str = UNBIASED, verify: bool = True) -> Found | None:
    """One table of a packed release by its word; the files that are read are verified.

    None where the release has to be opened for it: it has no such index, or measures; or the table is a roll-up, a
    form, or one whose cells have margins of their own.
    """

    def read() -> Found | None:
        manifest = read_manifest(folder)
        if manifest.get("measures") or not any("index" in entry for entry in _listed(manifest)):
            return None
        try:
            return _find(folder, manifest, words, face, verify)
        except BundleError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, BadInput):
            raise damaged(MANIFEST, "does not fit the tables") from None

    return steadily(folder, read)


def _listed(manifest: Entry) -> list[Entry]:
    tables = manifest.get("tables")
    return [entry for entry in tables if isinstance(entry, dict)] if isinstance(tables, list) else []


def _find(folder: Path, manifest: Entry, words: str, face: str, verify: bool) -> Found | None:
    packs = [entry for entry in _listed(manifest) if "index" in entry]
    schema = Schema.from_dict(manifest["schema"])
    asked = [] if words.strip() == "total" and "total" not in schema.names else [n.strip() for n in words.split("*")]
    if len(set(asked)) < len(asked) or not set(asked) <= set(schema.names):
        return None
    names = sorted(asked, key=schema.position)
    pack = next((entry for entry in packs if entry["face"] == face and entry["pack"] == len(names)), None)
    if pack is None:
        return None
    if verify:
        sizes = file_sizes(manifest)
        for name in (STATEMENT, pack["index"], pack["file"]):
            check_file(folder, name, manifest["checksums"].get(name), sizes.get(name))
    place = _place(folder, pack, names)
    if place is None:
        return None
    marginal = schema.marginal(names)
    offset, margin = place
    values, errors = read_numbers(folder, pack["file"], names, offset, schema.cells(marginal))
    if is_stamped(read_text(folder, STATEMENT)) is not (manifest["private"] is False):
        raise damaged(STATEMENT, "does not say of the noise what the manifest says")
    shape = schema.shape(marginal)
    found = np.asarray(values, np.float64).reshape(shape)
    table = Table.of(
        schema, marginal, found, errors.reshape(shape), np.asarray(margin), face=face, private=manifest["private"]
    )
    return Found(manifest["name"], manifest["private"], table.ordered(asked))


def _place(folder: Path, pack: Entry, names: list[str]) -> tuple[int, float] | None:
    """The first row of a table in its pack and the margin of its cells, if the index has them."""
    with parquet(folder, pack["index"]) as file:
        found = _read(file, pack)
        for axis, name in enumerate(names):
            found = found.filter(pc.equal(found.column(axis), name))
        if not found.num_rows or found.column("margin_95").null_count:
            return None
        row = found.slice(0, 1).to_pylist()[0]
        return int(row["offset"]), float(row["margin_95"])


def index_margins(folder: Path, pack: Entry, schema: Schema) -> tuple[Rows, Floats]:
    """The tables of a pack as positions of their attributes, and their margins; no number where there is none."""
    names = pa.array(schema.names, pa.string())
    with parquet(folder, pack["index"]) as file:
        found = _read(file, pack)
        columns = [pc.index_in(found.column(axis), value_set=names) for axis in range(pack["pack"])]
        if any(column.null_count for column in columns):
            raise KeyError
        margins = found.column("margin_95").to_numpy()
        rows = np.array([column.to_numpy() for column in columns], np.int32).reshape(pack["pack"], len(margins)).T
    return rows, margins


def table_entries(folder: Path, manifest: Entry) -> list[Entry]:
    """The entries of all tables, also of those that are only listed in an index."""
    return [table for entry in manifest["tables"] for table in _expanded(folder, entry)]


def _expanded(folder: Path, entry: Entry) -> Iterator[Entry]:
    if "index" not in entry:
        yield entry
        return
    with parquet(folder, entry["index"]) as file:
        listed = _read(file, entry)
        attributes = [listed.column(axis).to_pylist() for axis in range(entry["pack"])]
        numbers = (listed.column(name).to_pylist() for name in ("offset", "cells"))
    own = {"file": entry["file"], "face": entry["face"]}
    for at, (offset, cells) in enumerate(zip(*numbers, strict=True)):
        yield {"attributes": [column[at] for column in attributes], **own, "cells": cells, "offset": offset}


def _read(file: pq.ParquetFile, pack: Entry) -> pa.Table:
    """The whole index; a million rows are read in a moment."""
    wanted = [f"attribute_{axis + 1}" for axis in range(pack["pack"])]
    if file.schema_arrow.names != [*wanted, "offset", "cells", "margin_95"] or file.metadata.num_rows > _MOST:
        raise KeyError
    if file.metadata.num_rows != pack["tables"]:
        raise KeyError
    return file.read()
