"""Matrices on the command line: every kind of file, releases of queries, and whatever may be wrong with them."""

import gzip
import json
import struct

import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.io
import scipy.sparse

from cli.desk import BUDGET, SECRET, listing
from hushcube.cli import run
from hushcube.planning.plan import Plan

SEX_AGE = ["--schema", "people.yaml"]
Q = np.zeros((3, 20))
Q[0, :10], Q[1, 10:], Q[2, [0, 19]] = 1, 1, [0.5, -2]
S = np.concatenate([np.eye(20), np.kron(np.eye(2), np.ones((1, 10)))])


@pytest.fixture
def done(desk, capsys):
    """Run a command that must succeed; returns standard output and standard error."""

    def check(*arguments):
        code = run(list(arguments))
        captured = capsys.readouterr()
        assert code == 0, captured.err
        return captured.out, captured.err

    return check


@pytest.fixture
def refused(desk, drawn, capsys):
    """Run a command that must be refused: exit code 2, the field and the fix named, nothing written or spent."""

    def check(arguments, *wanted):
        before = listing(desk)
        code = run([str(a) for a in arguments])
        captured = capsys.readouterr()
        assert code == 2, captured.err
        assert listing(desk) == before and drawn == [] and captured.out == ""
        assert "Fix:" in captured.err and "Traceback" not in captured.err and SECRET not in captured.err
        for words in wanted:
            assert words in captured.err, captured.err

    return check


def write(desk, name, matrix):
    path = desk / name
    if name.endswith(".csv"):
        path.write_text("\n".join(",".join(f"{x:g}" for x in row) for row in matrix) + "\n")
    elif name.endswith("sparse.json"):
        csr = scipy.sparse.csr_matrix(matrix)
        parts = {"starts": csr.indptr.tolist(), "columns": csr.indices.tolist(), "values": csr.data.tolist()}
        path.write_text(json.dumps({"attributes": ["sex", "age"], "width": csr.shape[1], **parts}))
    elif name.endswith(".json"):
        path.write_text(json.dumps({"attributes": ["sex", "age"], "rows": np.asarray(matrix).tolist()}))
    elif name.endswith(".npy"):
        np.save(path, matrix)
    elif name.endswith(".npz"):
        kind = name.removesuffix(".npz")
        scipy.sparse.save_npz(path, scipy.sparse.coo_matrix(matrix).asformat(kind))
    else:
        scipy.io.mmwrite(path, scipy.sparse.coo_matrix(matrix))
    return name


KINDS = ["q.csv", "q.json", "sparse.json", "q.npy", "csr.npz", "csc.npz", "coo.npz", "q.mtx"]


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_file_is_read(desk, done, name):
    write(desk, name, Q)
    asked = name if name.endswith(".json") else f"sex*age:{name}"
    done("plan", *SEX_AGE, *BUDGET, "--queries", asked, "--strategy", "workload", "--out", "new.json")
    queries = Plan.from_json((desk / "new.json").read_text()).workload.queries
    assert queries.rows.dense().tolist() == Q.tolist()
    assert [a.name for a in queries.attributes] == ["sex", "age"]


def test_columns_are_in_the_order_of_the_attributes_named(desk, done):
    write(desk, "q.csv", [[*([0, 1] + [0] * 18)]])  # age 0, Male
    done("plan", *SEX_AGE, *BUDGET, "--queries", "age*sex:q.csv", "--strategy", "workload", "--out", "new.json")
    rows = Plan.from_json((desk / "new.json").read_text()).workload.queries.rows
    assert rows.columns == (10,)


def test_without_attributes_a_matrix_is_over_all_of_them(desk, done):
    cells = 2 * 10 * 3 * 3  # income has two bins and `unknown`
    write(desk, "q.csv", np.ones((1, cells)))
    out, _ = done("plan", *SEX_AGE, *BUDGET, "--queries", "q.csv", "--strategy", "workload", "--json")
    (entry,) = json.loads(out)["marginals"]
    assert entry["form"] == "queries" and entry["cells"] == 1


MATRIX = "matrix:rows=sex*age:s.csv"


@pytest.mark.parametrize("strategy", ["auto", "identity", "workload", "residual", "matrix", "sketch"])
def test_a_release_of_queries(desk, done, strategy):
    write(desk, "q.csv", Q)
    write(desk, "s.csv", S)
    options = ["--queries", "sex*age:q.csv", "--workload", "sex", "--effort", "low"]
    named = {"matrix": [MATRIX], "auto": ["auto", MATRIX]}.get(strategy, [strategy])
    options += [word for name in named for word in ("--strategy", name)]
    done("plan", *SEX_AGE, *BUDGET, *options, "--out", "new.json")
    done("release", "new.json", "--data", "people.csv", "--out", "queried")
    manifest = json.loads((desk / "queried" / "manifest.json").read_text())
    entry = next(e for e in manifest["tables"] if e.get("form") == "queries")
    table = pq.read_table(desk / "queried" / entry["file"])
    assert table.column_names == ["query", "value", "std_error", "quality"] and table.num_rows == 3
    assert len(manifest["tables"]) == 2  # the carrier sex*age is not published
    out, _ = done("show", "queried", "queries", "--json")
    cells = json.loads(out)["cells"]
    assert [cell["query"] for cell in cells] == ["0", "1", "2"]
    assert [cell["value"] for cell in cells] == table.column("value").to_pylist()
    people = np.zeros(20)
    people[[1, 12, 19, 0]] = 25
    slack = 300 if strategy == "sketch" else 0
    for cell, truth in zip(cells, Q @ people, strict=True):
        assert abs(cell["value"] - truth) < 25 * cell["std_error"] + slack
    text, _ = done("show", "queried", "queries", "--where", "query=2")
    assert "query" in text
    listed, _ = done("show", "queried", "--json")
    assert {t["table"] for t in json.loads(listed)["tables"]} == {"sex", "queries"}


def test_the_sketchs_note_is_printed_and_published(desk, done):
    _, told = done("plan", *SEX_AGE, *BUDGET, "--workload", "sex*age", "--strategy", "sketch", "--out", "new.json")
    assert "collisions" in told
    done("release", "new.json", "--data", "people.csv", "--out", "sketched")
    assert "standard errors are those of the noise" in (desk / "sketched" / "PRIVACY.md").read_text()


def test_matrix_details_are_in_the_document(desk, done):
    write(desk, "s.csv", S)
    options = ["--workload", "sex,sex*age", "--strategy", MATRIX, "--json"]
    out, _ = done("plan", *SEX_AGE, *BUDGET, *options)
    assert json.loads(out)["chosen"]["details"]["rows"] == 22


# ---------------------------------------------------------------------------------------------------------- bad input

GOOD = ["--workload", "sex", "--out", "new.json"]


def queries(path, *rest):
    return ["plan", *SEX_AGE, *BUDGET, "--queries", path, *GOOD, *rest]


def matrix(path, *rest):
    return ["plan", *SEX_AGE, *BUDGET, "--strategy", f"matrix:rows={path}", *GOOD, *rest]


@pytest.mark.parametrize(("command", "option"), [(queries, "--queries"), (matrix, "--strategy matrix:rows")])
@pytest.mark.parametrize(
    ("name", "content", "wanted"),
    [
        ("bad.csv", "1," * 19 + "nan", "NaN"),
        ("bad.csv", "1," * 19 + "inf", "infinite"),
        ("bad.csv", "1,0,1", "3 numbers, the table sex*age has 20 cells"),
        ("bad.csv", "1," * 19 + "1\n1,0", "line 2 has 2 numbers, the first has 20"),
        ("bad.csv", f"sex,age\n{SECRET}", "line 1 holds something other than numbers"),
        ("bad.csv", "", "no rows"),
        ("bad.csv", b"\xff\xfe\x00", "damaged"),
        ("bad.json", "{", "damaged"),
        ("bad.json", "{}", "neither `rows`"),
        ("bad.json", "[]", "not a table of numbers"),
        ("bad.json", '{"rows": [[1, 2], [3]]}', "not equally long"),
        ("bad.json", '{"rows": [["a"]]}', "not equally long lists of numbers"),
        ("bad.json", '{"rows": [[1]], "attributes": 3}', "`attributes`"),
        ("bad.json", '{"rows": [[1]], "attributes": ["age", "sex"]}', "not those in the file"),
        ("bad.json", '{"rows": [[1]], "names": 3}', "damaged"),
        ("bad.json", '{"width": 20, "starts": [0, 1], "columns": [20], "values": [1]}', "outside 0..19"),
        ("bad.json", '{"width": 20, "starts": [0, 2], "columns": [1, 1], "values": [1, 1]}', "column twice"),
        ("bad.json", '{"width": 20, "starts": [0, 5], "columns": [1], "values": [1]}', "well-formed"),
        ("bad.json", '{"width": "x", "starts": [0], "columns": [], "values": []}', "damaged"),
        ("bad.json", '{"starts": null}', "damaged"),
        ("bad.json", "[" * 100_000, "damaged"),
        ("bad.npy", b"\x93NUMPY", "damaged"),
        ("bad.npy", b"", "damaged"),
        ("bad.npz", b"PK\x03\x04", "damaged"),
        ("bad.npz", gzip.compress(b"x", mtime=0), "damaged"),
        ("bad.mtx", "", "first line"),
        ("bad.mtx", "%%MatrixMarket matrix array real general\n1 1\n1\n", "array real general"),
        ("bad.mtx", "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 1\n", "complex"),
        ("bad.mtx", "%%MatrixMarket matrix coordinate real general\n1 20 2\n1 1 1\n", "the 2 entries"),
        ("bad.mtx", "%%MatrixMarket matrix coordinate real general\n1 20 1\n2 1 1\n", "outside its 1 rows"),
        ("bad.mtx", "%%MatrixMarket matrix coordinate real general\n1 20 1\n0 1 1\n", "outside its 1 rows"),
        ("bad.mtx", "%%MatrixMarket matrix coordinate real general\n1 20 1\n1 1 nan\n", "NaN"),
        ("bad.mtx", "%%MatrixMarket matrix coordinate real general\n", "damaged"),
        ("bad.mtx", "%%MatrixMarket matrix coordinate real general\n1 x 1\n", "damaged"),
        ("bad.txt", "1", "has an unknown type"),
    ],
)
def test_malformed_files(desk, refused, command, option, name, content, wanted):
    (desk / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    refused(command(f"sex*age:{name}"), option, wanted)


@pytest.mark.parametrize(
    ("parts", "wanted"),
    [
        ({"data": np.ones((1, 20))}, "not a sparse matrix"),
        ({"format": b"bsr", "shape": [1, 20], "data": [1.0]}, "'bsr' is not read"),
        ({"format": b"csr", "shape": [1, 20], "data": [1.0], "indices": [20], "indptr": [0, 1]}, "outside its 1 rows"),
        (
            {"format": b"csr", "shape": [1, 20], "data": [1.0, 2], "indices": [1], "indptr": [0, 1]},
            "do not fit together",
        ),
        ({"format": b"csr", "shape": [0, 20], "data": [], "indices": [], "indptr": [0]}, "do not fit together"),
        ({"format": b"coo", "shape": [1, 20], "data": ["x"], "row": [0], "col": [0]}, "do not fit together"),
        ({"format": b"csr", "shape": [1, 20, 3], "data": [1.0]}, "damaged"),
        ({"format": b"csr", "shape": [1, 20]}, "damaged"),
        ({"format": b"csr", "shape": [1, 20], "data": [np.nan], "indices": [1], "indptr": [0, 1]}, "NaN"),
        ({"format": np.array([b"a", b"b"]), "shape": [1, 20]}, "damaged"),
    ],
)
def test_malformed_archives(desk, refused, parts, wanted):
    np.savez(desk / "bad.npz", **parts)
    refused(queries("sex*age:bad.npz"), "--queries", wanted)


def test_files_that_would_run_code_are_not_opened(desk, refused):
    np.save(desk / "bad.npy", np.array([object()]), allow_pickle=True)
    refused(queries("sex*age:bad.npy"), "--queries", "damaged")
    content = (desk / "bad.npy").read_bytes()
    for header in (b"'", b"(" * 40, b"{" * 40, b"9" * 40):  # numpy parses headers as Python
        (desk / "bad.npy").write_bytes(content[:10] + header + content[10 + len(header) :])
        refused(queries("sex*age:bad.npy"), "--queries", "damaged")
    np.save(desk / "flat.npy", np.ones(20))
    refused(queries("sex*age:flat.npy"), "two dimensions")


@pytest.mark.parametrize("command", [queries, matrix])
@pytest.mark.parametrize(
    "path", ["missing.csv", "sex*age:missing.csv", "sex*agee:q.csv", "x" * 5000 + ".csv", "a\0b.csv"]
)
def test_missing_files(refused, command, path):
    refused(command(path), "cannot be read", "existing file")


def test_attributes_named_twice(desk, refused):
    write(desk, "q.csv", Q)
    refused(queries("sex*sex:q.csv"), "twice")


def test_non_integers_are_not_measured(desk, refused):
    write(desk, "s.csv", S / 2)
    refused(matrix("sex*age:s.csv"), "matrix", "row 0 holds 0.5", "multiply the row by its denominator")
    write(desk, "s.csv", S * 1e6)
    refused(matrix("sex*age:s.csv"), "matrix", "beyond 65,536")


def test_what_lies_outside_the_row_space_is_refused(desk, refused):
    write(desk, "s.csv", S[20:])
    write(desk, "q.csv", Q)
    refused(matrix("sex*age:s.csv", "--workload", "age"), "matrix", "age lies outside its row space", "add the rows")
    refused(matrix("sex*age:s.csv", "--queries", "sex*age:q.csv"), "row 2 of queries lies outside", "add the rows")


def test_tables_beyond_the_matrix_are_refused(desk, refused):
    write(desk, "s.csv", S)
    refused(matrix("sex*age:s.csv", "--workload", "region"), "region has attributes that the matrix's table", "lacks")


def test_a_matrix_must_be_given(refused):
    refused(
        ["plan", *SEX_AGE, *BUDGET, "--strategy", "matrix", *GOOD],
        "--strategy: matrix cannot be used here: no rows are given: write `matrix:rows=FILE`",
    )


def test_queries_must_be_given_where_they_are_asked_for(refused):
    refused(["plan", *SEX_AGE, *BUDGET, "--workload", "queries", "--out", "new.json"], "no matrix is given")


def test_without_recovery_answers_must_be_rows(desk, refused):
    write(desk, "s.csv", S)
    refused(matrix("sex*age:s.csv", "--workload", "age", "--recovery", "none"), "multiple of one of its rows")


@pytest.mark.parametrize(
    ("knobs", "wanted"),
    [
        ("estimate=mode", "average or median"),
        ("estimate=median,repetitions=4", "--strategy sketch:repetitions: the median of 4"),
        ("buckets=0", "too small"),
        ("repetitions=0", "too small"),
        (f"buckets={2**40}", "give fewer"),
    ],
)
def test_the_sketchs_knobs(refused, knobs, wanted):
    refused(["plan", *SEX_AGE, *BUDGET, "--strategy", f"sketch:{knobs}", *GOOD], wanted)


def test_options_stand_beside_no_plan_file(desk, refused):
    write(desk, "q.csv", Q)
    release = ["release", "plan.json", "--data", "people.csv", "--out", "new"]
    for option in ("--queries", "--strategy"):
        refused([*release, option, "sex*age:q.csv"], option, "cannot be combined with a plan file")


def test_changed_queries_in_a_plan_file_are_refused(desk, done, refused):
    write(desk, "q.csv", Q)
    done("plan", *SEX_AGE, *BUDGET, "--queries", "sex*age:q.csv", "--strategy", "workload", "--out", "new.json")
    raw = json.loads((desk / "new.json").read_text())
    for change in ({"values": [2.0, *raw["queries"]["values"][1:]]}, {"attributes": ["sex"]}, {"width": None}):
        (desk / "changed.json").write_text(json.dumps({**raw, "queries": {**raw["queries"], **change}}))
        refused(["release", "changed.json", "--data", "people.csv", "--out", "new"])
    (desk / "changed.json").write_text(json.dumps({**raw, "queries": []}))
    refused(["release", "changed.json", "--data", "people.csv", "--out", "new"], "plan")
    (desk / "changed.json").write_text(json.dumps({k: v for k, v in raw.items() if k != "queries"}))
    refused(["release", "changed.json", "--data", "people.csv", "--out", "new"])


def test_damaged_archives_of_every_length(desk, capsys):
    """Cut anywhere, a file is refused and never crashes."""
    scipy.sparse.save_npz(desk / "q.npz", scipy.sparse.csr_matrix(Q))
    whole = (desk / "q.npz").read_bytes()
    for length in range(0, len(whole), max(1, len(whole) // 60)):
        (desk / "cut.npz").write_bytes(whole[:length])
        assert run(queries("sex*age:cut.npz")) == 2
    for at in range(0, len(whole), max(1, len(whole) // 60)):
        (desk / "cut.npz").write_bytes(whole[:at] + struct.pack("B", whole[at] ^ 255) + whole[at + 1 :])
        assert run(["plan", *SEX_AGE, *BUDGET, "--queries", "sex*age:cut.npz", "--strategy", "workload"]) in (0, 2)
    capsys.readouterr()
