"""How each kind of plan turns noisy integers into tables; importing this package makes all of them known."""

from __future__ import annotations

from hushcube.recover.kinds import lattice
from hushcube.recover.kinds.base import Answers, answers

__all__ = ["Answers", "answers", "lattice"]
