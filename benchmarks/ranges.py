"""Ranges by trees: plan, measure and recover, epsilon = 1, 100,000 rows, against dense matrices on a smaller domain.

`plain` is numpy with the whole matrices of Haar wavelets and of the queries: a pseudo-inverse, float noise, and the
error of every answer. It does not fit in memory at our sizes, so it runs on fewer cells, given beside it: `ratio` is
its time for each answer over ours. Its time grows with the square of the cells, or faster.
"""

from __future__ import annotations

import time

import numpy as np

ROWS = 100_000
CASES = (
    # workload, sizes, sizes for the dense baseline
    ("prefix(a0)", (100_000,), (1_000,)),
    ("ranges(a0)", (2_000,), (300,)),
    ("prefix(a0)*prefix(a1)", (300, 300), (30, 30)),
)


def main(cases=CASES, rows=ROWS):
    """Print and return a row for each workload and strategy."""
    result = []
    ours("prefix(a0)", (10,), "wavelet", 10)  # imports are not what is timed
    for words, sizes, smaller in cases:
        answers, seconds = plain(words, smaller)
        for strategy in ("wavelet", "hierarchy"):
            row = {"workload": words, "cells": int(np.prod(sizes)), "strategy": strategy}
            row |= ours(words, sizes, strategy, rows)
            row |= {"plain_cells": int(np.prod(smaller)), "plain_answers": answers, "plain_seconds": seconds}
            row["ratio"] = seconds / answers / (row["plan"] + row["measure"] + row["recover"]) * row["answers"]
            result.append(row)
            print({k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()}, flush=True)
    return result


def ours(words, sizes, strategy, rows):
    """Seconds to plan (with the predicted total), to measure, and to recover every answer with its error."""
    from tests.populations import generated

    from hushcube import Attribute, Schema, plan
    from hushcube.bundle.release import Release
    from hushcube.planning.plan import Plan
    from hushcube.private.engines import open_source
    from hushcube.private.measure import measure

    schema = Schema(tuple(Attribute(name=f"a{i}", range=(0, n - 1)) for i, n in enumerate(sizes)))
    data = generated(rows, sizes, seed=1)
    times = [time.perf_counter()]
    decision = plan(schema, words, epsilon=1, neighbours="add-remove", strategy=strategy).count
    decision.errors.total_variance(exact=True)
    times.append(time.perf_counter())
    measurement = measure(decision, open_source(data))
    times.append(time.perf_counter())
    (form,) = decision.workload.forms
    table = Release.of(Plan.of_counts(decision), {"count": measurement}).table(form.word)
    times.append(time.perf_counter())
    laps = dict(zip(("plan", "measure", "recover"), np.diff(times).tolist(), strict=True))
    return {"answers": table.values.size, **laps}


def plain(words, sizes):
    """The number of answers, and seconds for the same steps with dense matrices."""
    rng = np.random.default_rng(1)
    kinds = [part.partition("(")[0] for part in words.split("*")]
    x = rng.integers(0, 100, int(np.prod(sizes))).astype(float)
    start = time.perf_counter()
    S = np.ones((1, 1))
    Q = np.ones((1, 1))
    for n, kind in zip(sizes, kinds, strict=True):
        S, Q = np.kron(S, haar(n)), np.kron(Q, queries(n, kind))
    sensitivity = np.abs(S).sum(axis=0).max()
    inverse = np.linalg.pinv(S)
    deviations = np.sqrt(2 * sensitivity**2 * ((Q @ inverse) ** 2).sum(axis=1))
    answers = Q @ (inverse @ (S @ x + rng.laplace(scale=sensitivity, size=len(S))))
    assert len(answers) == len(deviations)
    return len(answers), time.perf_counter() - start


def haar(n):
    """The sum, and the difference of the halves of every node of a binary tree."""
    leaves = 1 << (n - 1).bit_length()
    rows, span = [np.ones(leaves)], leaves
    while span > 1:
        for at in range(0, leaves, span):
            row = np.zeros(leaves)
            row[at : at + span // 2], row[at + span // 2 : at + span] = 1, -1
            rows.append(row)
        span //= 2
    return np.array(rows)[:, :n]


def queries(n, kind):
    k = np.arange(n)
    if kind == "prefix":
        return (k <= k[:, None]).astype(float)
    low, high = np.triu_indices(n)
    return ((low[:, None] <= k) & (k <= high[:, None])).astype(float)


if __name__ == "__main__":
    main()
