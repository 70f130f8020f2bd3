"""A release whose noise came from a seed says NOT PRIVATE in everything that is written or printed about it."""

import json
import shutil

import pyarrow.parquet as pq
import pytest

import hushcube as hc
from cli.test_cubes_cli import ASKED as CUBE, SCHEMA as STAYS
from datasets import EARLIER
from hushcube import synthesize
from hushcube.bundle.manifest import seal
from hushcube.bundle.reading import checksum
from hushcube.bundle.verify import verify
from hushcube.cli import run

STAMP = "NOT PRIVATE: the noise came from a seed. This release is for experiments and protects nobody."
SEEDED = ["release", "plan.json", "--data", "people.csv", "--seed", "1"]
ROWS = [f"{i // 3},{('medicine', 'surgery')[i % 2]},{'FM'[i % 3 % 2]},{1 + i % 9},{10 * (i % 90)}" for i in range(90)]


@pytest.fixture
def cube(desk):
    (desk / "stays.csv").write_text("\n".join(["patient,ward,sex,days,cost", *ROWS]))
    (desk / "stays.yaml").write_text(STAYS)
    return ["release", "--schema", "stays.yaml", *CUBE, "--data", "stays.csv", "--seed", "1"]


def verbs(name):
    """Every way to ask about the release in a folder; each gives arguments and the exit code."""
    yield ["show", name], 0
    yield ["verify", name], 1
    yield ["verify", name, "--allow-seeded"], 0


def counted(name):
    yield from verbs(name)
    yield ["show", name, "sex"], 0
    yield ["show", name, "sex", "--sum"], 0
    yield ["recover", name, "--face", "consistent"], 0
    yield ["show", name, "sex", "--face", "consistent"], 0
    yield ["recover", name], 0
    yield ["synth", name, "--out", f"{name}.parquet"], 0


def cubed(name):
    yield from verbs(name)
    yield ["show", name, "ward"], 0
    yield ["show", name, "ward", "--sum"], 0
    yield ["recover", name], 0
    yield ["show", name, "ward", "--face", "face-valid"], 0
    yield ["synth", name, "--out", f"{name}.parquet"], 0


@pytest.mark.parametrize("kind", ["counts", "cube"])
@pytest.mark.parametrize("form", ["text", "json"])
def test_every_verb_prints_the_stamp(done, document, cube, kind, form):
    release, asked = (SEEDED, counted) if kind == "counts" else (cube, cubed)
    for arguments, code in [([*release, "--out", "new"], 0), *asked("new")]:
        if form == "text":
            out, err = done(*arguments, code=code)
            assert out.splitlines()[0] == STAMP and STAMP in err, arguments
        else:
            told = document(*arguments, code=code)
            assert told["private"] is False and told["warning"] == STAMP, arguments
            assert STAMP in document.err, arguments


def test_a_private_release_is_not_stamped(done, document, desk):
    for arguments, code in counted("published"):
        out, err = done(*arguments, code=code if "verify" not in arguments else 0)
        assert "NOT PRIVATE" not in out + err, arguments
    told = document("show", "published")
    assert told["private"] is True and "warning" not in told
    assert not any(b"hushcube" in (pq.read_metadata(p).metadata or {}) for p in desk.glob("published/**/*.parquet"))


def test_every_file_that_has_room_for_it_carries_the_stamp(done, desk, cube):
    done(*SEEDED, "--out", "new", "--face", "integral")
    done("synth", "new", "--out", "synthetic.parquet")
    done(*cube, "--out", "cube")
    tables = [desk / "synthetic.parquet", *desk.glob("new/**/*.parquet"), *desk.glob("cube/**/*.parquet")]
    assert len(tables) > 30
    for path in tables:
        assert pq.read_metadata(path).metadata[b"hushcube"].decode() == STAMP, path
    for folder in ("new", "cube"):
        assert STAMP in (desk / folder / "PRIVACY.md").read_text()
        assert json.loads((desk / folder / "manifest.json").read_text())["warning"] == STAMP


def test_a_failed_verification_says_why(done):
    done(*SEEDED, "--out", "new")
    out, _ = done("verify", "new", code=1)
    assert f"privacy: {STAMP}" in out.splitlines()
    assert out.splitlines()[-1] == "The release does not hold what it promises."
    out, _ = done("verify", "new", "--allow-seeded")
    assert out.splitlines()[-1] == "Everything holds, but it is NOT PRIVATE."


def test_python_objects_say_so_too(desk, cube):
    assert run([*SEEDED, "--out", "new"]) == 0 and run([*cube, "--out", "cube"]) == 0
    assert repr(hc.open("new")) == (
        "Release('people': 11 tables, epsilon = 1, add-remove, one row per person, NOT PRIVATE)"
    )
    assert "NOT PRIVATE" not in repr(hc.open("published"))
    assert repr(hc.open("cube")).startswith("Release('stays': 4 tables of count, avg(days), sum(cost), ")
    assert repr(hc.open("cube")).endswith(", NOT PRIVATE)")
    assert synthesize("new").private is False and synthesize("published").private is True
    assert verify(desk / "new").private is False and verify(desk / "published").private is True


def test_a_cube_that_says_otherwise_is_refused(done, desk, cube):
    done(*cube, "--out", "cube")
    path = desk / "cube" / "manifest.json"
    path.write_bytes(seal({**json.loads(path.read_text()), "private": True}, desk / "cube"))
    done("verify", "cube", "--allow-seeded", code=1)
    done("show", "cube", code=2)


@pytest.mark.parametrize("folder", ["cube", "cube/parts/01"])
def test_an_earlier_cube_whose_parts_say_otherwise_is_refused(done, desk, folder):
    """The checksum of a part's manifest is made again, as a careful forger would."""
    shutil.copytree(EARLIER / "cube-3", desk / "cube")
    path = desk / folder / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_bytes(seal({**manifest, "private": True}, desk / folder))
    whole = json.loads((desk / "cube" / "manifest.json").read_text())
    if folder != "cube":
        statement = desk / folder / "PRIVACY.md"
        statement.write_text(statement.read_text().replace(f"**{STAMP}**\n\n", ""))
        manifest["checksums"]["PRIVACY.md"] = checksum(desk / folder, "PRIVACY.md")
        path.write_bytes(seal({**manifest, "private": True}, desk / folder))
        whole["checksums"] |= {f"parts/01/{n}": checksum(desk / folder, n) for n in ("manifest.json", "PRIVACY.md")}
        (desk / "cube" / "manifest.json").write_bytes(seal(whole, desk / "cube"))
    out, _ = done("verify", "cube", "--allow-seeded", code=1)
    assert "does not say of its noise what the parts say" in out
    _, err = done("show", "cube", code=2)
    assert "does not say of its noise what the parts say" in err
