"""Raw damage of published folders, in its short form."""

import pytest

from audit.damage import KINDS, make, missed
from hushcube.bundle.verify import verify


@pytest.mark.parametrize("kind", KINDS)
def test_every_damage_is_found_and_nothing_else_happens(kind, tmp_path):
    make(tmp_path / kind, kind)
    number, unnoticed = missed(tmp_path / kind, "short")
    assert number > 100 and not unnoticed
    assert verify(tmp_path / kind).holds
