"""Measure the base cuboid: K_base, the paper's first baseline.

One table of all dimensions, Var(A) = 2/eps² prod_{i not in A} n_i.                        [Ding et al. 2011, Theorem 3]
It is the table of `identity` [Yaroslavtsev et al. 2013, I] under the paper's name; `auto` looks at that one.
"""

from __future__ import annotations

from hushcube.strategies.identity import Identity


class Base(Identity):
    """The base cuboid alone."""

    name = "base"
    measures = "the full table, as K_base of Ding et al."
    automatic = False
