"""Compute the tables of docs/comparison.md with the product's own planners and write them there: `make tables`."""

from __future__ import annotations

import os
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from benchmarks import per_marginal, totals
from benchmarks.__main__ import table

PAGE = Path(__file__).parent.parent / "docs" / "comparison.md"
MARKS = ("<!-- total variances: written by `make tables` -->", "<!-- noise per marginal: written by `make tables` -->")
END = "<!-- end -->"


def sections(tables):
    """Tables under headings of their own."""
    return "\n\n".join(f"### {title[0].upper()}{title[1:]}\n\n{table(rows)}" for title, rows in tables.items())


def written(page, found):
    """The page with each part between its mark and the end renewed."""
    for mark, tables in zip(MARKS, found, strict=True):
        head, _, rest = page.partition(mark)
        page = f"{head}{mark}\n\n{sections(tables)}\n\n{END}{rest.partition(END)[2]}"
    return page


def main():
    start = time.perf_counter()
    with ProcessPoolExecutor(2) as processes:  # the two halves share nothing
        halves = [processes.submit(half.main) for half in (totals, per_marginal)]
        found = [half.result() for half in halves]
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")
    print(f"wrote {PAGE.name} in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
