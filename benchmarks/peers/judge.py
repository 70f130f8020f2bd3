"""How far the tables of a library are from the exact counts, and what it took beside hushcube."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from benchmarks.peers.one_job import Job


def judge(job: Job, answers: Sequence[np.ndarray]) -> dict[str, float]:
    """Mean and largest absolute error of a cell, and the root of the mean squared error, over all cells of a job."""
    if len(answers) != len(job.tables):
        raise ValueError(f"{len(answers)} tables came back, and {len(job.tables)} were asked for")
    off = []
    for table, found in zip(job.tables, answers, strict=True):
        if found.shape != job.shape(table) or not np.isfinite(found).all():
            raise ValueError(f"the table of {table} is not one of finite numbers of shape {job.shape(table)}")
        off.append((found - job.exact(table)).ravel())
    errors = np.abs(np.concatenate(off))
    return {"mean_error": float(errors.mean()), "max_error": float(errors.max()), "rmse": rmse(errors)}


def rmse(errors: np.ndarray) -> float:
    """The root of the mean of squares."""
    return math.sqrt(float((errors**2).mean()))


RATIOS = {"seconds": "time_ratio", "peak_GB": "memory_ratio", "mean_error": "mean_error_ratio", "rmse": "rmse_ratio"}


def compared(rows: Sequence[dict], yardstick: str) -> list[dict]:
    """Rows of one job, each with its figures over those of the yardstick; what was skipped has a reason only."""
    base = next(row for row in rows if row["tool"] == yardstick)
    return [
        row | ({} if "skipped" in row else {name: row[key] / base[key] for key, name in RATIOS.items()}) for row in rows
    ]
