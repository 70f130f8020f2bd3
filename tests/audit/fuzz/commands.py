"""A case: a folder of files, and a command line for it."""

import os
from collections.abc import Callable
from pathlib import Path
from random import Random

from audit.fuzz import words
from audit.fuzz.bundles import SUBJECT, write_plan
from audit.fuzz.hostile import NUMBERS, TEXTS, WHOLE, scribble
from audit.fuzz.options import BOUNDED, STRATEGIES, Groups, Making, face, measures, planning, strategy_word
from audit.fuzz.subjects import write_schema

PATHS = ("--out", "--chart", "--csv", "--keep")
"""Options that name what is written: only places within the case's folder, or such as cannot be written."""
OUTSIDE = (
    "", ".", "..", "/", "/dev/null", "/nonexistent/x", "/proc/x", "schema.yaml", "x/y", "a\nb", "\x1b[2J", "z" * 300,
    "é", "out.csv",
)  # fmt: skip


def make_case(seed: int, number: int, folder: Path, pool: Path) -> list[str]:
    """Write the files of a case into an empty folder; its command line. The same for the same two numbers."""
    rng = Random(f"{seed}:{number}")
    making = Making(rng, folder, pool, hostile=rng.choice((0.0, 0.2, 0.2, 0.5, 0.5, 0.8)))
    verb = rng.choices(list(VERBS), [share for share, _ in VERBS.values()])[0]
    groups = VERBS[verb][1](making)
    if rng.random() < (0.02 if verb == "schema draft" else 0.3):
        groups.append(["--json"])
    if rng.random() < making.hostile / 2:
        _confuse(rng, groups)
    return [*verb.split(), *(_argument(word) for group in groups for word in group)]


def _argument(word: str) -> str:
    """What a shell can hand over: bytes without NUL."""
    try:
        return os.fsdecode(os.fsencode(word)).replace("\0", "")
    except UnicodeEncodeError:
        return word.encode("utf-8", "replace").decode().replace("\0", "")


def _confuse(rng: Random, groups: Groups) -> None:
    """A slip of the one who types: options left out, doubled, misspelt, with each other's values."""
    at = rng.randrange(len(groups))
    group = groups[at]
    kind = rng.randrange(7)
    if kind == 0:
        del groups[at]
    elif kind == 1:
        groups.append(list(group))
    elif kind == 2:
        groups.append(
            rng.choice((["--x"], ["-q"], ["extra"], ["--json=1"], ["--help"], [rng.choice(TEXTS)], ["--version"]))
        )
    elif kind == 3 and len(group) == 2:
        del group[rng.randrange(2)]
    elif len(group) == 2 and group[0] in PATHS:
        group[1] = rng.choice(OUTSIDE)
    elif len(group) == 2 and group[0] not in BOUNDED and not group[1].startswith("sketch:"):
        group[1] = rng.choice((rng.choice(TEXTS), rng.choice(NUMBERS), rng.choice(WHOLE), scribble(rng, group[1])))
    elif len(group) == 1 and not group[0].startswith("-"):
        group[0] = rng.choice((rng.choice(TEXTS), scribble(rng, group[0])))


# ------------------------------------------------------------------------------------------------------------- verbs


def _plan(making: Making) -> Groups:
    rng, groups = making.rng, planning(making)
    if making.maybe(0.08):
        for group in groups:
            if group[0] in ("--epsilon", "--rho"):
                group[1] = "find"
        groups.append(["--target", words.target(rng, making.subject)])
    if making.maybe(0.04):
        groups.append(["--what-if", rng.choice(("0.1,1", "1", f"{rng.choice(NUMBERS)},1", rng.choice(TEXTS)))])
    if making.subject.measures and making.maybe(0.4):
        groups += measures(making)
    if making.maybe(0.01):
        groups.append(["--chart", rng.choice(("chart.svg", "chart.png", "chart.pdf"))])
    if making.maybe(0.4):
        groups.append(["--out", "out.json"])
    return groups


def _release(making: Making) -> Groups:
    rng = making.rng
    if making.maybe(0.4):
        write_plan(rng, making.pool, making.folder / "plan.json", hostile=making.hostile)
        (making.folder / "people.csv").write_bytes((making.pool / "people.csv").read_bytes())
        groups = [["plan.json"], *([["--data", "people.csv"]] if making.maybe(0.8) else making.data())]
        who = SUBJECT
    else:
        groups, who = [*planning(making), *making.data()], making.subject
        if making.subject.measures and making.maybe(0.3):
            groups += measures(making)
    groups.append(["--out", "out"])
    if making.maybe(0.2):
        groups += face(making, who)
    if making.maybe(0.1):
        groups.append(["--seed", rng.choice(WHOLE if making.maybe(making.hostile) else ("1", "0"))])
    if making.maybe(0.2):
        groups.append(["--bad-rows", rng.choice(("missing", "missing", "refuse", "x"))])
    if making.maybe(0.01):
        groups.append(["--engine", rng.choice(("duckdb", "x", ""))])
    return groups


def _show(making: Making) -> Groups:
    rng, groups = making.rng, [[making.bundle()]]
    if making.maybe(0.8):
        table = rng.choice(("total", "sex", "age", "sex*age", "age@band", "prefix(age)*sex", "ranges(age)", "queries"))
        groups.append([words.workload(rng, SUBJECT) if making.maybe(making.hostile / 2) else table])
        groups += [["--where", words.condition(rng, SUBJECT)] for _ in range(rng.choice((0, 0, 0, 1, 2)))]
        groups += [["--sum"]] * making.maybe(0.2) + [["--cross"]] * making.maybe(0.2)
        groups += [["--versus", words.condition(rng, SUBJECT)]] * making.maybe(0.1)
        groups += [["--share", rng.choice(("row", "column", "all", "x"))]] * making.maybe(0.15)
        groups += [["--columns", rng.choice(("sex", "age", "age@band", "x", ""))]] * making.maybe(0.1)
        groups += [["--csv"]] * making.maybe(0.1)
    if making.maybe(0.15):
        groups.append(["--face", rng.choice(("unbiased", "face-valid", "nonnegative", "x"))])
    if making.maybe(0.1):
        groups.append(["--rows", rng.choice(WHOLE)])
    return groups + [["--no-verify"]] * making.maybe(0.2)


def _recover(making: Making) -> Groups:
    groups = [[making.bundle()]]
    if making.maybe(0.8):
        groups += face(making, SUBJECT)
    return [*groups, ["--out", "out"]] if making.maybe(0.5) else groups


def _synth(making: Making) -> Groups:
    groups = [[making.bundle()], ["--out", making.rng.choice(("out.csv", "out.parquet", "out.csv", "out.txt"))]]
    if making.maybe(0.4):
        groups.append(["--rows", making.rng.choice(WHOLE if making.maybe(making.hostile) else ("1", "5", "auto"))])
    return groups + (face(making, SUBJECT, ("integral",)) if making.maybe(0.5) else [])


def _verify(making: Making) -> Groups:
    return [[making.bundle()], *[["--allow-seeded"]] * making.maybe(0.3)]


def _check(making: Making) -> Groups:
    write_schema(making.rng, making.subject, making.folder, hostile=making.hostile)
    return [["schema.yaml"], *(making.data() if making.maybe(0.5) else [])]


def _draft(making: Making) -> Groups:
    rng = making.rng
    groups = [group[1:] if group[0] == "--data" else group for group in making.data()]
    if making.maybe(0.4):
        groups.append(["--out", "out.yaml"])
    if making.maybe(0.2):
        groups.append(["--name", rng.choice(TEXTS)])
    if making.maybe(0.2):
        groups.append(["--max-values", rng.choice(WHOLE)])
    return groups


def _evaluate(making: Making) -> Groups:
    rng = making.rng
    groups = [
        group
        for group in planning(making)
        if group[0] not in ("--strategy", "--relative-error", "--above") or making.maybe(0.05)
    ]
    for option, values in {
        "--epsilon": ("0.1", "2"),
        "--rho": ("0.5",),
        "--delta": ("none", "1e-6"),
        "--budgets": ("uniform", "optimal"),
        "--recovery": ("none", "gls", "ols"),
        "--face": ("unbiased", "consistent", "nonnegative", "integral"),
    }.items():
        if making.maybe(0.1):
            groups.append([option, rng.choice(values)])
    if making.maybe(0.8):
        groups.append(
            ["--sanity-bound", rng.choice(NUMBERS if making.maybe(making.hostile / 2) else ("1", "10", "0.5"))]
        )
    for option, values in {
        "--by": ("setting", "dimension", "table", "year"),
        "--csv": ("rows.csv",),
        "--chart": ("errors.svg", "errors.png", "errors.pdf"),
        "--keep": ("runs.jsonl", "schema.yaml"),
        "--workers": ("1", "1", "2", "0"),
    }.items():
        if making.maybe(0.1):
            groups.append([option, rng.choice(values)])
    for option, values in {"--people": ("10", "1000", "0", "-1"), "--people-epsilon": ("0.1", "0.01")}.items():
        if making.maybe(0.1):
            groups.append([option, rng.choice(values)])
    if making.maybe(0.2):
        groups = [group for group in groups if group[0] not in ("--workload", "--queries")]
        groups += [
            ["--classify", rng.choice(making.subject.names)],
            ["--folds", rng.choice(("2", "2", "2", "3", "3", "0"))],
        ]
    else:
        groups.append(["--runs", rng.choice(("1", "1", "2", "2", "2", "2", "0", "-1"))])
    groups.append(["--method", strategy_word(making, rng.choice((*STRATEGIES[:-2], "oracle", "proportional")))])
    if making.maybe(0.5):
        groups.append(["--seed", rng.choice(WHOLE if making.maybe(making.hostile) else ("1", "2"))])
    return [*groups, *making.data()]


VERBS: dict[str, tuple[int, Callable[[Making], Groups]]] = {
    "plan": (24, _plan),
    "release": (24, _release),
    "show": (12, _show),
    "verify": (10, _verify),
    "recover": (9, _recover),
    "synth": (7, _synth),
    "schema check": (6, _check),
    "schema draft": (4, _draft),
    "evaluate": (4, _evaluate),
}
"""Each verb with its share of the cases."""
