"""Whatever labels and numbers a table has: readers that others wrote find them again in every format.

`HUSHCUBE_EXPORT_CASES=1000` for a thousand tables of each.
"""

import csv
import json
import math
import os
import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hushcube.bundle.export.about import About
from hushcube.bundle.export.csv_tables import CsvFiles, read_csv
from hushcube.bundle.export.exported import Axis, Column, ExportedTable
from hushcube.bundle.export.json_stat import JsonStatFiles
from hushcube.bundle.export.sdmx_csv import SdmxCsvFiles, dataflow_id
from hushcube.bundle.export.workbook import HEADER, Workbook
from hushcube.model.quality import QUALITY_WORDS
from hushcube.text import unguarded

CASES = int(os.environ.get("HUSHCUBE_EXPORT_CASES", "30"))
ABOUT = About("people", "People", "unbiased", True, "Office", "", (("Privacy", ("In plain words.",)),))
ODD = [
    "=1+1",
    "+1",
    "-1",
    "-5 to 3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "'",
    "''x",
    'say "no"',
    "a,b;c",
    "two\nlines",
    "a\r\nb",
]
ODD += [
    " =1",
    "＝1",
    "שלום עולם",
    "\u202eabc\u202c",
    "👩‍👩‍👧",
    "é",
    "_x0041_",
    "nan",
    "NA",
    "TRUE",
    "00",
    "1e5",
    " x ",
    "\x00",
    "\x1f",
]
ODD += [
    "http://example.org",
    "=HYPERLINK(1)",
    "internal:'Notes'!A1",
    "<b>&amp;",
    "<r>x</r>",
    "<r><t>x</r>",
    "\ufeff",
    "\x85",
    "\u2028",
]
TEXTS = st.one_of(st.sampled_from(ODD), st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8))
NUMBERS = st.one_of(
    st.floats(-1e12, 1e12),
    st.integers(-(10**6), 10**6).map(float),
    st.just(math.nan),
    st.sampled_from([1e-9, 0.1, -0.0]),
)
NAMES = ["sex", "value", "age@band", "2nd visit", "Größe", "+plus", "sex_code", "WARNING"]
QUANTITIES = {"count": "", "sum(days)": "sum_days", "avg(days)": "avg_days"}


@st.composite
def tables(draw, texts=TEXTS):
    names = draw(st.lists(st.sampled_from(NAMES), max_size=3, unique=True))
    axes = []
    for name in names:
        codes = tuple(draw(st.lists(texts, min_size=1, max_size=3, unique=True)))
        labels = tuple(draw(texts) for _ in codes) if draw(st.booleans()) else codes
        axes.append(Axis(name, draw(st.sampled_from([name, "A title"])), codes, labels))
    cells = math.prod(len(axis.codes) for axis in axes)
    columns = []
    for quantity, word in list(QUANTITIES.items())[: draw(st.integers(1, 3))]:
        for statistic in ("value", "std_error", "low_95", "high_95"):
            name = "_".join(filter(None, [word, statistic]))
            numbers = np.array(draw(st.lists(NUMBERS, min_size=cells, max_size=cells)))
            columns.append(Column(f"{name}_" if name in names else name, name, quantity, statistic, numbers))
        flags = draw(st.lists(st.sampled_from(QUALITY_WORDS), min_size=cells, max_size=cells))
        name = "_".join(filter(None, [word, "quality"]))
        columns.append(Column(name, name, quantity, "quality", np.array(flags, dtype=object)))
    return ExportedTable("*".join(names) or "total", "People", tuple(axes), tuple(columns), draw(st.booleans()))


def cells_of(table, kind="labels"):
    return list(product(*(getattr(axis, kind) for axis in table.axes)))


def number(text):
    return math.nan if text in ("", None) else float(text)


def assert_same(found, expected):
    np.testing.assert_array_equal(np.array(found, float).reshape(-1), np.array(expected, float).reshape(-1))


def numbers_of(table):
    return [column for column in table.columns if column.is_number]


def expected_numbers(table):
    return [[column.numbers[at] for column in numbers_of(table)] for at in range(table.cells)]


def expected_flags(table):
    return [[column.numbers[at] for column in table.columns if not column.is_number] for at in range(table.cells)]


@settings(max_examples=CASES, deadline=None)
@given(table=tables())
def test_csv_is_read_back(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("csv") / "table.csv"
    CsvFiles(ABOUT).write([table], path)
    with path.open(encoding="utf-8-sig", newline="") as file:
        header, *rows = csv.reader(file)
    texts, names = len(table.names), [unguarded(name) for name in header]
    assert tuple(names[:texts]) == table.names and len(set(names)) == len(names)
    assert [tuple(map(unguarded, row[:texts])) for row in rows] == list(table.texts(str))
    found = [list(zip(table.columns, row[texts:], strict=False)) for row in rows]
    assert_same([[number(x) for column, x in row if column.is_number] for row in found], expected_numbers(table))
    assert [[x for column, x in row if not column.is_number] for row in found] == expected_flags(table)
    assert all(("NOT PRIVATE" in row) is not table.private for row in rows)
    own = read_csv(path)
    assert [tuple(row[name] for name in table.names) for row in own] == list(table.texts(str))
    assert path.read_bytes().endswith(b"\r\n")
    for row in rows:  # nothing that a spreadsheet would compute
        assert not any(text.lstrip()[:1] in ("=", "+", "-", "@") and not is_number(text) for text in row if text)


def is_number(text):
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


@settings(max_examples=CASES, deadline=None)
@given(table=tables())
def test_json_stat_is_read_back(table, tmp_path_factory):
    from pyjstat import pyjstat

    path = tmp_path_factory.mktemp("json") / "table.json"
    JsonStatFiles(ABOUT).write([table], path)
    text = path.read_text(encoding="utf-8")
    document = json.loads(text)
    assert document["version"] == "2.0" and document["class"] == "dataset"
    assert document["role"] == {"metric": [document["id"][-1]]}
    assert math.prod(document["size"]) == len(document["value"])
    for axis in table.axes:
        category = document["dimension"][axis.name]["category"]
        assert category["index"] == list(axis.codes)
        assert [category["label"][code] for code in axis.codes] == list(axis.labels)
    assert ("NOT PRIVATE" in document["label"]) is not table.private
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyjstat calls what it deprecated
        frame = pyjstat.Dataset.read(text).write("dataframe", naming="id")
    wanted = [(*codes, column.name) for codes in cells_of(table, "codes") for column in numbers_of(table)]
    assert [row[:-1] for row in frame.itertuples(index=False, name=None)] == wanted
    assert_same(frame.iloc[:, -1].to_numpy(float), expected_numbers(table))
    estimates = [at for at, column in enumerate(numbers_of(table)) if column.statistic == "value"]
    status, width = document["status"], len(numbers_of(table))
    assert (
        expected_flags(table)
        == [[status.pop(str(cell * width + at), "reliable") for at in estimates] for cell in range(table.cells)]
        and not status
    )


@settings(max_examples=CASES, deadline=None)
@given(table=tables())
def test_sdmx_csv_is_read_back(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("sdmx") / "table.csv"
    SdmxCsvFiles(ABOUT).write([table], path)
    assert path.read_bytes().startswith(b"STRUCTURE,STRUCTURE_ID,")
    rows = read_csv(path)
    columns = list(rows[0])
    named = "STRUCTURE_NAME" in columns
    first = 4 if named else 3
    assert columns[first - 1] == "ACTION" and (len(columns) - first) % (1 + named) == 0
    step = 1 + named
    ids = columns[first : first + step * len(table.axes) : step]
    assert {row["STRUCTURE_ID"] for row in rows} == {dataflow_id("people", table.word)}
    assert {(row["STRUCTURE"], row["ACTION"]) for row in rows} == {("dataflow", "I")}
    for quantity, own in table.quantities:
        found = [row for row in rows if row["MEASURE"] == quantity]
        assert [tuple(row[name] for name in ids) for row in found] == cells_of(table, "codes")
        if named:
            labels = columns[first + 1 : first + step * len(table.axes) : step]
            assert [tuple(row[name] for name in labels) for row in found] == cells_of(table)
        else:
            assert cells_of(table, "codes") == cells_of(table)
        *numbers, flags = own
        for column, name in zip(numbers, ("OBS_VALUE", "STD_ERROR", "LOW_95", "HIGH_95"), strict=True):
            assert_same([number(row[name]) for row in found], column.numbers)
        assert [row["QUALITY"] for row in found] == list(flags.numbers)
        for row, value in zip(found, numbers[0].numbers, strict=True):
            usual = "A" if row["QUALITY"] == "reliable" else "U"
            assert row["OBS_STATUS"] == ("O" if math.isnan(value) else usual)


PLAIN = st.text("abcdefg =',é", min_size=1, max_size=6).filter(lambda text: text.strip())


@settings(max_examples=max(10, CASES // 4), deadline=None)
@given(table=tables(texts=PLAIN))
def test_pysdmx_reads_sdmx_csv(table, tmp_path_factory):
    """Its reader guesses types, so that codes that look like numbers are left to the test above."""
    from pysdmx.io.csv.sdmx20.reader import read

    path = tmp_path_factory.mktemp("sdmx") / "table.csv"
    SdmxCsvFiles(ABOUT).write([table], path)
    (dataset,) = read(path.read_text(encoding="utf-8"))
    assert dataset.structure == f"Dataflow={dataflow_id('people', table.word)}"
    assert dataset.action.name == "Information"
    codes = [
        tuple(map(unguarded, row)) for row in dataset.data.iloc[:, : len(table.axes)].itertuples(index=False, name=None)
    ]
    assert codes == cells_of(table, "codes") * len(list(table.quantities))
    values = [number(text if text != "NaN" else "") for text in dataset.data["OBS_VALUE"]]
    assert_same(values, np.concatenate([own[0].numbers for _, own in table.quantities]))


@settings(max_examples=max(20, CASES // 2), deadline=None)
@given(table=tables(), is_large=st.booleans())
def test_xlsx_is_read_back(table, is_large, tmp_path_factory):
    openpyxl = pytest.importorskip("openpyxl")
    from openpyxl.utils.escape import unescape

    path = tmp_path_factory.mktemp("xlsx") / "tables.xlsx"
    Workbook(ABOUT, cells=10**6 if is_large else table.cells).write([table], path)
    book = openpyxl.load_workbook(path)
    assert book.sheetnames[:2] == ["Contents", "Notes"] and len(book.sheetnames) == 3
    sheet = book.worksheets[2]
    header, *rows = sheet.iter_rows(min_row=HEADER + 1)
    width = len(table.names)
    assert tuple(cell.value for cell in header) == (*table.headings, *(column.name for column in table.columns))
    for cell in (cell for row in rows for cell in row[:width]):
        assert cell.data_type == "s" and cell.hyperlink is None  # never a formula
    kept = str.maketrans({"\ufffe": "\ufffd", "\uffff": "\ufffd"})  # which XML does not have
    for row, texts in zip(rows, table.texts(str), strict=True):
        for cell, text in zip(row, texts, strict=False):  # openpyxl undoes only some escapes of XML by itself
            assert text.translate(kept) in (cell.value, unescape(cell.value))
    read = [list(zip(table.columns, (cell.value for cell in row[width:]), strict=True)) for row in rows]
    assert [[x for column, x in row if not column.is_number] for row in read] == expected_flags(table)
    numbers = [[math.nan if x is None else x for column, x in row if column.is_number] for row in read]
    np.testing.assert_allclose(np.array(numbers, float), np.array(expected_numbers(table)), rtol=1e-15)
