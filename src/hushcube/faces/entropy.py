"""Tables without negative cells that have an opinion: likelihood and entropy together, order by order.

The unbiased tables are taken as coefficients of residual spaces with their exact variances. Smaller tables are fitted
first; larger ones are guessed from them, and drawn to what was measured as far as that is more than noise
[lattice/guesses.py, lattice/entropy.py]. What is found is brought onto the consistent tables without negative cells by
the projection of the method `local`, which moves it by rounding errors of the fit, or as far as public facts demand.

The noise of a coefficient is taken as normal with its exact variance. Under Gaussian noise that is its law; under
Laplace noise coefficients are sums of many numbers, and nearly normal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from hushcube.designs.answers import Answers
from hushcube.designs.lattice.design import LatticeDesign
from hushcube.faces.local import LocalTables, nonnegative_marginals
from hushcube.faces.target import Target
from hushcube.lattice.entropy import Noisy
from hushcube.lattice.guesses import fit_by_orders
from hushcube.lattice.second_guesses import Earlier
from hushcube.model.arrays import Floats, Marginal
from hushcube.progress import Clock

STAGE: Final = "fitting tables by entropy"
_SHARE: Final = 1e-8  # of the predicted variance: the squared distance of the projection at which it is content


def entropy_tables(
    design: LatticeDesign,
    answers: Answers,
    clock: Clock,
    *,
    facts_about: Sequence[Marginal] = (),
    fixed: Sequence[Floats] | None = None,
    known: Mapping[int, Floats] | None = None,
    earlier: Earlier | None = None,
    known_second: Mapping[int, Floats] | None = None,
) -> tuple[LocalTables, dict[str, Any]]:
    """The tables, and what is reported of them.

    `fixed` has the cells that public facts about some tables fix; `known` misfits from guesses, by order, and
    `known_second` those from second guesses, by an `earlier` edition.
    """
    unbiased = Target.of(design, answers)
    noisy = Noisy(unbiased.coefficients, design.errors.space_variances(exact=True))

    def goes_on(share: float) -> bool:
        clock.show(STAGE, share)
        return not clock.over  # the tables so far will do

    found = fit_by_orders(unbiased.tables, noisy, goes_on, known, earlier, known_second)
    near = Target.of(design, found.tables, facts_about)
    variance = max(design.errors.total_variance(exact=True), 1e-6)
    local = nonnegative_marginals(near, clock, fixed=fixed, tolerance=_SHARE * variance)
    problem = found.fit.problem
    made = [local.tables(batch.rows, batch.shape) for batch in problem.to.family.batches]
    late = {"stopped": "time"} if clock.over else {}
    moved = problem.to.join(made) - problem.to.spread(problem.to.join(found.fit.coefficients.blocks))
    report = {"found_by": "entropy", "steps": found.fit.steps, **late}
    proof = {"share_of_noise": found.fit.share_of_noise(made)}
    return local, {**report, "certificate": proof, "rms_from_fit": float(np.sqrt((moved**2).mean()))}
