"""Choosing cuboids: the `bmax` selection over all 2^d candidate tables, epsilon (squared numbers of tables).

`plain` is the paper's greedy with a matrix of all pairs (numpy, gains counted anew in each step), for every distinct
magnification; the matrix limits it to small lattices, where `ratio` is its time over ours in the same run.
"""

from __future__ import annotations

import time

import numpy as np

ADULT8 = (9, 16, 7, 15, 6, 5, 2, 2)
CASES = (
    ("Adult-8", ADULT8, "1..3-way", True),
    ("10 binary", (2,) * 10, "cube", True),
    ("Ding's 10 dimensions", (9, 16, 7, 15, 6, 5, 2, 2, 4, 4), "cube", True),
    ("16 binary", (2,) * 16, "1..3-way", False),
    ("16 binary", (2,) * 16, "cube", False),
)


def main(cases=CASES):
    from hushcube import Attribute, Schema, Workload
    from hushcube.strategies.search.coverage import coverage_of
    from hushcube.strategies.search.cuboids import bound_maximum

    rows = []
    for case, sizes, words, compare in cases:
        schema = Schema(tuple(Attribute(name=f"a{i}", codes=n) for i, n in enumerate(sizes)))
        masks = sorted(sum(1 << i for i in m) for m in Workload.parse(words, schema).marginals)
        start = time.perf_counter()
        found = bound_maximum(coverage_of(masks, sizes, most_cells=10**8), power=2)
        seconds = time.perf_counter() - start
        row = {"case": case, "workload": words, "cuboids": len(masks), "candidates": 2 ** len(sizes)}
        row |= {"tables": len(found.tables), "largest_variance": 2 * found.worst(2), "seconds": seconds}
        if compare:
            start = time.perf_counter()
            value = plain(masks, sizes)
            row |= {"plain": time.perf_counter() - start}
            row["ratio"] = row["plain"] / seconds
            if value != found.worst(2):
                row["plain_variance"] = 2 * value
        rows.append(row)
        print({k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()}, flush=True)
    return rows


def plain(masks, sizes):
    """The least s² max mag over greedy covers, from the matrix of all magnifications."""
    cells = np.array([np.prod([n for i, n in enumerate(sizes) if c >> i & 1]) for c in range(2 ** len(sizes))])
    asked, every = np.array(masks), np.arange(2 ** len(sizes))
    inside = (asked[:, None] & ~every) == 0
    mag = np.where(inside, cells / cells[asked][:, None], np.inf)
    best = np.inf
    for threshold in np.unique(mag[inside]):
        serves = mag <= threshold
        left, chosen = np.ones(len(asked), bool), []
        while left.any():
            chosen.append(int(np.argmax(serves[left].sum(axis=0))))
            left &= ~serves[:, chosen[-1]]
        best = min(best, len(chosen) ** 2 * mag[:, chosen].min(axis=1).max())
    return int(best)


if __name__ == "__main__":
    main()
