"""How each kind of plan turns noisy integers into tables; importing this package makes all of them known."""

from __future__ import annotations

from hushcube.recover.kinds import lattice, levels, matrix, repeated, sketch, tree
from hushcube.recover.kinds.base import Answers, FormAnswers, answers

__all__ = ["Answers", "FormAnswers", "answers", "lattice", "levels", "matrix", "repeated", "sketch", "tree"]
