"""Rerun the papers' experiments: `python -m benchmarks.reproduce [FIGURE ...] [--quick]`."""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # processes run side by side, and times are those of one core

from benchmarks.reproduce import barak, ding, ding_times, xiao, yaroslavtsev, yaroslavtsev_theory, yaroslavtsev_times
from benchmarks.reproduce.data import present
from benchmarks.reproduce.page import Page
from benchmarks.reproduce.points import Kept, measured

ROOT = Path(__file__).resolve().parent.parent.parent
PAPERS = {
    "Yaroslavtsev et al. 2013, accurate and efficient private release of datacubes": (
        *yaroslavtsev_theory.FIGURES,
        *yaroslavtsev.FIGURES,
        *yaroslavtsev_times.FIGURES,
    ),
    "Ding et al. 2011, differentially private data cubes": (*ding.FIGURES, *ding_times.FIGURES),
    "Xiao et al. 2011, iReduct": xiao.FIGURES,
    "Barak et al. 2007, privacy, accuracy, and consistency too": barak.FIGURES,
}
FILES = ("adult8.parquet", "nltcs.parquet")
FIGURES = {figure.name: figure for figures in PAPERS.values() for figure in figures}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure figures and write their sections of the page."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.reproduce", description=__doc__)
    options.add_argument("figure", nargs="*", help=f"all unless given: {', '.join(FIGURES)}")
    options.add_argument("--quick", action="store_true", help="a few tiny points, written into a temporary folder")
    options.add_argument("--out", type=Path, help="a folder for the page and its pictures in place of docs/")
    options.add_argument("--keep", type=Path, help="a folder for what was measured, in place of build/reproduce")
    options.add_argument("--fresh", action="store_true", help="measure again what is kept")
    given = options.parse_args(arguments)
    for name in given.figure:
        if name not in FIGURES:
            options.error(f"figure {name!r} is unknown; choose among {', '.join(FIGURES)}")
    out = given.out or (Path(tempfile.mkdtemp(prefix="reproduce-")) if given.quick else ROOT / "docs")
    page = Page(out / "reproduction.md", out / "pictures" / "reproduction", PAPERS)
    for name in given.figure or FIGURES:
        file = None if given.quick else (given.keep or _usual()) / f"{name}.jsonl"
        if file is not None and given.fresh:
            file.unlink(missing_ok=True)
        start = time.perf_counter()
        rows = measured(FIGURES[name], Kept(file), quick=given.quick)
        for claim in page.add(FIGURES[name], rows):
            print(f"  {claim.says}: {claim.verdict} ({claim.measured})", flush=True)
        print(f"{name}: {len(rows)} points, {time.perf_counter() - start:.1f} s", flush=True)
    print(f"wrote {out / 'reproduction.md'}")


def _usual() -> Path:
    """Where points are kept: those of stand-ins apart from those of the data."""
    return ROOT / "build" / "reproduce" / ("data" if all(map(present, FILES)) else "stand-ins")


if __name__ == "__main__":
    main()
