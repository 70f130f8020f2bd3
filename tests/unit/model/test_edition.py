"""Earlier editions as a plan holds them."""

import base64
import zlib

import numpy as np
import pytest

from helpers import make_schema
from hushcube.errors import BadInput, TooLarge
from hushcube.model.edition import MOST_CELLS, Edition

SCHEMA = make_schema((2, 3, 2))
TABLES = {(0, 1): np.arange(6.0).reshape(2, 3) / 4, (2,): np.array([7.0, -1.0])}


def test_tables_are_written_and_read_in_tenths():
    edition = Edition.of(SCHEMA, TABLES, "a" * 64)
    assert edition.marginals == ((2,), (0, 1)) and edition.cells == 8
    assert edition.tables[(2,)].tolist() == [7.0, 0.0], "no cell is negative"
    assert edition.tables[0, 1].tolist() == [[0.0, 0.2, 0.5], [0.8, 1.0, 1.2]]
    raw = edition.to_dict()
    assert raw["tables"] == [["a2"], ["a0", "a1"]]
    again = Edition.from_dict(raw, SCHEMA)
    assert again == edition and again.to_dict() == raw
    assert repr(edition) == "Edition(a2, a0*a1: 8 cells)" and str(edition) == "a" * 12


def packed(whole):
    return base64.b64encode(zlib.compress(whole)).decode()


@pytest.mark.parametrize(
    "changes",
    [
        {"tenths": "?"},
        {"tenths": packed(b"")},
        {"tenths": packed(bytes(32)) + "AAAA"},
        {"tenths": packed(bytes(33))},
        {"tenths": packed(bytes(10**7)), "why": None},
        {"tenths": 7},
        {"plan_digest": "a"},
        {"plan_digest": 7},
        {"tables": [["a0", "a1"], ["a2"]]},
        {"tables": [["a2"], ["a2"]]},
        {"tables": []},
        {"tables": [["a9"]]},
        {"more": 1},
    ],
)
def test_what_is_damaged_is_refused(changes):
    raw = Edition.of(SCHEMA, TABLES, "a" * 64).to_dict() | {k: v for k, v in changes.items() if k != "why"}
    with pytest.raises(BadInput):
        Edition.from_dict(raw, SCHEMA)
    with pytest.raises(BadInput):
        Edition.from_dict([raw], SCHEMA)


def test_too_many_cells_are_refused_before_any_memory_is_taken():
    large = make_schema((3000, 3000))
    with pytest.raises(TooLarge, match=f"{MOST_CELLS:,}"):
        Edition.of(large, {(0, 1): np.zeros(1)}, "a" * 64)
    raw = {"plan_digest": "a" * 64, "tables": [["a0", "a1"]], "tenths": packed(b"")}
    with pytest.raises(TooLarge):
        Edition.from_dict(raw, large)
