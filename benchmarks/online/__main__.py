"""Compare policies for questions that come one by one, and write docs/online.md and its picture: `make online`.

    python -m benchmarks.online [--quick]

With `--quick` one short stream of each kind is run, and the table is printed and not written.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from benchmarks.__main__ import table
from benchmarks.online.contenders import a_or_b, alone, beforehand, one_by_one
from benchmarks.online.offline import least_rho
from benchmarks.online.streams import SCHEMAS, STREAMS
from benchmarks.reproduce.pictures import BLACK, BLUE, DASHED, GREY, VERMILION, lines
from hushcube.model.privacy import Privacy
from hushcube.verbs.charting import saved

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGE, PICTURE = DOCS / "online.md", DOCS / "pictures" / "online.svg"
MARK, END = "<!-- figures: written by `make online` -->", "<!-- end -->"
RHO = Privacy.of(rho="1/2", neighbours="add-remove")
EPSILON = Privacy.of(epsilon=1, neighbours="add-remove")
ERRORS = {
    RHO: {"20 binary": (3, 4, 5, 6), "30 mixed": (5, 10, 15, 20)},
    EPSILON: {"20 binary": (50, 150), "30 mixed": (50, 150)},
}
"""The standard errors that are asked for; under rho = 1/2 contender (a) answers as many questions as their squares."""
LOOKS = {
    "(b) a or b": (GREY, DASHED),
    "as little as needed": (BLUE, DASHED),
    "session": (VERMILION, "solid"),
    "(c) knows all questions": (BLACK, "solid"),
}


@dataclass(frozen=True)
class Setting:
    """One kind of stream over one schema, under one account, at one error."""

    schema: str
    stream: str
    account: Privacy
    std_error: float
    seeds: Sequence[int]
    questions: int

    def run(self) -> dict[str, Any]:
        """The questions answered on average over the streams."""
        sizes, t = SCHEMAS[self.schema], self.std_error**2
        found: dict[str, list[float]] = {}
        for seed in self.seeds:
            asked = STREAMS[self.stream](len(sizes), self.questions, np.random.default_rng(seed))
            session = one_by_one(sizes, asked, t, self.account)
            own = {
                "(a) alone": min(alone(sizes, t, self.account), self.questions),
                "(b) a or b": a_or_b(sizes, asked, t, self.account),
                "as little as needed": one_by_one(sizes, asked, t, self.account, ahead=False),
                "session": session,
            }
            if (rho := self.account.rho) is not None:
                own["(c) knows all questions"] = beforehand(sizes, asked, t, float(rho), session)
                if session < self.questions:  # otherwise not all of the account is spent
                    own["least"] = float(rho) / least_rho(sizes, dict.fromkeys(asked[:session], t)).bound
            for name, value in own.items():
                found.setdefault(name, []).append(value)
        return {name: float(np.mean(values)) for name, values in found.items()}


def settings(*, quick: bool) -> Iterator[Setting]:
    """What is measured, in the order of the tables."""
    how: Any = {"seeds": (1,), "questions": 400} if quick else {"seeds": (1, 2, 3), "questions": 5000}
    for account, errors in ERRORS.items():
        for schema, own in errors.items():
            for stream in STREAMS:
                for std_error in own[: 2 if quick else None]:
                    yield Setting(schema, stream, account, std_error, **how)


def row(setting: Setting, found: dict[str, Any]) -> dict[str, Any]:
    """A line of a table."""
    counts = {
        name: "all" if value >= setting.questions else round(value) for name, value in found.items() if name != "least"
    }
    times = found["session"] / found["(a) alone"]
    told = {"session over (a)": f"{times:.1f}" if found["session"] < setting.questions else f"over {times:.1f}"}
    if setting.account.rho is not None:
        told["(c) over session"] = f"{found['(c) knows all questions'] / found['session']:.2f}"
        told["charged over the least"] = f"{found['least']:.2f}" if "least" in found else ""
    return {"attributes": setting.schema, "stream": setting.stream, "std error": setting.std_error, **counts, **told}


def picture(results: Sequence[tuple[Setting, dict[str, Any]]]) -> Any:
    """How many times the questions of the first contender everybody answers."""
    rows = [
        {
            "panel": f"{setting.schema}, {setting.stream}",
            "alone": round(found["(a) alone"]),
            "method": name,
            "times": found[name] / found["(a) alone"],
        }
        for setting, found in results
        if setting.account == RHO
        for name in LOOKS
        if found[name] < setting.questions  # beyond that nobody knows
    ]
    return lines(
        rows,
        x="alone",
        y="times",
        looks=LOOKS,
        panel="panel",
        columns=4,
        log_x=True,
        x_title="questions that (a) answers",
        y_title="times as many",
        title="Questions answered from one account, at equal error",
        size=(170, 150),
    )


def section(results: Sequence[tuple[Setting, dict[str, Any]]]) -> str:
    """The tables."""
    own = {account: [row(s, found) for s, found in results if s.account == account] for account in ERRORS}
    rho = f"{summary(results)}\n\n### rho = 1/2\n\n{table(own[RHO])}"
    return f"{rho}\n\n### epsilon = 1\n\n{pure_summary(results)}\n\n{table(own[EPSILON])}"


def summary(results: Sequence[tuple[Setting, dict[str, Any]]]) -> str:
    """The tables in two sentences."""
    rho = [(setting, found) for setting, found in results if setting.account == RHO]
    behind = max(found["(c) knows all questions"] / found["session"] for _, found in rho)
    return (
        "Under rho = 1/2 a session answers several times as many questions as (a), the more the larger an error may "
        f"be: {_times(rho)}. Whoever knows all questions beforehand answers at most {behind:.2f} times as many as "
        "the session, on any stream."
    )


def pure_summary(results: Sequence[tuple[Setting, dict[str, Any]]]) -> str:
    """The table of pure epsilon in a sentence."""
    own = [(setting, found) for setting, found in results if setting.account == EPSILON]
    return f"Under epsilon = 1 a session answers {_times(own)} as many questions as (a)."


def _times(results: Sequence[tuple[Setting, dict[str, Any]]]) -> str:
    """How many times as many questions as the first contender a session answers, where people come back to tables."""
    told = []
    for schema in SCHEMAS:
        for stream in ("Zipf", "drill-down"):
            times = [f["session"] / f["(a) alone"] for s, f in results if (s.schema, s.stream) == (schema, stream)]
            told.append(f"{min(times):.1f} to {max(times):.1f} times ({schema}, {stream})")
    return ", ".join(told)


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.online", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short stream of each kind; nothing is written")
    quick = parser.parse_args().quick
    start, every = time.perf_counter(), list(settings(quick=quick))
    with ProcessPoolExecutor(2) as processes:
        results = list(zip(every, processes.map(Setting.run, every), strict=True))
    if quick:
        print(section(results))
    else:
        head, _, rest = PAGE.read_text(encoding="utf-8").partition(MARK)
        text = f"{head}{MARK}\n\n{section(results)}\n\n{END}{rest.partition(END)[2]}"
        PAGE.write_text(text, encoding="utf-8")
        PICTURE.write_bytes(saved(picture(results), PICTURE))
    print(f"{len(every)} settings in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
