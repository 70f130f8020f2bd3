"""What the noise alone promises before any is drawn: theorems of Barak et al. 2007 and Ding et al. 2011, corrected.

How far can the marginals of the rounded table be from the truth? With probability 1 - delta no noisy number is off by
more than its reach: sum_r P(|noise_r| > u d_r) <= delta, with d_r = 1 or the noise's deviation. The true table is a
solution at a distance of at most u, so the program's own is too, and the two differ by at most 2 u d_r in each measured
number. For every marginal A, at once:

    Theorem 7    ||C^A (x - w')||_1 <= cells(A)/codes(A)  sum_{b inside A} 2 u d_b    +    rank/2                  (12)
    Theorem 8    ||C^A (x - w')||_1 <= min_{measured S >= A}  cells(S) 2 u d_S        +    rank/2                  (13)

On bits with equal budgets and continuous noise of scale s, u = s ln(|B|/delta) and (12) reads

    2^|A| 4 |B| ln(|B|/delta) / epsilon + |B|/2          replace-one, s = 2|B|/epsilon; half the noise for add-remove.

The printed theorems have 8 for 4 (the noise already keeps to s ln(|B|/delta)) and |B| for |B|/2 (a nearest whole number
is never more than a half away). Theorem 8's sum of cells in the rounding is corrected to the rank of the marginals:
columns of non-zero cells at a vertex are independent. |B| is the closure's; the introduction's |C| is too small.
The bounds (12) hold for all tables inside those asked for as well, and are the smaller the fewer attributes these have.
The noise is the plan's own: rates may differ, and P(|X| > t) is that of discrete Laplace noise, exactly,

    P(|X| >= m) = 2 p^m / (1 + p),  p = exp(-rate),       at most exp(-rate (m - 1/2)),

or 2 exp(-m²/2 variance) for discrete Gaussian noise, which is sub-Gaussian     [Canonne, Kamath, Steinke 2020, 17].

`sharper` is not in the paper: by Parseval and Cauchy-Schwarz the noise's part of (12) falls to

    sqrt(cells(A)/codes(A) sum_{b inside A} (2 u d_b)²),      2^(|A|/2) 2 u on bits in place of 2^|A| 2 u.

The consistent tables y that are nearest to the measured ones, in L-infinity or L1, are no further from them than the
truth c is. With E the number of measured cells, over all of them                                  [Ding et al. 2011]

    Theorem 8    linf    sum |y - c| <= 2 u E           equal scales s: u = s ln(E/delta), s = |L_pre|/epsilon
    Theorem 9    l1      sum |y - c| <= 2 ||noise||_1   at most twice a quantile of the norm

The printed proof of Theorem 8 has |E_pre| for |L_pre| in the scale, and the text two relations between delta and eta:
delta = E exp(-eta/2) is the right one. Theorem 9's (eta/2 exp(1 - eta/2))^E is Chernoff's bound of a Gamma tail, in
place of which the quantile itself is taken; epsilon <= 1 is not needed.

||noise||_1 is a sum of E exponentials of scale s, Gamma(E, s), and not one exponential (Barak et al., 4.3). The
quantile of

    equal Laplace rates r      Gamma(E, 1/r) + E/2          (a discrete |X| is never above an exponential plus a half)
    unequal Laplace rates      the least of that for the smallest rate, and of Chernoff's bound:
                               P(sum > x) <= exp(-h x) prod_b r_b/(r_b - h), any h below all rates
    Gaussian noise             sqrt(2 V (E ln 2 + ln(1/delta))), V the sum of the variances        (Chernoff, |X|)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, Literal

import numpy as np

from hushcube.designs.design import Design
from hushcube.designs.lattice.design import LatticeDesign
from hushcube.errors import BadInput
from hushcube.lattice.basis import FOURIER, MARGINAL, Basis, rank
from hushcube.lattice.family import Family
from hushcube.lattice.hadamard import padded
from hushcube.model.arrays import Floats
from hushcube.model.noise import GAUSSIAN, LAPLACE

Units = Literal["equal", "deviation"]
DELTA: Final = 0.05  # the chance that a bound that is stated fails
_LISTED: Final = 1000  # tables whose bounds are stated one by one
_MANY: Final = 20_000  # terms of a sum from which on Chernoff's bound of its tail is as good as the tail


@dataclass(frozen=True)
class ErrorBound:
    """A promise of a theorem about a face: how much the absolute errors of its cells add up to at most.

    >>> print(ErrorBound("Ding et al. 2011, Theorem 8", "consistent:norm=linf", {"the 12 measured cells": 1500}))
    95% bound on the sum of errors with consistent:norm=linf: 1,500 (the 12 measured cells); Ding et al. 2011, Theorem 8
    """

    theorem: str
    face: str
    """The word that asks for the face."""
    most: Mapping[str, int]
    """The bound over some cells, or over each table of some number of attributes."""
    tables: Mapping[str, int] = field(default_factory=dict)
    """The bound over each table by itself, unless there are very many."""
    probability: float = 1 - DELTA

    def __str__(self) -> str:
        most = ", ".join(f"{bound:,} ({cells})" for cells, bound in self.most.items())
        return f"{self.probability:.0%} bound on the sum of errors with {self.face}: {most}; {self.theorem}"

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, for plans and manifests."""
        own = {"theorem": self.theorem, "face": self.face, "probability": self.probability, "most": dict(self.most)}
        return {**own, "tables": dict(self.tables)} if self.tables else own


def error_bounds(design: Design) -> Iterator[ErrorBound]:
    """What the theorems promise for a plan, whose noise must not depend on the data."""
    if not isinstance(design, LatticeDesign) or design.is_outcome or not np.isfinite(design.budgets).any():
        return
    if design.basis.holds_cells and design.law is LAPLACE:
        cells = f"the {round(float(design.numbers[np.isfinite(design.budgets)].sum())):,} measured cells"
        yield ErrorBound("Ding et al. 2011, Theorem 8", "consistent:norm=linf", {cells: ding_8(design, DELTA)})
        yield ErrorBound("Ding et al. 2011, Theorem 9", "consistent:norm=l1", {cells: ding_9(design, DELTA)})
    if design.basis.has_inverse:
        inside = design.request.spaces
        errors = [math.ceil(error) for error in theorem_7(design, DELTA, tables=inside).error.tolist()]
        ends = pairwise(inside.starts.tolist())
        most = {f"a {k}-way table": max(errors[a:b]) for k, (a, b) in enumerate(ends) if a < b}
        words = map(design.schema.describe, inside) if len(inside) <= _LISTED else ()
        tables = dict(zip(words, errors, strict=False))
        yield ErrorBound("Barak et al. 2007, Theorem 7", "integral:method=barak", most, tables)


def ding_8(design: LatticeDesign, delta: float) -> int:
    """For the norm `linf`: what the errors of all measured cells add up to at most."""
    _check(design, delta, MARGINAL, "Theorem 8 of Ding et al.", "workload")
    return math.ceil(design.numbers @ _reach(design, delta, "equal")[1])


def ding_9(design: LatticeDesign, delta: float) -> int:
    """For the norm `l1`: the same."""
    _check(design, delta, MARGINAL, "Theorem 9 of Ding et al.", "workload")
    return 2 * noise_norm(design, 1 - delta)


@dataclass(frozen=True, eq=False)
class Bound:
    """With the chosen probability, all marginals' errors (sums of absolute errors of cells) are within `error`."""

    reach: float  # u: no noisy number is further off than this many units; nor is the program's distance larger
    noise: Floats  # the part of the noise, for each marginal
    sharper: Floats  # the same by Cauchy-Schwarz, never larger
    rounding: float  # how many people rounding moves at most

    @property
    def error(self) -> Floats:
        """The theorem's bound for each marginal."""
        return self.noise + self.rounding

    @property
    def sharper_error(self) -> Floats:
        """The smaller bound for each marginal."""
        return self.sharper + self.rounding


def theorem_7(design: LatticeDesign, delta: float, *, weights: Units = "equal", tables: Family | None = None) -> Bound:
    """For the objective `max-coefficient`, on Fourier coefficients; for the tables asked for, or any inside them."""
    _check(design, delta, FOURIER, "theorem 7", "fourier")
    marginals, rows = tables or design.request.marginals, design.numbers
    reach, off = _reach(design, delta, weights)
    shares = marginals.cells / marginals.product([padded(n) for n in design.schema.sizes])
    noise = shares * marginals.sum_over_subsets(design.measured, rows * off)
    sharper = np.sqrt(shares * marginals.sum_over_subsets(design.measured, rows * off**2))
    return Bound(reach, noise, sharper, rank(design.measured) / 2)


def theorem_8(design: LatticeDesign, delta: float, *, weights: Units = "equal") -> Bound:
    """For the objective `max-marginal`, on measured tables."""
    _check(design, delta, MARGINAL, "theorem 8", "workload")
    marginals, measured = design.request.marginals, design.measured
    reach, off = _reach(design, delta, weights)
    noise = np.full(len(marginals), np.inf)
    for pair in measured.inclusions(marginals):
        np.minimum.at(noise, pair.small, (measured.cells * off)[pair.big])
    return Bound(reach, noise, noise, rank(measured) / 2)


def _check(design: LatticeDesign, delta: float, basis: Basis, name: str, strategy: str) -> None:
    if not 0 < delta < 1:
        raise BadInput("delta", "is not a probability between 0 and 1", "use 0.05, say")
    if design.basis is not basis:
        raise BadInput("strategy", f"{name} is about {basis.name} plans", f"plan with the strategy `{strategy}`")


def _reach(design: LatticeDesign, delta: float, weights: Units) -> tuple[float, Floats]:
    """u, and 2 u d for each measured set, zero where the set is public."""
    noisy = np.isfinite(design.budgets)
    units = np.sqrt(design.errors.set_variances(exact=True)) if weights == "deviation" else np.ones(len(noisy))
    units = np.where(noisy, np.maximum(units, 1e-6 * units.max(initial=1e-6)), 0.0)
    if not noisy.any():
        return 0.0, units
    (budgets, d), at = np.unique(np.stack([design.budgets[noisy], units[noisy]]), axis=1, return_inverse=True)
    counts = np.bincount(at.reshape(-1), design.numbers[noisy])
    # the expected number of noisy numbers that are further off than u units
    reach = _quantile(lambda u: float(counts @ design.law.tail(budgets, np.floor(u * d) + 1)), delta, 1.0)
    reach = float(math.floor(reach)) if weights == "equal" else reach  # noise is whole numbers
    return reach, 2 * reach * units


def _quantile(tail: Callable[[float], float], most: float, guess: float) -> float:
    """The least x at which a falling function is at most `most`, rounded up."""
    low, high = 0.0, guess
    while tail(high) > most:
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle) > most else (low, middle)
    return high


def noise_norm(design: LatticeDesign, probability: float) -> int:
    """What the absolute values of all noise add up to at most, with the given probability."""
    noisy = np.isfinite(design.budgets)
    if not noisy.any():
        return 0
    rates, at = np.unique(design.budgets[noisy], return_inverse=True)
    rows = np.bincount(at, design.numbers[noisy])
    number, delta = round(float(rows.sum())), 1 - probability
    if design.law is GAUSSIAN:
        variances = np.maximum(design.errors.set_variances(exact=True), 0.5 / design.budgets)[noisy]
        variance = float(design.numbers[noisy] @ variances)
        return math.ceil(math.sqrt(2 * variance * (number * math.log(2) - math.log(delta))))
    smallest = float(rates.min())
    amount = gamma_quantile(number, probability) / smallest
    if rates.max() > smallest:  # Chernoff: any h gives a valid bound
        tried = (smallest * np.linspace(0.001, 0.999, 999)).tolist()
        bounds = ((-math.log(delta) - float(rows @ np.log1p(-h / rates))) / h for h in tried)
        amount = min(amount, *bounds)
    return math.ceil(amount + number / 2)


def gamma_tail(shape: int, x: float) -> float:
    """P(Gamma(shape, 1) > x) for a whole shape: fewer than `shape` events of a Poisson process by time x."""
    if x <= 0:
        return 1.0
    logs = np.append(0.0, np.cumsum(math.log(x) - np.log(np.arange(1.0, shape)))) - x
    top = float(logs.max())
    return min(math.exp(top) * float(np.exp(logs - top).sum()), 1.0) if top > -700 else 0.0


def gamma_quantile(shape: int, probability: float) -> float:
    """The x with P(Gamma(shape, 1) <= x) = probability, rounded up; or a little more where that takes long."""
    if shape > _MANY:  # P(Gamma > n t) <= (t exp(1 - t))^n for t >= 1                    [Ding et al. 2011, Lemma 2]
        beyond = _quantile(lambda x: math.exp(shape * (math.log1p(x) - x)), 1 - probability, 1.0)
        return shape * (1 + beyond)
    return _quantile(lambda x: gamma_tail(shape, x), 1 - probability, 2.0 * shape)
