"""Releases of every kind, made once, and copies of them: damaged by accident, or forged with matching checksums."""

import hashlib
import json
import os
import shutil
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from audit.fuzz.documents import changed, written
from audit.fuzz.hostile import TEXTS, anything, damage
from audit.fuzz.judge import run_here
from audit.fuzz.subjects import Subject

SCHEMA = """\
name: people
attributes:
  - {name: sex, values: [F, M], levels: [{name: all, groups: {g: [F, M]}}]}
  - {name: age, range: [0, 3], levels: [{name: band, starts: [0, 2]}]}
  - {name: income, bins: [0, 10, 50], missing: unknown}
measures:
  - {name: days, bounds: [1, 4]}
"""
SUBJECT = Subject(
    {"measures": [{"name": "days"}]},
    [],
    labels={"sex": ["F", "M"], "age": ["0", "1", "2", "3"], "income": ["[0, 10)", "[10, 50]", "unknown"]},
    levels={"sex": ["all"], "age": ["band"]},
    ordered=["age", "income"],
)
"""What generators of words know about it."""
PEOPLE = "sex,age,income,days\n" + "F,1,5,2\nM,2,10,1\nM,3,,4\n" * 4

_EPSILON = ["--epsilon", "1", "--neighbours", "add-remove"]
_RHO = ["--rho", "0.5", "--neighbours", "add-remove"]
KINDS = {
    "residual": [*_RHO, "--workload", "<=2-way"],
    "covering": [*_EPSILON, "--workload", "2-way", "--strategy", "covering"],
    "replaced": ["--epsilon", "1", "--neighbours", "replace-one", "--workload", "<=2-way", "--strategy", "workload"],
    "levels": [*_EPSILON, "--workload", "sex*age@band,age,income", "--strategy", "levels"],
    "tree": [*_EPSILON, "--workload", "prefix(age)*sex", "--strategy", "hierarchy"],
    "wavelet": [*_RHO, "--workload", "ranges(age)", "--strategy", "wavelet"],
    "matrix": [
        *_EPSILON, "--queries", "sex*age:queries.csv", "--strategy", "matrix:rows=sex*age:measured.csv",
    ],
    "sketch": [*_EPSILON, "--workload", "sex*age", "--strategy", "sketch"],
    "ireduct": [*_EPSILON, "--workload", "1-way", "--strategy", "ireduct:sanity-bound=1"],
    "seeded": [*_EPSILON, "--workload", "1-way", "--strategy", "identity"],
    "faces": [*_RHO, "--workload", "1-way,sex*age"],
    "cube": [*_EPSILON, "--workload", "<=1-way", "--measure", "sum(days),avg(days)", "--strategy", "workload"],
}  # fmt: skip


def make_pool(folder: Path) -> Path:
    """Write a plan and a release of each kind: KIND.json and KIND. The noise is the same each time."""

    def must(*arguments: str) -> None:
        if (done := run_here([*arguments, "--json"], folder, 60)).code != 0:
            raise RuntimeError(f"the pool cannot be made: {arguments}: {done.err}{done.trace}")

    (folder / "schema.yaml").write_text(SCHEMA)
    (folder / "people.csv").write_text(PEOPLE)
    (folder / "queries.csv").write_text("1,1,1,1,0,0,0,0\n0,0,1,1,0,0,1,1\n")
    (folder / "measured.csv").write_text("\n".join(",".join(str(int(i == j)) for j in range(8)) for i in range(8)))
    for kind, options in KINDS.items():
        must("plan", "--schema", "schema.yaml", *options, "--out", f"{kind}.json")
        more = {"seeded": ["--seed", "1"], "faces": ["--face", "integral"]}.get(kind, [])
        must("release", f"{kind}.json", "--data", "people.csv", "--out", kind, *more)
    must("recover", "faces", "--face", "nonnegative")
    return folder


def write_plan(rng: Random, pool: Path, target: Path, *, hostile: float) -> None:
    """A plan of the pool; changed, mostly with a digest that fits what it says now."""
    content = (pool / f"{rng.choice(list(KINDS))}.json").read_bytes()
    if rng.random() < hostile:
        content = _forged_plan(rng, json.loads(content))
    target.write_bytes(damage(rng, content) if rng.random() < hostile / 5 else content)


def _forged_plan(rng: Random, tree: dict[str, Any]) -> bytes:
    if "parts" in tree and rng.random() < 0.5:
        part = rng.choice(list(tree["parts"]))
        tree["parts"][part] = _with_digest(rng, changed(rng, tree["parts"][part]))
        return written(tree).encode()
    return written(_with_digest(rng, changed(rng, tree))).encode()


def _with_digest(rng: Random, tree: Any) -> Any:
    """What hushcube would compute for this tree."""
    if isinstance(tree, dict) and "digest" in tree and rng.random() < 0.85:
        tree = {key: value for key, value in tree.items() if key != "digest"}
        try:
            told = json.loads(written(tree))
            canonical = json.dumps(told, sort_keys=True, separators=(",", ":"))
        except (ValueError, RecursionError):
            return tree
        tree["digest"] = hashlib.sha256(canonical.encode("utf-8", "replace")).hexdigest()
    return tree


def write_bundle(rng: Random, pool: Path, target: Path, *, hostile: float, kinds: tuple[str, ...] = ()) -> None:
    """A release of the pool; with the probability `hostile` something is wrong with it."""
    shutil.copytree(pool / rng.choice(kinds or list(KINDS)), target)
    while rng.random() < hostile:
        hostile /= 3
        rng.choice((_bytes, _bytes, _document, _document, _document, _exchange, _replace, _add))(rng, target)
        if rng.random() < 0.6:
            _sign(target)


def _files(folder: Path) -> list[Path]:
    """The ordinary ones that are not long."""
    found = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sorted(path for path in found if path.stat().st_size < 2**24)


def _bytes(rng: Random, folder: Path) -> None:
    path = rng.choice(_files(folder))
    path.write_bytes(damage(rng, path.read_bytes()))


def _document(rng: Random, folder: Path) -> None:
    """A field of the manifest or the plan."""
    path = rng.choice([p for p in _files(folder) if p.suffix == ".json"] or _files(folder))
    with suppress(ValueError, RecursionError):  # it was damaged before, or is brackets without end
        path.write_bytes(written(_with_digest(rng, changed(rng, json.loads(path.read_bytes())))).encode())


def _exchange(rng: Random, folder: Path) -> None:
    """Two files change places, or one is gone."""
    first, second = rng.choice(_files(folder)), rng.choice(_files(folder))
    if rng.random() < 0.5:
        first.unlink()
        return
    one, two = first.read_bytes(), second.read_bytes()
    first.write_bytes(two)
    second.write_bytes(one)


def _replace(rng: Random, folder: Path) -> None:
    """Something that is no file in the place of one, or a link in that of a folder."""
    folders = sorted(path for path in folder.rglob("*") if path.is_dir() and not path.is_symlink())
    path = rng.choice([*_files(folder), *folders])
    if path.is_dir():
        away = folder.parent / "moved"
        if away.exists():
            return
        path.rename(away)
        path.symlink_to(rng.choice((away, folder, Path("nowhere"), path.name)))
        return
    content = path.read_bytes()
    path.unlink()
    kind = rng.randrange(6)
    if kind == 0:
        path.mkdir()
    elif kind == 1:
        os.mkfifo(path)
    elif kind == 2:
        outside = folder.parent / "outside"
        outside.write_bytes(content)
        path.symlink_to(outside)
    elif kind == 3:
        path.symlink_to(
            rng.choice(("nowhere", path.name, "/dev/zero", "/dev/null", "/proc/self/mem", "..", "manifest.json"))
        )
    elif kind == 4:
        with path.open("wb") as file:  # long, without taking any room
            file.truncate(2**28)
    else:
        path.write_bytes(content * 100)


def _add(rng: Random, folder: Path) -> None:
    """Something that does not belong there."""
    names = (
        "LICENCE.txt",
        ".git",
        "tables/x.parquet",
        "faces/x",
        ".hushcube-partial-1",
        "manifest.json.bak",
        "\x1b[2J",
        "a\u202eb",
    )
    path = folder / rng.choice(names)
    if path.exists():
        return
    path.parent.mkdir(exist_ok=True)
    if rng.random() < 0.3:
        path.mkdir()
    else:
        path.write_text(str(anything(rng))[:100] if rng.random() < 0.5 else rng.choice(TEXTS)[:50], errors="replace")


def _sign(folder: Path) -> None:
    """Checksums and digests that fit the files: a forger computes them too."""
    for path in (*folder.glob("parts/*/manifest.json"), folder / "manifest.json"):
        try:
            tree = json.loads(_content(path))
            if "plan_digest" in tree:
                tree["plan_digest"] = json.loads(_content(path.parent / "plan.json"))["digest"]
            for name in tree["checksums"]:
                with suppress(ValueError):
                    tree["checksums"][name] = hashlib.sha256(_content(path.parent / name)).hexdigest()
            path.write_text(json.dumps(tree, ensure_ascii=False))
        except (OSError, ValueError, LookupError, TypeError, RecursionError, AttributeError):
            continue


def _content(path: Path) -> bytes:
    """Of an ordinary file; pipes, devices and long files are left alone."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > 2**24:
        raise ValueError
    return path.read_bytes()
