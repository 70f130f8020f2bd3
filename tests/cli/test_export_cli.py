"""`hushcube export`: the same as `hc.export`, with the messages of the command line."""

import pytest

import hushcube as hc
from hushcube.cli import run


def test_a_folder_of_csv(done, desk):
    out, err = done("export", "published", "--out", "csv")
    assert out == "wrote 11 tables with 120 cells to csv\n" and err == ""
    assert sorted(path.name for path in (desk / "csv").iterdir()) == ["contents.csv", "notes.txt", "tables"]
    assert len(list((desk / "csv" / "tables").iterdir())) == 11


def test_one_table_as_a_file(done, desk):
    assert done("export", "published", "--tables", "sex*age", "--out", "t.csv")[0].startswith(
        "wrote 1 table with 20 cells"
    )
    rows = hc.read_csv(desk / "t.csv")
    table = hc.open("published").table("sex*age")
    assert [float(row["value"]) for row in rows] == table.values.ravel().tolist()


@pytest.mark.parametrize(
    ("kind", "name"), [("xlsx", "t.xlsx"), ("json-stat", "t"), ("sdmx-csv", "t"), ("html", "t")]
)  # fmt: skip
def test_other_formats(document, desk, kind, name):
    found = document("export", "published", "--format", kind, "--tables", "1-way", "--tables", "total", "--out", name)
    assert found == {
        "out": name, "format": kind, "face": "unbiased", "tables": 5, "cells": 19, "private": True,
    }  # fmt: skip
    assert (desk / name).exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "--out: is not given"),
        (["--out", "out", "--format", "pdf"], "--format: 'pdf' is not a format"),
        (["--out", "out", "--tables", "height"], "--tables: 'height' is not in the schema"),
        (["--out", "out", "--tables", "sex*age*income"], "--tables: sex*age*income is not published"),
        (["--out", "out", "--face", "integral"], "--face: this release has no face 'face-valid'"),
        (["--out", "out.csv"], "--out: a file ending in .csv holds one table, and 11 are chosen. Fix: name a folder"),
        (["--out", "out.csv"], "choose one table with `--tables`"),
        (["--out", "out", "--format", "xlsx"], "--out: xlsx is one file"),
        (["--out", "published"], "--out: the folder exists already"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)
def test_what_is_wrong_is_said(refused, arguments, told):
    refused(["export", "published", *arguments], told)


def test_what_is_not_a_release_is_refused(refused):
    refused(["export", "parts", "--out", "out"], "is not a release")


def test_a_request_to_stop_leaves_nothing(desk, listening, monkeypatch, capsys):
    """Also one that a library swallowed: it is honoured where progress is reported."""
    from hushcube.bundle.export.csv_tables import CsvFiles

    write = CsvFiles.write_table
    monkeypatch.setattr(CsvFiles, "write_table", lambda *args: (listening(2), write(*args)))
    before = sorted(desk.iterdir())
    assert run(["export", "published", "--out", "out"]) == 130
    assert sorted(desk.iterdir()) == before


def test_a_seeded_release_says_so(done, desk):
    done("release", "plan.json", "--data", "people.csv", "--out", "seeded", "--seed", "1")
    out, err = done("export", "seeded", "--out", "out")
    assert out.startswith("NOT PRIVATE") and "NOT PRIVATE" in err
