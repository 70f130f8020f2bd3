"""How often the stated errors of selective releases hold: `python -m benchmarks.adaptive.coverage [--runs N]`

For many runs on data whose truth is known (nothing of this is private): the 95% intervals of the unbiased tables, by
the size of the count, the bounds that the last look puts on the error of each table at face value (97.5%), and the
intervals that the estimated errors of cells at face value give.

Errors of cells are estimated by rules that were chosen with other seeds, from 1000 on.   [hushcube/faces/cell_errors]
"""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from benchmarks.__main__ import table
from benchmarks.adaptive.cases import CASES, WORKLOADS
from hushcube import Attribute, Schema, plan
from hushcube.designs.design import Design
from hushcube.experiments.truth import HeldTables, wanted
from hushcube.faces.face import make_face
from hushcube.faces.people import PeopleTables
from hushcube.faces.value import HALF_WIDTH, FaceValue
from hushcube.private.measure import draw
from hushcube.private.noise import SeededEntropy
from hushcube.progress import Clock

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "accuracy.md"
MARK, END = "<!-- coverage: written by `python -m benchmarks.adaptive.coverage` -->", "<!-- end of coverage -->"
KINDS = {"0 to 9": (0, 10), "10 to 99": (10, 100), "100 to 999": (100, 1_000), "1,000 and more": (1_000, np.inf)}
SETTINGS = (("Adult-8", 1.0), ("Adult-8", 0.1), ("NLTCS", 1.0), ("NLTCS", 0.1))
"""Two-way tables, as many runs as are asked for."""
FEWER = (
    ("Adult-8", "2-way", 10.0, "nonnegative", 20),
    ("Adult-8", "2-way", 1.0, "integral", 20),
    ("Adult-8", "3-way", 1.0, "nonnegative", 20),
    ("generated census", "2-way", 1.0, "nonnegative", 20),
    ("NLTCS", "3-way", 1.0, "nonnegative", 20),
    ("ACS 2018", "2-way", 1.0, "nonnegative", 10),
    ("Adult-15", "2-way", 1.0, "nonnegative", 5),
)
"""Other tables, faces and data, and the most runs of each."""
LEAST = 0.9  # of the cells of a kind: where fewer are inside, intervals do not cover them
TOLD = (
    f"Intervals of cells at face value, the published value ± {HALF_WIDTH:.2f} times its `estimated_error`: the share "
    "of cells whose true count is inside, by its size, and in brackets the mean half-width as a part of the 95% margin "
    "of the unbiased cell. A table's own share is that of all its cells in all runs."
)


@dataclass
class Shares:
    """Of some cells or tables: how many have the truth inside, how many there are, and how wide their intervals are."""

    hits: float = 0
    number: int = 0
    width: float = 0.0
    margin: float = 0.0

    def add(self, hit: np.ndarray, width: np.ndarray | float = 0.0, margin: np.ndarray | float = 0.0) -> None:
        """More of them."""
        self.hits += int(hit.sum())
        self.number += hit.size
        self.width += float(np.sum(width))
        self.margin += float(np.sum(margin))

    @property
    def share(self) -> float:
        """Those with the truth inside."""
        return self.hits / self.number if self.number else np.nan

    def __str__(self) -> str:
        return f"{100 * self.share:.1f}%" if self.number else ""

    @property
    def told(self) -> str:
        """With the width; or that they are not covered."""
        if not self.number:
            return ""
        covers = "" if self.share >= LEAST else "not covered: "
        return f"{covers}{self} ({self.width / self.margin:.2f})"


@dataclass
class Coverage:
    """What was seen in the runs of one case."""

    unbiased: dict[str, Shares] = field(default_factory=lambda: defaultdict(Shares))
    bounds: Shares = field(default_factory=Shares)
    cells: dict[str, Shares] = field(default_factory=lambda: defaultdict(Shares))
    tables: dict[tuple[int, ...], Shares] = field(default_factory=lambda: defaultdict(Shares))


def exact_tables(design: Design, codes: np.ndarray) -> dict[tuple[int, ...], np.ndarray]:
    """All counts that a run of a design may look at, by their attributes."""
    people = PeopleTables(codes, design.schema.sizes)
    return {
        tuple(row): counts.astype(np.int64)
        for batch in wanted(design.workload, [design]).batches
        if batch.shape
        for row, counts in zip(batch.rows.tolist(), people.tables(batch.rows, batch.shape), strict=True)
    }


def covered(name: str, words: str, epsilon: float, runs: int, kind: str = "nonnegative") -> Coverage:
    """The intervals and bounds that hold."""
    job = CASES[name].job(WORKLOADS[words], epsilon)
    schema = Schema(tuple(Attribute(name=f"a{i}", codes=n) for i, n in enumerate(job.sizes)))
    design = plan(schema, words, rho=str(job.rho), neighbours="add-remove", strategy="selective").count
    exact = exact_tables(design, job.codes)
    family, counts = design.request.marginals, HeldTables(len(job.codes), exact)
    found = Coverage()
    for seed in range(runs):
        made, measurement = draw(design, counts, entropy=SeededEntropy(seed))
        face = make_face(made, measurement, FaceValue(kind), Clock())
        told, answers = face.report["measured_errors"]["tables"], made.answers(measurement)
        for batch in family.batches:
            margins = made.errors.margins[batch.ids].reshape(-1, *[1] * len(batch.shape))
            truth = np.stack([exact[tuple(row)] for row in batch.rows.tolist()])
            margins = np.broadcast_to(margins, truth.shape)
            hit = np.abs(answers.tables(batch.rows, batch.shape) - truth) <= margins
            off = np.abs(face.tables.tables(batch.rows, batch.shape) - truth)
            widths = HALF_WIDTH * face.errors.tables(batch.rows, batch.shape)
            for size, (low, high) in KINDS.items():
                own = (truth >= low) & (truth < high)
                found.unbiased[size].add(hit[own])
                found.cells[size].add((off <= widths)[own], widths[own], margins[own])
            for at, row in enumerate(map(tuple, batch.rows.tolist())):
                found.bounds.add(off[at].sum() <= np.asarray(told[schema.describe(row)]["at_most"]))
                found.tables[row].add(off[at] <= widths[at])
    return found


def lines(runs: int) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """The intervals and bounds that are promised, and those that are estimated."""
    promised, estimated = [], []
    every = [(name, "2-way", epsilon, "nonnegative", runs) for name, epsilon in SETTINGS]
    every += [(*setting, min(runs, most)) for *setting, most in FEWER]
    for at, (name, words, epsilon, kind, number) in enumerate(every):
        found = covered(name, words, epsilon, number, kind)
        asked = f"{words}, whole numbers" if kind == "integral" else words
        case = {"case": name, "tables": asked, "epsilon": epsilon, "runs": number}
        if at < len(SETTINGS):
            shares = {f"cells of {size}": str(found.unbiased[size]) for size in KINDS}
            promised.append({**case, **shares, "tables bounded": str(found.bounds)})
        own = [each.share for each in found.tables.values()]
        estimated.append(
            {
                **case,
                **{f"cells of {size}": found.cells[size].told for size in KINDS},
                "tables below 90%": f"{sum(share < LEAST for share in own)} of {len(own)}",
                "lowest table": f"{100 * min(own):.1f}%",
            }
        )
        print(estimated[-1], flush=True)
    return promised, estimated


def main() -> None:
    """Print the tables, and write them into the page."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--runs", type=int, default=200)
    promised, estimated = lines(options.parse_args().runs)
    text = f"{table(promised)}\n\n{TOLD}\n\n{table(estimated)}"
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(MARK)
    PAGE.write_text(f"{head}{MARK}\n\n{text}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
