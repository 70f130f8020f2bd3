"""A workbook opens in LibreOffice, and shows there what the release says."""

import csv
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

import hushcube as hc
from hushcube.bundle.export.workbook import HEADER

LABELS = [
    'say "no"',
    "a,b",
    "two\nlines",
    "=1+1",
    "-1+2",
    "@x",
    "שלום עולם",
    "👩‍👩‍👧",
    "<r>x</r>",
    "00",
    "http://example.org",
]


@pytest.mark.service
def test_libreoffice_shows_the_same_numbers_and_labels(tmp_path):
    """One conversion of all sheets to CSV, formulas computed: labels stay what they are."""
    program = shutil.which("soffice") or shutil.which("libreoffice")
    if program is None:
        pytest.skip("soffice is not installed (tests/install_engines.sh installs LibreOffice Calc)")
    schema = hc.Schema([hc.Attribute("label", values=LABELS), hc.Attribute("age", range=[0, 3])], name="odd")
    frame = pd.DataFrame({"label": LABELS * 10, "age": [0, 1, 2, 3, 3] * (2 * len(LABELS))})
    release = hc.release(hc.plan(schema, "<=2-way", epsilon=1, neighbours="add-remove"), frame)
    hc.export(release, tmp_path / "odd.xlsx", "xlsx")
    command = [program, f"-env:UserInstallation=file://{tmp_path}/profile", "--headless", "--convert-to"]
    # commas, double quotes, UTF-8, from the first line on; texts quoted, as stored and not as shown, every sheet
    command += [
        "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,false,false,false,false,-1",
        "--outdir",
        str(tmp_path),
    ]
    subprocess.run([*command, str(tmp_path / "odd.xlsx")], check=True, capture_output=True, timeout=300)
    for word, sheet in (("label", "label"), ("label*age", "label x age"), ("total", "total")):
        with (tmp_path / f"odd-{sheet}.csv").open(encoding="utf-8", newline="") as file:
            header, *rows = list(csv.reader(file))[HEADER:]
        table = release.table(word)
        width = len(table.attributes)
        assert header[width:] == ["value", "std_error", "low_95", "high_95", "quality"]
        assert [tuple(row[:width]) for row in rows] == list(table.rows())
        for at, numbers in enumerate((table.values, table.std_errors, table.low, table.high), width):
            np.testing.assert_allclose([float(row[at]) for row in rows], numbers.ravel(), rtol=1e-12)
