"""Tables at nested levels: counted and given their noise as marginals are, for they are plain tables."""

from __future__ import annotations

from hushcube.designs import LatticeDesign, LevelDesign
from hushcube.private.kinds import lattice  # noqa: F401 - its way of measuring is the one taken here
from hushcube.private.kinds.base import noisy_values

noisy_values.register(LevelDesign, noisy_values.dispatch(LatticeDesign))
