"""How each kind of plan turns noisy integers into tables; importing this package makes all of them known."""

from __future__ import annotations

from hushcube.designs import repeated_answers as repeated
from hushcube.designs.answers import Answers, FormAnswers, answers
from hushcube.designs.lattice import answers as lattice
from hushcube.designs.levels import answers as levels
from hushcube.designs.matrix import answers as matrix
from hushcube.designs.sketch import answers as sketch
from hushcube.designs.tree import answers as tree

__all__ = ["Answers", "FormAnswers", "answers", "lattice", "levels", "matrix", "repeated", "sketch", "tree"]
