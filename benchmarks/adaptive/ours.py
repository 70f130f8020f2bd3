"""hushcube's contenders: `python -m benchmarks.adaptive.ours FOLDER METHOD SEED`                       [one_run.py]

Each takes what is public of a job (sizes, tables, rho), its people and a seed, and returns the tables at face value. A
new one is a function with its line in METHODS; nothing else needs to know of it.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pyarrow as pa

import hushcube as hc
from benchmarks.adaptive.one_run import About, Method, Tables, serve
from benchmarks.peers.one_job import Job
from hushcube.faces.value import FaceValue
from hushcube.lattice.family import Family

NON_NEGATIVE = FaceValue("nonnegative", method="local")
FACE_VALID = FaceValue("integral")
ENTROPY = FaceValue("nonnegative", method="entropy")
WHOLE = FaceValue("integral", method="entropy")


def measured_by(strategy: str, face: FaceValue) -> Method:
    """The tables asked for are measured by a strategy, and one face is made of what it measured."""

    def run(job: Job, seed: int) -> tuple[Tables, About]:
        names = [f"a{i}" for i in range(len(job.sizes))]
        schema = hc.Schema(tuple(hc.Attribute(name=name, codes=n) for name, n in zip(names, job.sizes, strict=True)))
        words = ["*".join(names[i] for i in table) for table in job.tables]
        plan = hc.plan(schema, words, rho=str(job.rho), neighbours="add-remove", strategy=strategy)
        people = pa.table({name: job.codes[:, i] for i, name in enumerate(names)})
        released = hc.recover(hc.release(plan, people, seed=seed), face)
        source = released.face(face.name).source
        found: Tables = {
            tuple(row): table
            for batch in Family.of(job.tables, job.sizes).batches
            for row, table in zip(batch.rows.tolist(), source.tables(batch.rows, batch.shape), strict=True)
        }
        return found, {"version": hc.__version__}

    return run


METHODS: dict[str, Method] = {
    "residual, non-negative": measured_by("residual", NON_NEGATIVE),
    "residual, face-valid": measured_by("residual", FACE_VALID),
    "residual, entropy": measured_by("residual", ENTROPY),
    "selective": measured_by("selective", ENTROPY),
    "selective, whole numbers": measured_by("selective", WHOLE),
}


if __name__ == "__main__":
    serve(METHODS)
