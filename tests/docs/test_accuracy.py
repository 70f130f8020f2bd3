"""`make adaptive`: cases, metrics, contenders and page; the rivals where mbi's environment is there."""

import json
import math
import re
import subprocess
import sys
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from benchmarks.adaptive import __main__ as program, coverage, options, own_fit, results
from benchmarks.adaptive.aim import Measured
from benchmarks.adaptive.cases import ACS, ADULT15, CASES, CENSUS, GENERATED, NLTCS, TINY, Absent, errors, settings
from benchmarks.adaptive.ours import METHODS as OURS
from benchmarks.peers.__main__ import Skipped, interpreter
from benchmarks.peers.one_job import Job
from benchmarks.reproduce.points import Kept
from tests.datasets import ROOT

from hushcube.lattice.family import Family


def job_of(case, order, epsilon=1.0):
    try:
        return case.job(order, epsilon)
    except Absent as reason:
        pytest.skip(str(reason))


def test_errors_are_those_of_plain_loops():
    job = TINY.job(2, 1.0)
    random = np.random.default_rng(1)
    answers = [job.exact(table) + random.normal(size=job.shape(table)) for table in job.tables]
    l1, squares, cells, largest = 0.0, 0.0, 0, 0.0
    for table, answer in zip(job.tables, answers, strict=True):
        for place in np.ndindex(answer.shape):
            exact = sum(all(person[i] == v for i, v in zip(table, place, strict=True)) for person in job.codes)
            off = abs(answer[place] - exact)
            l1, squares, cells, largest = l1 + off, squares + off**2, cells + 1, max(largest, off)
    expected = {"l1": l1 / len(job.tables) / len(job.codes), "rmse": (squares / cells) ** 0.5, "max": largest}
    assert errors(job, answers) == pytest.approx(expected)


@pytest.mark.parametrize(("epsilon", "rho"), [(0.1, 0.000177), (1.0, 0.01497), (10.0, 1.0908)])
def test_every_contender_is_given_the_rho_of_the_page(epsilon, rho):
    assert TINY.job(2, epsilon).rho == pytest.approx(rho, rel=2e-3)


def test_the_generated_census_is_large_and_dependent():
    job = CENSUS.job(2, 1.0)
    assert len(job.codes) == 200_000 and len(job.sizes) == 10
    assert np.prod(np.array(job.sizes, dtype=float)) == pytest.approx(2.7e10, rel=0.05)
    for pair in ((3, 4), (6, 7), (7, 9)):  # state and birthplace, education and occupation, occupation and income
        table = job.exact(pair) / len(job.codes)
        alone = table.sum(1, keepdims=True) * table.sum(0, keepdims=True)
        information = np.sum(table[table > 0] * np.log(table[table > 0] / alone[table > 0]))
        # Independent columns have (rows - 1)(columns - 1) / (2 n) on average, below 0.01 here.
        assert information > 0.1
    assert max(np.prod(job.shape(table)) for table in CENSUS.job(3, 1.0).tables) <= 10_000


@pytest.mark.parametrize(
    ("case", "sizes", "people"),
    [
        (NLTCS, (2,) * 16, 21_574),
        (ADULT15, (73, 9, 16, 16, 7, 15, 6, 5, 2, 119, 92, 94, 42, 2), 32_561),
        (ACS, (80, 2, 4, 51, 52, 9, 5, 529, 4), 665_800),
    ],
    ids=["NLTCS", "Adult-15", "ACS"],
)
def test_cases_are_those_of_the_page(case, sizes, people):
    pairs, triples = job_of(case, 2), job_of(case, 3)
    assert pairs.sizes == sizes and len(pairs.codes) == people
    assert pairs.tables == tuple(combinations(range(len(sizes)), 2))
    every = combinations(range(len(sizes)), 3)
    assert triples.tables == tuple(t for t in every if sizes[t[0]] * sizes[t[1]] * sizes[t[2]] <= 10_000)
    assert (pairs.codes.max(axis=0) + 1 == pairs.sizes).all()


def test_everything_is_compared_at_every_epsilon():
    every = [(case.name, words, epsilon) for case, words, epsilon in settings()]
    assert len(every) == len(set(every)) == len(CASES) * 2 * 3


@pytest.mark.parametrize("method", OURS)
def test_our_contenders_give_valid_tables_and_the_same_ones_for_a_seed(method):
    job = TINY.job(2, 1.0)
    tables, _ = OURS[method](job, 1)
    assert set(tables) == set(job.tables)
    total = tables[0, 1].sum()
    for table in job.tables:
        assert tables[table].shape == job.shape(table)
        assert tables[table].min() >= -1e-9
        assert tables[table].sum() == pytest.approx(total, rel=1e-6)
        if method == "residual, face-valid":
            assert (tables[table] == np.round(tables[table])).all()
    again, other = OURS[method](job, 1)[0], OURS[method](job, 2)[0]
    assert all(np.array_equal(tables[table], again[table]) for table in job.tables)
    assert not all(np.array_equal(tables[table], other[table]) for table in job.tables)


SMALL, LARGE = own_fit.FEW_CELLS, 0


@pytest.mark.parametrize("few", [SMALL, LARGE], ids=["full table", "pairs by pairs"])
@pytest.mark.parametrize(("order", "most"), [(2, 0.06), (3, 0.12)])
def test_aim_on_our_fit_spends_its_budget_on_valid_tables_that_are_near(monkeypatch, few, order, most):
    monkeypatch.setattr(own_fit, "FEW_CELLS", few)
    job = TINY.job(order, 1.0)
    tables, about = own_fit.aim_on_our_fit(job, 1)
    assert set(tables) == set(job.tables) and about["spent"] == pytest.approx(job.rho)
    assert all(tables[r].shape == job.shape(r) and tables[r].min() >= 0 for r in job.tables)
    assert 0 < errors(job, [tables[r] for r in job.tables])["l1"] < most
    again, other = own_fit.aim_on_our_fit(job, 1)[0], own_fit.aim_on_our_fit(job, 2)[0]
    assert all(np.array_equal(tables[r], again[r]) for r in job.tables)
    assert not all(np.array_equal(tables[r], other[r]) for r in job.tables)


@pytest.mark.parametrize("few", [SMALL, LARGE], ids=["full table", "pairs by pairs"])
def test_tables_that_nothing_measured_sees_follow_from_those_that_were_measured(monkeypatch, few):
    """A chain 0 - 1 - 2 - 3 is measured almost exactly: everything else is what the chain says."""
    monkeypatch.setattr(own_fit, "FEW_CELLS", few)
    sizes, random = (2, 3, 2, 4), np.random.default_rng(7)
    links = [random.dirichlet(np.ones(n), size=m) for m, n in ((2, 3), (3, 2), (2, 4))]
    full = 1e4 * np.einsum("a,ab,bc,cd->abcd", [0.3, 0.7], *links)
    asked = [r for k in (1, 2, 3) for r in combinations(range(4), k)]
    exact = own_fit.margins(full, (0, 1, 2, 3), asked)
    measured = Measured(sizes)
    for r in asked:
        if len(r) == 1 or r in {(0, 1), (1, 2), (2, 3)}:
            measured.add(r, exact[r], 0.01)
    found = own_fit.fitted(Family.of(asked, sizes), measured, None, np.inf)
    tables = found.tables(asked)
    for r in asked:
        assert np.abs(tables[r] - exact[r]).sum() < 0.005 * 1e4, r
    assert (found.full is None) == (few == LARGE)


def test_many_margins_are_those_of_plain_sums():
    full, asked = np.random.default_rng(8).random((2, 3, 4, 2, 3)), [(1,), (0, 4), (1, 2, 3), (0, 1, 2), (2, 4)]
    found = own_fit.margins(full, (0, 1, 2, 3, 4), asked)
    assert set(found) == set(asked)
    for r in asked:
        assert np.allclose(found[r], full.sum(axis=tuple(i for i in range(5) if i not in r)))


def test_a_stopped_benchmark_goes_on_where_it_was(tmp_path, monkeypatch):
    ran = []

    def run(case, words, epsilon, method, seed, limit, install):
        ran.append((words, epsilon, method, seed))
        if len(ran) == 3:
            raise KeyboardInterrupt
        return {"l1": 1.0}

    monkeypatch.setattr(program, "run", run)
    file, every = tmp_path / "results.jsonl", list(program.jobs([s for s in settings() if s[0] is NLTCS], ["MST"], 2))
    assert len(every) == 2 * 2 * 3 and [job["seed"] for _, job in every] == [0] * 6 + [1] * 6
    with pytest.raises(KeyboardInterrupt):
        program.measured(every, Kept(file), 1.0, install=False)
    assert [json.loads(line)[0]["epsilon"] for line in file.read_text().splitlines()] == [1.0, 0.1]
    rows, absent = program.measured(every, Kept(file), 1.0, install=False)
    assert len(rows) == 12 and not absent and len(ran) == 3 + 10


def test_what_is_absent_is_skipped_with_the_reason(tmp_path, monkeypatch):
    monkeypatch.setenv("HUSHCUBE_SHARED_DATA", str(tmp_path))
    monkeypatch.setattr("benchmarks.adaptive.cases._people", lambda case: case.people())
    monkeypatch.setattr("benchmarks.peers.__main__.ROOT", tmp_path)
    rows, absent = program.measured(
        list(program.jobs([(NLTCS, "2-way", 1.0)], ["AIM", "residual, face-valid"], 1)), Kept(None), 1.0, install=False
    )
    assert rows == [] and len(absent) == 2
    assert any("no nltcs.parquet" in reason for reason in absent)
    assert any(reason.startswith("AIM: mbi: it is not installed") for reason in absent)


def rows_of(**l1):
    common = {"case": "NLTCS", "tables": "2-way", "epsilon": 1.0, "max": 9.0, "cpu_seconds": 12.0, "peak_GB": 0.5}
    return [
        {**common, "method": method, "seed": seed, "l1": value, "rmse": 10 * value}
        for method, values in l1.items()
        for seed, value in enumerate(values)
    ]


def test_tables_show_medians_and_mark_the_lowest_and_what_was_not_run():
    rows = rows_of(MST=[0.3, 0.1, 0.2], **{"residual, face-valid": [0.15]})
    rows += [{**row, "case": "ACS 2018"} for row in rows_of(MST=[0.25])]
    rows += [{"case": "NLTCS", "tables": "2-way", "epsilon": 1.0, "method": "AIM", "seed": 0, "skipped": "too slow"}]
    header, _, nltcs, acs = results.error_table(results.medians(rows)).splitlines()
    columns = dict(zip(header.split(" | "), nltcs.split(" | "), strict=True))
    assert (columns["MST"], columns["residual, face-valid"]) == ("0.2 (2)", "**0.15 (1.5)**")
    assert columns["AIM"] == "" and columns["seeds |"] == "3 (residual, face-valid: 1) |"
    assert "0.0412 (31) \\*" in acs
    text = program.section(rows)
    assert "| NLTCS | 2-way | 1 |  |  | 12 (0.50) |" in text
    assert "- NLTCS `2-way`, epsilon 1, AIM: too slow" in text


def test_tables_compare_with_aim_what_a_publisher_would_get():
    rows = rows_of(AIM=[0.4], selective=[0.1], **{"residual, entropy": [0.3]})
    rows += [{**row, "case": "ACS 2018"} for row in rows]
    rows += [{**rows_of(**{"AIM on our fit": [0.2]})[0], "case": "ACS 2018"}]  # the lower one is what counts
    rows += [{**row, "case": "Adult-8"} for row in rows_of(selective=[0.1], **{"AIM on our fit": [0.5]})]
    header, _, adult, nltcs, acs = results.error_table(results.medians(rows)).splitlines()
    at = header.split(" | ").index("over AIM")
    assert [line.split(" | ")[at] for line in (adult, nltcs, acs)] == ["0.20", "0.75", "0.50"]


def test_the_page_and_its_picture_are_written(tmp_path):
    page = tmp_path / "accuracy.md"
    page.write_text(f"head\n\n{program.MARK}\n\nfigures of before\n\n{program.END}\n\ntail\n", encoding="utf-8")
    rows = rows_of(AIM=[0.3], MST=[0.2], **{"AIM on our fit": [0.25]})
    program.write_page([*rows, *({**row, "epsilon": 0.1} for row in rows)], page)
    text = page.read_text(encoding="utf-8")
    assert (
        text.startswith("head\n") and text.endswith("\n\ntail\n") and "of before" not in text and "**0.2 (2)**" in text
    )
    drawn = (tmp_path / "pictures" / "accuracy.svg").read_text(encoding="utf-8")
    assert "NLTCS, 2-way" in drawn and "AIM on our fit" in drawn
    pixels = (tmp_path / "pictures" / "accuracy.png").read_bytes()
    width = float(re.search(r'width="([\d.]+)"', drawn)[1])
    assert len(pixels) > 1000
    assert int.from_bytes(pixels[16:20]) <= width  # a small file: the pages show the other one


def test_the_page_stays_as_it_is_where_something_could_not_run(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(program, "write_page", lambda *_: pytest.fail("it was written"))
    monkeypatch.setattr(program, "measured", lambda *_, **__: (rows_of(MST=[0.2]), {"AIM: mbi: it is not installed"}))
    program.main(["--only", "NLTCS", "--keep", str(tmp_path / "results.jsonl")])
    printed = capsys.readouterr().out
    assert "skipped: AIM: mbi" in printed and "**0.2 (2)**" in printed and "accuracy.md stays as it is" in printed


def test_a_run_that_fails_or_takes_too_long_says_so(monkeypatch):
    assert program.run(TINY, "2-way", 1.0, "residual, face-valid", 0, 0.01)["skipped"].startswith("it took more than")
    monkeypatch.setattr(program, "ROOT", ROOT / "docs")  # where no such program is
    assert "it failed (" in program.run(TINY, "2-way", 1.0, "residual, face-valid", 0, 60.0)["skipped"]


@pytest.mark.slow
def test_a_quick_run_prints_the_tables():
    command = [sys.executable, "-m", "benchmarks.adaptive", "--quick", "--methods", *OURS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    *rows, header = (line for line in done.stdout.splitlines() if line.startswith(("{", "| data")))
    found = [json.loads(row) for row in rows[: len(OURS)]]
    assert [row["method"] for row in found] == list(OURS)
    assert all(0 < row["l1"] < 0.05 and row["cpu_seconds"] > 0 and row["peak_GB"] > 0.05 for row in found)
    assert all(method in header for method in results.METHODS)


def rivals_python():
    try:
        return interpreter("mbi")
    except Skipped as reason:
        pytest.skip(f"mbi: {reason}")


def test_aim_on_our_fit_runs_without_the_environment_of_mbi():
    assert 0 < program.run(TINY, "2-way", 1.0, "AIM on our fit", 0, 300.0)["l1"] < 0.06


@pytest.mark.slow
@pytest.mark.parametrize("method", results.RIVALS)
def test_a_rival_runs_in_its_environment(method):
    rivals_python()
    found = program.run(TINY, "2-way", 1.0, method, 0, 300.0)
    assert 0 < found["l1"] < {"AIM": 0.06, "MST": 0.15}[method]


@pytest.mark.slow
def test_rivals_hold_in_their_environment():
    command = [rivals_python(), str(ROOT / "tests" / "docs" / "rivals_alone.py")]
    done = subprocess.run(command, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout.count("\n") == 4, done.stderr


def test_the_judge_refuses_no_table():
    job = Job((2, 3), ((0, 1),), np.zeros((4, 2), dtype=int), rho=1.0)
    with pytest.raises(ValueError, match="zip"):
        errors(job, [])


def test_coverage_counts_every_cell_of_every_run(monkeypatch):
    monkeypatch.setitem(CASES, "tiny", TINY)
    found = coverage.covered("tiny", "2-way", 1.0, 3)
    job = TINY.job(2, 1.0)
    cells = 3 * sum(math.prod(job.sizes[i] for i in table) for table in job.tables)
    for shares in (found.unbiased, found.cells):
        assert sum(own.number for own in shares.values()) == cells
    assert sum(own.number for own in found.tables.values()) == cells
    assert sum(own.hits for own in found.tables.values()) == sum(own.hits for own in found.cells.values())
    assert found.bounds.number == 3 * len(job.tables)
    assert sum(own.hits for own in found.cells.values()) > 0.9 * cells


def test_kinds_of_cells_below_nine_tenths_are_not_covered():
    shares = coverage.Shares()
    assert shares.told == ""
    shares.add(np.arange(1000) < 899, np.full(1000, 3.0), np.full(1000, 4.0))
    assert shares.told == "not covered: 89.9% (0.75)"
    shares.add(np.ones(500, bool), 1500.0, 2000.0)
    assert shares.told == "93.3% (0.75)"


def test_the_page_says_where_intervals_do_not_cover():
    text = coverage.PAGE.read_text(encoding="utf-8").partition(coverage.MARK)[2].partition(coverage.END)[0]
    estimated = text.partition("`estimated_error`")[2]
    told = re.findall(r"\| (not covered: )?([0-9.]+)% \([0-9.]+\)", estimated)
    assert len(told) >= 16
    assert all(bool(missed) == (float(share) < 90) for missed, share in told)


def test_the_two_halves_are_all_people_once():
    job = TINY.job(2, 1.0)
    one, other = options.halves(job, 100)
    assert len(one.codes) == len(other.codes) == len(job.codes) // 2
    together = np.concatenate([one.codes, other.codes])
    assert np.array_equal(np.sort(together.T.copy()).T, np.sort(job.codes.T.copy()).T)
    pairs = [Job(job.sizes, job.tables, codes).exact((1, 3)) for codes in (one.codes, other.codes)]
    assert np.array_equal(sum(pairs), job.exact((1, 3)))
    assert not np.array_equal(options.halves(job, 101)[0].codes, one.codes)


def test_in_a_wrong_edition_values_have_exchanged_their_names_alike_in_all_tables():
    job = TINY.job(2, 1.0)
    right = [job.exact(pair) for pair in job.tables]
    wrong = options.shuffled(job, right, 100)
    assert any(not np.array_equal(a, b) for a, b in zip(right, wrong, strict=True))
    alone = {}
    for pair, before, after in zip(job.tables, right, wrong, strict=True):
        assert sorted(before.ravel()) == sorted(after.ravel())
        for axis, attribute in enumerate(pair):
            margin = after.sum(axis=1 - axis)
            assert np.array_equal(alone.setdefault(attribute, margin), margin)


def test_relative_errors_are_those_of_plain_loops():
    job = TINY.job(2, 1.0)
    random = np.random.default_rng(2)
    answers = [job.exact(pair) + random.normal(size=job.shape(pair)) for pair in job.tables]
    per_table = []
    for pair, answer in zip(job.tables, answers, strict=True):
        exact = job.exact(pair)
        off = [abs(answer[at] - exact[at]) / max(exact[at], 10) for at in np.ndindex(answer.shape)]
        per_table.append(sum(off) / len(off))
    assert options.relative_error(job, answers, 10) == pytest.approx(sum(per_table) / len(per_table))


@pytest.mark.parametrize("name", GENERATED)
def test_generated_people_are_even_or_fall_off_and_their_attributes_depend_on_each_other(name):
    job = options.job_of({"data": name, "people": 30_000, "tables": "2-way", "rho": 0.05, "seed": 100})
    assert (job.codes.max(axis=0) < job.sizes).all() and len(job.codes) == 30_000
    for i, (values, power) in enumerate(GENERATED[name]):
        shares = np.bincount(job.codes[:, i], minlength=values) / len(job.codes)
        # Five standard deviations of a share of 30,000 people are at most 0.0144.
        assert shares == pytest.approx(np.diff((np.arange(values + 1) / values) ** (1 / power)), abs=0.0144)
    table = job.exact(job.tables[-1])
    alone = np.outer(table.sum(1), table.sum(0)) / len(job.codes)
    assert np.abs(table - alone).sum() > 0.1 * len(job.codes)


@pytest.mark.slow
def test_what_options_gain_is_measured_once_and_written_between_its_marks(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(CASES, "tiny", TINY)
    page, keep = tmp_path / "strategies.md", tmp_path / "options.jsonl"
    page.write_text(
        "".join(
            f"before {n}\n\n{options.MARK.format(n)}\n\nold figures\n\n{options.END}\n\nafter\n" for n in options.PARTS
        )
    )
    monkeypatch.setattr(options, "PAGE", page)
    shrunk = {
        name: replace(part, settings=({**part.settings[-1], "data": "tiny", "tables": "2-way"},))
        for name, part in options.PARTS.items()
    }
    monkeypatch.setattr(options, "PARTS", shrunk)
    options.main(["--runs", "2", "--keep", str(keep)])
    text = page.read_text()
    assert text.count("after\n") == 3 and "old figures" not in text and text.count("Means of 2 runs.") == 3
    assert [re.search(f"before {name}\n\n{re.escape(options.MARK.format(name))}\n", text) for name in shrunk]
    rows = [json.loads(line) for line in keep.read_text().splitlines()]
    assert [job["seed"] for job, _ in rows] == [100, 101] * 3
    assert all(value > 0 for _, came_to in rows for value in came_to.values())
    for name, part in shrunk.items():
        monkeypatch.setitem(shrunk, name, replace(part, measure=lambda _: pytest.fail("it is kept")))
    options.main(["--runs", "2", "--keep", str(keep)])
    assert page.read_text() == text
    with pytest.raises(SystemExit):
        options.main(["nothing", "--keep", str(keep)])
    assert "no such part: nothing" in capsys.readouterr().err


def test_tables_of_options_stay_as_they_are_where_data_or_their_marks_are_missing(monkeypatch, tmp_path, capsys):
    page = tmp_path / "strategies.md"
    page.write_text("nothing is marked\n")
    monkeypatch.setattr(options, "PAGE", page)

    def absent(_):
        raise Absent("no adult8.parquet")

    objective = options.PARTS["objective"]
    monkeypatch.setattr(options, "PARTS", {"objective": replace(objective, measure=absent)})
    options.main(["--runs", "1", "--keep", str(tmp_path / "options.jsonl")])
    assert "objective stays as it is: no adult8.parquet" in capsys.readouterr().out
    with pytest.raises(ValueError, match="has no place for the gains of objective"):
        options.write_page("objective", "figures", page)
    assert page.read_text() == "nothing is marked\n"


def test_the_page_shows_every_setting_of_the_options():
    text = options.PAGE.read_text(encoding="utf-8")
    for name, part in options.PARTS.items():
        own = text.partition(options.MARK.format(name))[2].partition(options.END)[0]
        lines = [line for line in own.splitlines() if line.startswith("|")][2:]
        assert len(lines) == sum(len(setting.get("bounds", [0])) for setting in part.settings)
        assert f"Means of {part.runs} runs." in own
