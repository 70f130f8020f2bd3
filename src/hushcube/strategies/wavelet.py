"""Measure Haar wavelets of ordered attributes: what ranges are made of, in logarithmically many groups.

Along an attribute with ranges the rows are the sum, and for every node of a binary tree the difference of its halves:
1, -1 and 0. Every column has one entry in each level, so a level is a group, and a product over attributes has
prod (log2 n_i + 1) groups, each of which costs its budget.    [Xiao et al. 2010; Yaroslavtsev et al. 2013, section III]
A range touches at most two coefficients of a level: the variance of any range grows with log³ n, not with its length.

The rows are a basis, orthogonal: the three recoveries coincide where one table carries all ranges.
Other attributes are measured in cells. Sizes are filled up to powers of two with cells that hold nobody.
"""

from hushcube.designs.design import Budgets, Design, Recovery
from hushcube.designs.request import Request
from hushcube.lattice.trees import Tree
from hushcube.strategies.hierarchy import Trees, ranged, solved


class Wavelet(Trees):
    """Haar coefficients along the attributes with ranges."""

    name = "wavelet"
    measures = "Haar wavelets of ordered attributes"

    def plan(self, request: Request, budgets: Budgets, recovery: Recovery) -> Design:
        """One measured set for each level of each attribute with ranges."""
        trees = {i: Tree.with_fan_out(request.schema.sizes[i], 2) for i in ranged(request)}
        return self.measure(request, budgets, recovery, lambda rule: solved(request, rule, trees, wavelet=True))
