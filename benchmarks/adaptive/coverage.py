"""How often the stated errors of selective releases hold: `python -m benchmarks.adaptive.coverage [--runs N]`

For many runs on data whose truth is known (nothing of this is private): the 95% intervals of the unbiased tables, by
the size of the count, and the bounds that the last look puts on the error of each table at face value (97.5%).
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from benchmarks.__main__ import table
from benchmarks.adaptive.cases import CASES, WORKLOADS
from hushcube import Attribute, Schema, plan
from hushcube.experiments.truth import HeldTables, wanted
from hushcube.faces.face import make_face
from hushcube.faces.people import PeopleTables
from hushcube.faces.value import FaceValue
from hushcube.private.measure import draw
from hushcube.private.noise import SeededEntropy
from hushcube.progress import Clock

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "accuracy.md"
MARK, END = "<!-- coverage: written by `python -m benchmarks.adaptive.coverage` -->", "<!-- end of coverage -->"
KINDS = {"0 to 9": (0, 10), "10 to 99": (10, 100), "100 to 999": (100, 1_000), "1,000 and more": (1_000, np.inf)}


def covered(name: str, words: str, epsilon: float, runs: int) -> dict[str, object]:
    """One line: the shares of intervals and bounds that hold."""
    job = CASES[name].job(WORKLOADS[words], epsilon)
    schema = Schema(tuple(Attribute(name=f"a{i}", codes=n) for i, n in enumerate(job.sizes)))
    design = plan(schema, words, rho=str(job.rho), neighbours="add-remove", strategy="selective").count
    people = PeopleTables(job.codes, schema.sizes)
    exact = {
        tuple(row): counts.astype(np.int64)
        for batch in wanted(design.workload, [design]).batches
        if batch.shape
        for row, counts in zip(batch.rows.tolist(), people.tables(batch.rows, batch.shape), strict=True)
    }
    family, counts = design.request.marginals, HeldTables(len(job.codes), exact)
    inside, looks = {kind: [0, 0] for kind in KINDS}, [0, 0]
    for seed in range(runs):
        made, measurement = draw(design, counts, entropy=SeededEntropy(seed))
        face = make_face(made, measurement, FaceValue("nonnegative"), Clock())
        told, answers = face.report["measured_errors"]["tables"], made.answers(measurement)
        for batch in family.batches:
            margins = made.errors.margins[batch.ids].reshape(-1, *[1] * len(batch.shape))
            truth = np.stack([exact[tuple(row)] for row in batch.rows.tolist()])
            hit = np.abs(answers.tables(batch.rows, batch.shape) - truth) <= margins
            for kind, (low, high) in KINDS.items():
                own = (truth >= low) & (truth < high)
                inside[kind][0] += int(hit[own].sum())
                inside[kind][1] += int(own.sum())
            off = np.abs(face.tables.tables(batch.rows, batch.shape) - truth).reshape(len(truth), -1).sum(axis=1)
            for row, error in zip(batch.rows.tolist(), off.tolist(), strict=True):
                looks[0] += error <= told[schema.describe(tuple(row))]["at_most"]
                looks[1] += 1
    shares = {f"cells of {kind}": _share(*inside[kind]) for kind in KINDS}
    return {"case": name, "tables": words, "epsilon": epsilon, "runs": runs, **shares, "tables bounded": _share(*looks)}


def _share(hits: int, all_of_them: int) -> str:
    return f"{100 * hits / all_of_them:.1f}%" if all_of_them else ""


def main() -> None:
    """Print the table, and write it into the page."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--runs", type=int, default=200)
    runs = options.parse_args().runs
    settings = [("Adult-8", 1.0), ("Adult-8", 0.1), ("NLTCS", 1.0), ("NLTCS", 0.1)]
    found = table([covered(name, "2-way", epsilon, runs) for name, epsilon in settings])
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(MARK)
    PAGE.write_text(f"{head}{MARK}\n\n{found}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")
    print(found)


if __name__ == "__main__":
    main()
