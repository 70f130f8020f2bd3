"""How each kind of plan turns exact counts into noisy integers; importing this package makes all of them known."""

from __future__ import annotations

from hushcube.private.kinds import lattice, levels, matrix, sketch, tree
from hushcube.private.kinds.base import Report, noisy_values
from hushcube.private.kinds.matrix import row_sums

__all__ = ["Report", "lattice", "levels", "matrix", "noisy_values", "row_sums", "sketch", "tree"]
