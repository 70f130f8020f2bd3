"""Measure Walsh-Fourier coefficients of bit-coded attributes; answer marginals by the inverse transform.

chi_b for every b whose attributes lie inside a marginal asked for; rows are +-1, so C_b = 1.
An answer on A has 2^bits(A) codes, of which cells(A) are real; phantom codes are dropped:

    Var(cell of A) = 4^-bits(A) sum_{b inside A} variance_b                           [Barak et al. 2007, Theorem 6]
    s_b = sum_{A contains b} a_A cells(A) 4^-bits(A)                              [Yaroslavtsev et al. 2013, F, F+]

s_b depends on b's attributes alone, so budgets go to sets of attributes B, each with prod_B (2^k - 1) coefficients.
Departs from the papers: real cells are weighted, not codes; least squares knows that phantom codes are empty and
makes the tables agree (the truncated inverse transform does not, where a size is not a power of two).
"""

from hushcube.designs.design import Budgets, Design, Recovery
from hushcube.designs.request import MAX_TABLE_CELLS, Request
from hushcube.lattice.basis import FOURIER, with_dimension
from hushcube.lattice.hadamard import padded
from hushcube.strategies.strategy import Strategy


class Fourier(Strategy):
    """The coefficients of the workload's downward closure."""

    name = "fourier"
    measures = "Fourier coefficients of bits"

    def accepts(self, request: Request) -> str | None:
        """Refuse where bit-coding makes a table too large."""
        codes = float(request.marginals.product([padded(n) for n in request.schema.sizes]).max())
        if codes > MAX_TABLE_CELLS:
            return f"a bit-coded marginal has {codes:.3g} codes, more than {MAX_TABLE_CELLS:,}"
        return None

    def plan(self, request: Request, budgets: Budgets, recovery: Recovery) -> Design:
        """One measured set for each set of attributes in the closure that has coefficients of its own."""
        measured = with_dimension(request.spaces)
        codes = request.marginals.product([padded(n) for n in request.schema.sizes])
        rows = measured.product(FOURIER.per_axis(FOURIER.rows, measured.sizes))
        s = rows * request.marginals.sum_over_supersets(measured, request.energies / codes**2)
        return self.decide(request, budgets, recovery, FOURIER, measured, s)
