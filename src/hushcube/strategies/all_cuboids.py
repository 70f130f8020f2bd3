"""Measure every cuboid that is asked for: K_all, the paper's second baseline.

Var(A) = 2 |L|²/eps² with even budgets, however large A is.                                [Ding et al. 2011, Theorem 2]
These are the tables of `workload` [Yaroslavtsev et al. 2013, Q] under the paper's name, which is `All` there: the word
`all` compares strategies on the command line. `auto` looks at `workload`.
"""

from __future__ import annotations

from hushcube.strategies.workload import WorkloadTables


class AllCuboids(WorkloadTables):
    """The cuboids asked for."""

    name = "all-cuboids"
    measures = "the tables asked for, as K_all of Ding et al."
    automatic = False
