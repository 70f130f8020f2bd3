"""Codes from dictionaries and pages: the same as those of the values, whatever the file looks like."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st
from test_parquet import counted

from hushcube.errors import DataError
from hushcube.model.attribute import Attribute
from hushcube.model.schema import Schema
from hushcube.private.engines import compiled, open_source, pages, parquet
from hushcube.private.engines.coding import coder
from hushcube.private.engines.pages import Chunk, Pages

SQL = {pa.int8(): "tinyint", pa.uint32(): "uinteger", pa.int64(): "bigint", pa.float32(): "float",
       pa.float64(): "double", pa.string(): "varchar"}  # fmt: skip


@pytest.fixture(autouse=True)
def _compiled():
    if pages._functions() is None:
        assert shutil.which("cc") is None, "compiled code is not there"
        pytest.skip("there is no C compiler")


def attribute_for(kind, values):
    if pa.types.is_string(kind):
        return Attribute(name="a", values=tuple(sorted(set(values))) or ("none",), missing="?", other="rest")
    return Attribute(name="a", range=(0, max(1, *map(int, values), 1) // 2), missing="?", other="rest")


def positions_for(kind, values):
    return coder(attribute_for(kind, values), "#1", SQL[kind]).positions


def opened(content, positions, kind, group=0):
    """Of the only column of a file, given as bytes; None where it is left to Arrow."""
    metadata = pq.read_metadata(io.BytesIO(content))
    chunk = Chunk.of(metadata.row_group(group).column(0), metadata.schema.column(0), kind)
    own = None if chunk is None else chunk.read(io.BytesIO(content))
    return None if own is None else Pages.of(chunk, own, positions)


def written(array, **options):
    file = io.BytesIO()
    pq.write_table(pa.table({"a": array}), file, **options)
    return file.getvalue()


@st.composite
def columns(draw):
    """Values of a kind, few or many different ones, in runs or not, some missing."""
    kind = draw(st.sampled_from(sorted(SQL, key=str)))
    random = np.random.default_rng(draw(st.integers(0, 10**6)))
    different = draw(st.sampled_from([1, 2, 3, 7, 8, 100, 120, 300, 5_000]))
    rows, run = draw(st.sampled_from([1, 8, 1_000, 20_000])), draw(st.sampled_from([1, 3, 900]))
    numbers = np.repeat(random.integers(0, min(different, 120 if kind == pa.int8() else different), rows), run)[:rows]
    values = [f"t{n}" if pa.types.is_string(kind) else int(n) for n in numbers]
    absent = draw(st.sampled_from([0.0, 0.01, 0.5, 1.0]))
    return pa.array([None if random.random() < absent else v for v in values], kind), values


@settings(max_examples=60, deadline=None)
@given(
    column=columns(),
    codec=st.sampled_from(["none", "snappy"]),
    version=st.sampled_from(["1.0", "2.0"]),
    page=st.sampled_from([100, 2_000, 1 << 20]),
    required=st.booleans(),
    data=st.data(),
)
def test_codes_are_those_of_the_values(column, codec, version, page, required, data):
    array, values = column
    field = pa.field("a", array.type, nullable=not (required and not array.null_count))
    file = io.BytesIO()
    options = {"compression": codec, "data_page_version": version, "data_page_size": page, "write_batch_size": 128}
    pq.write_table(pa.table([array], schema=pa.schema([field])), file, dictionary_pagesize_limit=1 << 25, **options)
    positions = positions_for(array.type, values)
    found = opened(file.getvalue(), positions, array.type)
    assert found is not None
    wanted, at = positions(array), 0
    while at < len(array):
        some = data.draw(st.integers(1, 3_000)) if len(array) - at > 3_000 else len(array) - at
        codes = found.codes(some)
        assert codes.dtype == wanted.dtype and np.array_equal(codes, wanted[at : at + some])
        at += some
    with pytest.raises(pa.ArrowInvalid):
        found.codes(1)


@pytest.mark.parametrize("rows", [3_000, 300_000])
def test_files_of_duckdb(tmp_path, rows):
    """Which stores what it likes; texts and numbers, some missing."""
    path = tmp_path / "x.parquet"
    with duckdb.connect() as connection:
        columns = "CASE WHEN i % 11 > 0 THEN 'v' || i % 7 END AS t, (i * 7 % 40)::TINYINT AS n"
        connection.sql(f"SELECT {columns} FROM range({rows}) r(i)").write_parquet(str(path))
    kinds = {"t": Attribute(name="t", values=("v0", "v2", "v3"), missing="?", other="rest"),
             "n": Attribute(name="n", range=(3, 20), other="rest")}  # fmt: skip
    metadata, table = pq.read_metadata(path), pq.read_table(path)
    for group in range(metadata.num_row_groups):
        start = sum(metadata.row_group(g).num_rows for g in range(group))
        for at, (name, sql_type) in enumerate({"t": "varchar", "n": "tinyint"}.items()):
            positions, values = coder(kinds[name], "#1", sql_type).positions, table.column(name).combine_chunks()
            chunk = Chunk.of(metadata.row_group(group).column(at), metadata.schema.column(at), values.type)
            assert chunk is not None
            with path.open("rb") as file:
                found = Pages.of(chunk, chunk.read(file), positions)
            assert found is not None
            assert np.array_equal(found.codes(chunk.rows), positions(values[start : start + chunk.rows]))


def test_a_column_that_outgrows_its_dictionary_beside_one_of_categories(tmp_path):
    """The first is left to Arrow; the second is as pandas writes it."""
    wide = pa.array(range(200_000), pa.int64())
    labels = pa.array([f"c{i % 5}" for i in range(200_000)]).dictionary_encode()
    schema = Schema((
        Attribute(name="wide", bins=(0, 40_000, 100_000, 200_000)),
        Attribute(name="label", values=tuple(f"c{i}" for i in range(5))),
    ))  # fmt: skip
    pq.write_table(pa.table({"wide": wide, "label": labels}), tmp_path / "x.parquet", row_group_size=150_000)
    assert opened(written(wide), positions_for(wide.type, [1]), wide.type) is None
    assert opened(written(labels), positions_for(pa.string(), ["c1"]), pa.string()) is not None
    rows, tables, _ = counted(tmp_path / "x.parquet", schema, [np.array([[0, 1]], np.int32)], ())
    assert rows == 200_000 and tables == [[[8_000] * 5, [12_000] * 5, [20_000] * 5]]


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "zstd"},
        {"use_dictionary": False},
        {"use_dictionary": False, "column_encoding": {"a": "DELTA_BINARY_PACKED"}},
    ],
    ids=str,
)
def test_what_is_stored_otherwise_is_left_to_arrow(options, tmp_path):
    array = pa.array([i % 3 for i in range(1_000)], pa.int64())
    assert opened(written(array, **options), positions_for(array.type, [2]), array.type) is None
    pq.write_table(pa.table({"a": array}), tmp_path / "x.parquet", **options)
    tables = counted(tmp_path / "x.parquet", Schema((Attribute(name="a", codes=3),)), [np.array([[0]], np.int32)], ())[
        1
    ]
    assert tables == [[334, 333, 333]]


def test_lists_and_columns_inside_others_are_left_to_arrow():
    for array in (pa.array([[1, 2], []]), pa.array([{"b": 1}, None])):
        assert opened(written(array), positions_for(pa.int64(), [1]), pa.int64()) is None


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}], ids=str)
def test_texts_that_are_not_utf_8_are_refused(tmp_path, options):
    raw = pa.array([b"yes", b"\xff", b"no"])
    array = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    pq.write_table(pa.table({"a": array}), tmp_path / "x.parquet", **options)
    schema = Schema((Attribute(name="a", values=("yes", "no"), other="rest"),))
    with pytest.raises(DataError, match="Parquet data cannot be read"):
        counted(tmp_path / "x.parquet", schema, [np.array([[0]], np.int32)], ())


@pytest.mark.parametrize("kept", [2, 3, 4], ids=str)
def test_a_number_that_the_dictionary_does_not_have_is_damage(kept, monkeypatch):
    numbers = pages._numbers
    monkeypatch.setattr(pages, "_numbers", lambda *given: numbers(*given)[:kept])
    found = opened(written(pa.array([0, 1, 2, 3] * 50, pa.int64())), positions_for(pa.int64(), [3]), pa.int64())
    if kept == 4:
        assert len(found.codes(200)) == 200
        return
    with pytest.raises(pa.ArrowInvalid):
        found.codes(200)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_damaged_bytes_are_refused_or_read_and_nothing_else(data):
    """Whatever the pages hold: no answer, an error, or as many codes as there are rows."""
    random = np.random.default_rng(data.draw(st.integers(0, 5)))
    codec, version = data.draw(st.sampled_from(["none", "snappy"])), data.draw(st.sampled_from(["1.0", "2.0"]))
    values = [None if random.random() < 0.2 else int(n) for n in np.repeat(random.integers(0, 9, 400), 3)]
    content = bytearray(
        written(pa.array(values, pa.int64()), compression=codec, data_page_version=version, data_page_size=200)
    )
    chunk = pq.read_metadata(io.BytesIO(content)).row_group(0).column(0)
    end = chunk.dictionary_page_offset + chunk.total_compressed_size
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(chunk.dictionary_page_offset, end - 1))
        content[at] = data.draw(st.integers(0, 255))
    found = opened(bytes(content), positions_for(pa.int64(), [8]), pa.int64())
    if found is not None:
        with contextlib.suppress(pa.ArrowInvalid):
            assert len(found.codes(len(values))) == len(values)


@pytest.mark.parametrize("codec", ["none", "snappy"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_each_byte_damaged_in_turn(codec, version):
    """Runs of equal numbers and packed ones: a run may hold a number of more bits than its page has."""
    values = [0, 1, 2, 3, None] * 5 + [3] * 400 + [None] * 30
    whole = written(pa.array(values, pa.int64()), compression=codec, data_page_version=version, data_page_size=100)
    positions = positions_for(pa.int64(), [3])
    chunk = pq.read_metadata(io.BytesIO(whole)).row_group(0).column(0)
    start = chunk.dictionary_page_offset
    refused = 0
    for at in range(start, start + chunk.total_compressed_size):
        for byte in (0x00, 0x7F, 0xFF):
            found = opened(whole[:at] + bytes([byte]) + whole[at + 1 :], positions, pa.int64())
            try:
                assert found is None or len(found.codes(len(values))) == len(values)
            except pa.ArrowInvalid:
                refused += 1
    assert refused


def test_row_groups_that_are_too_large_to_be_read_at_once_are_left_to_arrow(tmp_path, monkeypatch):
    pq.write_table(pa.table({"a": pa.array([0, 1, 1, 2] * 50, pa.int8())}), tmp_path / "x.parquet", row_group_size=70)
    schema, wanted = Schema((Attribute(name="a", codes=3),)), [np.array([[0]], np.int32)]
    by_pages = counted(tmp_path / "x.parquet", schema, wanted, ())
    monkeypatch.setattr(parquet, "_WHOLE", 10)
    monkeypatch.setattr(parquet, "_pages", None)
    assert counted(tmp_path / "x.parquet", schema, wanted, ()) == by_pages == (200, [[50, 100, 50]], None)


def test_without_compiled_code_arrow_reads_all_of_it(tmp_path, monkeypatch):
    pq.write_table(pa.table({"a": pa.array([0, 1, 1, 2], pa.int8())}), tmp_path / "x.parquet")
    schema, wanted = Schema((Attribute(name="a", codes=3),)), [np.array([[0]], np.int32)]
    by_pages = open_source(tmp_path / "x.parquet").count(schema, wanted).tables(wanted[0]).tolist()
    monkeypatch.setattr(pages, "_functions", lambda: None)
    assert (
        open_source(tmp_path / "x.parquet").count(schema, wanted).tables(wanted[0]).tolist() == by_pages == [[1, 2, 1]]
    )


SANITIZED = """
import sys
from pathlib import Path
import pytest
from hushcube.private.engines import compiled
compiled.BUILT = Path(sys.argv[1])
names = "damaged or codes_are or dictionary or texts"
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", sys.argv[2], "-k", f"({names}) and not sanitizers"]))
"""


@pytest.mark.slow
def test_sanitizers_of_the_compiler_see_nothing(tmp_path):
    """The same laws with every read and write of compiled code watched, and every undefined operation."""
    sources = [compiled.BUILT.with_name(name) for name in ("counting.c", "pages.c")]
    built, watched = tmp_path / "watched.so", ("asan", "ubsan")
    flags = ["-std=c99", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
    if subprocess.run(["cc", *flags, "-shared", "-fPIC", "-o", built, *sources], capture_output=True).returncode:
        pytest.skip("the compiler has no sanitizers")
    print_name = (["cc", f"-print-file-name=lib{name}.so"] for name in watched)
    libraries = [subprocess.run(each, capture_output=True, text=True, check=True).stdout.strip() for each in print_name]
    if not all(Path(library).is_absolute() for library in libraries):
        pytest.skip("the compiler's sanitizers cannot be loaded first")
    environment = {**os.environ, "LD_PRELOAD": " ".join(libraries), "ASAN_OPTIONS": "detect_leaks=0"}
    command = [sys.executable, "-c", SANITIZED, str(built), __file__]
    done = subprocess.run(command, env={**environment, "PYTHONMALLOC": "malloc"}, capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6_000:]
