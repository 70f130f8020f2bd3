"""`make reproduce`: every figure, quickly, with and without the data; and the frame that figures plug into."""

import doctest
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from benchmarks.reproduce import figure as figures, page as pages, pictures
from benchmarks.reproduce.__main__ import FIGURES, PAPERS, main
from benchmarks.reproduce.data import adult, nltcs, present
from benchmarks.reproduce.figure import Claim, Figure, held
from benchmarks.reproduce.page import Page
from benchmarks.reproduce.points import Kept, measured
from benchmarks.reproduce.runs import Nobody, exact, planned, table_errors
from tests.datasets import ROOT

VERDICTS = {figures.CONFIRMED, figures.CORRECTED, figures.NOT_CONFIRMED}


@pytest.mark.slow
@pytest.mark.parametrize("data", ["shared", "absent"])
def test_every_figure_is_reproduced_quickly(tmp_path, data):
    """On stand-ins; and on the data those that differ most: on empty tables errors do not depend on it."""
    if data == "shared" and not present("adult8.parquet"):
        pytest.skip("the shared data is not here")
    environment, asked = dict(os.environ), ["yaroslavtsev-5", "ding-3", "barak"]
    if data == "absent":
        environment["HUSHCUBE_SHARED_DATA"], asked = str(tmp_path / "nowhere"), []
    command = [sys.executable, "-m", "benchmarks.reproduce", *asked, "--quick", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "reproduction.md").read_text(encoding="utf-8")
    assert ("made-up people" in page) == (data == "absent")
    for name in asked or FIGURES:
        figure = FIGURES[name]
        (section,) = (text for found, text in pages._SECTION.findall(page) if found == name)
        claims = pages._CLAIM.findall(section)
        assert claims, name
        assert {verdict for _, verdict, _ in claims} <= VERDICTS
        for claim, verdict, told in claims:  # in the table of all verdicts, too
            assert page.count(f"| {claim} | **{verdict}** | {told} |") >= 2
        assert f"### {figure.title}" in section
    for picture in (tmp_path / "pictures" / "reproduction").glob("*.svg"):
        assert f"reproduction/{picture.name})" in page
        assert picture.with_suffix(".png").stat().st_size > 1000


def test_a_figure_has_a_name_and_a_heading_of_its_own():
    every = [figure for own in PAPERS.values() for figure in own]
    assert len(FIGURES) == len(every) == len({pages._anchor(figure.title) for figure in every})


def test_an_unknown_figure_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["figure-99"])
    assert "'figure-99' is unknown" in capsys.readouterr().err


@pytest.mark.parametrize(
    "method",
    [("bmax", "uniform", "ols"), ("fourier", "optimal", "none"), ("residual", "optimal", "gls")],
    ids=lambda m: m[0],
)
def test_errors_on_empty_tables_are_the_errors_on_the_data(method):
    data = adult().first(4)
    design = planned(data.schema, "<=2-way", *method, epsilon="1")
    empty, real = (table_errors(design, c, runs=2, seed=3) for c in (Nobody(data.schema), exact(design, data)))
    np.testing.assert_allclose(empty, real, rtol=1e-9, atol=1e-9)
    assert (empty > 0).all()


def test_what_is_kept_is_not_measured_again(tmp_path):
    asked = []

    def measure(job):
        asked.append(job["x"])
        return {"y": job["x"] ** 2}

    figure = Figure("squares", "Squares", "", lambda quick: [{"x": x} for x in ((1,) if quick else (1, 2, 3))], measure)
    file = tmp_path / "squares.jsonl"
    file.write_text(
        json.dumps([{"figure": "squares", "x": 2}, {"y": 4}]) + '\n[{"figure": "squ'
    )  # stopped while writing
    assert [row["y"] for row in measured(figure, Kept(file), quick=True)] == [1]
    file.write_text(file.read_text().splitlines()[0] + "\n")
    assert measured(figure, Kept(file), quick=True)[0]["y"] == 1
    before = list(asked)
    assert [row["y"] for row in measured(figure, Kept(file), quick=True)] == [1]
    assert asked == before


def test_a_section_is_replaced_and_the_others_stay(tmp_path):
    one, other = (
        Figure(
            name,
            f"{name}: squares",
            "",
            lambda quick: [],
            dict,
            claims=lambda rows, n=name: [held(f"{n} |B|", "seen", holds=bool(rows))],
        )
        for name in ("first", "second")
    )
    for figure, rows in ((one, [{}]), (other, [{}]), (one, [])):
        Page(tmp_path / "page.md", tmp_path / "pictures", {"A paper, of ours": (one, other)}).add(figure, rows)
    text = (tmp_path / "page.md").read_text()
    assert text.count("| first \\|B\\| | **not confirmed** | seen |") == 2
    assert text.count("| second \\|B\\| | **confirmed** | seen |") == 2
    assert "| A paper | [first](#first-squares) |" in text


def test_verdicts_are_computed():
    assert held("it", "", holds=True).verdict == figures.CONFIRMED
    assert held("it", "", holds=True, correction=True).verdict == figures.CORRECTED
    assert held("it", "", holds=False, correction=True).verdict == figures.NOT_CONFIRMED
    verdicts = [figures.judged("it", {"": [gain]}, 0.2, 0.25).verdict for gain in (0.22, 0.5, -0.1)]
    assert verdicts == [figures.CONFIRMED, figures.CORRECTED, figures.NOT_CONFIRMED]
    assert isinstance(held("it", "", holds=True), Claim)


@pytest.mark.parametrize("module", [figures, pages, pictures], ids=lambda m: m.__name__)
def test_examples_of_the_frame(module):
    assert doctest.testmod(module).failed == 0


def test_stand_ins_have_the_sizes_of_the_data(monkeypatch, tmp_path):
    monkeypatch.setenv("HUSHCUBE_SHARED_DATA", str(tmp_path))
    for make, people, sizes in ((adult, 32_561, (9, 16, 7, 15, 6, 5, 2, 2)), (nltcs, 21_574, (2,) * 16)):
        made = make.__wrapped__()
        assert made.stand_in
        assert made.people.num_rows == people
        assert made.schema.sizes == sizes
