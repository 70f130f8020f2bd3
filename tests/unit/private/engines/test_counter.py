"""Rows are kept while they are few; memory is bounded by the tables where rows are many, known beforehand or not."""

import numpy as np
import pytest

from hushcube.private.engines import counting
from hushcube.private.engines.counting import CoverCounts, RowCounts

SIZES = (8, 8, 8)
WANTED = [np.array([[0, 1], [1, 2]], np.int32)]


def counted(batches, expected, weighted=False):
    """Count batches of 100 rows; the most bytes kept on the way, and the counts."""
    rng = np.random.default_rng(1)
    totals, most = np.zeros((8, 8), np.int64), 0
    under_test = counting.Counter(WANTED, SIZES, expected)
    for _ in range(batches):
        columns = {i: rng.integers(0, 8, 100).astype(np.uint8) for i in range(3)}
        weights = rng.integers(-5, 5, 100) if weighted else None
        under_test.add(columns, 100, weights)
        np.add.at(totals, (columns[0], columns[1]), 1 if weights is None else weights)
        most = max(most, 300 * len(under_test._kept))
    counts = under_test.finish()
    assert (counts.tables(WANTED[0])[0] == totals).all()
    return most, counts


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_rows_beyond_the_size_of_the_tables_are_not_kept(known, weighted, monkeypatch):
    """Tables of 128 cells take 1,024 bytes: allowed, although above the limit, once the rows would take more."""
    monkeypatch.setattr(counting, "KEPT_BYTES", 600)
    monkeypatch.setattr(counting, "HELD_CELLS", 10)
    most, counts = counted(200, 20_000 if known else None, weighted)
    assert isinstance(counts, CoverCounts) and most <= (0 if known else 4 * 1_024)


def test_rows_that_take_less_than_the_tables_are_kept(monkeypatch):
    monkeypatch.setattr(counting, "KEPT_BYTES", 100)
    monkeypatch.setattr(counting, "HELD_CELLS", 10)
    _, counts = counted(3, 300)
    assert isinstance(counts, RowCounts)
