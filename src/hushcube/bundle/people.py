"""Synthetic people as files: one row each, one labelled column for each attribute."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hushcube.bundle.reading import damaged, parquet
from hushcube.bundle.stamp import file_stamp
from hushcube.errors import OutputError
from hushcube.faces.value import MOST_PEOPLE
from hushcube.model.schema import Schema

Codes = NDArray[np.integer]
SUFFIXES: Final = (".parquet", ".csv")


def write_people(codes: Codes, schema: Schema, path: Path, *, private: bool) -> None:
    """Write people as Parquet or CSV, by the file's suffix; Parquet has room for the stamp of a seeded release."""
    table = pa.table(
        {
            attribute.name: pa.DictionaryArray.from_arrays(
                np.ascontiguousarray(codes[:, i]).astype(np.int32), pa.array(attribute.labels, pa.string())
            )
            for i, attribute in enumerate(schema.attributes)
        },
        metadata=file_stamp(private=private),
    )
    if path.suffix == ".parquet":
        pq.write_table(table, path, compression="zstd")
    elif path.suffix == ".csv":
        plain = pa.table({name: table.column(name).cast(pa.string()) for name in table.column_names})
        pyarrow.csv.write_csv(plain, path)
    else:
        raise OutputError("out", f"{path.suffix or 'no suffix'} is not a kind of file", "end it in .parquet or .csv")


def read_people(folder: Path, name: str, schema: Schema) -> Codes:
    """The positions of people from a Parquet file of a release, which `write_people` wrote."""
    with parquet(folder, name) as file:
        if file.schema_arrow.names != list(schema.names):
            raise damaged(name, "does not fit the schema")
        if file.metadata.num_rows > MOST_PEOPLE:
            raise damaged(name, f"has {file.metadata.num_rows:,} people, more than any release")
        table = file.read()
        columns = []
        for attribute in schema.attributes:
            column = table.column(attribute.name).combine_chunks().cast(pa.string())
            found = pa.compute.index_in(column, value_set=pa.array(attribute.labels, pa.string()))
            if found.null_count:
                raise damaged(name, "does not fit the schema")
            columns.append(found.to_numpy(zero_copy_only=False))
        return np.stack(columns, axis=1) if columns else np.zeros((table.num_rows, 0), np.int64)
