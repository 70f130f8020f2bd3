"""What a release will hold in memory, known from its plan alone: what cannot fit is refused before anything is spent.

    measuring     8 bytes for every noisy integer; for the largest set the exact table and its noise, and beside them
                  its transform, or the next set, which is counted meanwhile
    recovering    the noisy integers, the coefficients of all residual spaces where least squares pools several sets,
                  and the largest table asked for, at several stages of its transform

It is what is held at least; tables themselves stream to disk.
"""

from __future__ import annotations

import math
import os
import re
import resource
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import numpy as np

from hushcube.designs.design import Design
from hushcube.errors import BadInput, TooLarge
from hushcube.lattice.basis import dimensions

VARIABLE: Final = "HUSHCUBE_MEMORY"
"""The environment variable that says how much memory a release will have, where it is not this machine's."""
_NUMBER: Final = 8
_DRAWN: Final = 16
_TRANSFORMED: Final = 16
_ANSWERED: Final = 24
"""Bytes for each cell of the largest table, beside what is kept: while noise is drawn, more where the table is
transformed, and while it is answered."""
_GROUPS: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def needed(design: Design) -> int:
    """Bytes that a release of the plan holds at least."""
    kept = sum(map(math.prod, design.shapes))
    sizes = np.array(design.schema.sizes, np.float64)
    drawn = max((sizes[group].prod(axis=1).max(initial=0.0) for group in design.counted), default=0.0)
    pooled = 0.0
    if design.pools_sets:
        pooled = dimensions(design.request.spaces).sum()
    answered = design.request.marginals.cells.max()
    plain = design.counted_tables
    ahead = _TRANSFORMED if plain is None else _NUMBER * (plain > 1)
    return _NUMBER * kept + int(max((_DRAWN + ahead) * drawn, _NUMBER * pooled + _ANSWERED * answered))


def problem(plans: Iterable[Design]) -> TooLarge | None:
    """Why plans that are carried out together do not fit, or None where they do."""
    amount, limit = sum(map(needed, plans)), available()
    if amount <= limit:
        return None
    fix = f"ask for fewer or smaller tables, or set {VARIABLE} (such as 64GB) to what the release will have"
    return TooLarge("memory", amount // 10**6, limit // 10**6, fix, unit="MB")


def available() -> int:
    """Bytes that a process may hold here, or that the environment declares."""
    if declared := os.environ.get(VARIABLE):
        return _parse(declared)
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    limits += [] if most == resource.RLIM_INFINITY else [most]
    for path in _GROUPS:
        try:
            limits.append(int(path.read_text()))
        except (OSError, ValueError):  # not there, or without a limit
            continue
    return min(limits)


def _parse(text: str) -> int:
    """Bytes.

    >>> _parse("1.5GB"), _parse("200 mb")
    (1500000000, 200000000)
    """
    found = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,9})?)\s*([KMGT]?)B?\s*", text, re.IGNORECASE)
    if found is None or not float(found[1]):
        raise BadInput(VARIABLE, "is not an amount of memory", "write for example 16GB")
    return int(float(found[1]) * 1000 ** " KMGT".index(found[2].upper() or " "))
