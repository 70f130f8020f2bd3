"""What several test folders share: requests from sizes, an engine in memory, and dense matrices that judge the algebra.

The matrices are built from the definitions (Kronecker products of the rows of a basis), never from `hushcube.lattice`.
"""

import math
from fractions import Fraction
from functools import cache, lru_cache, reduce
from itertools import combinations, product

import numpy as np
from hypothesis import settings

from hushcube.bundle.release import Release
from hushcube.designs import LatticeDesign
from hushcube.designs.design import BUDGETS, RECOVERIES
from hushcube.designs.request import Request
from hushcube.lattice.family import Family
from hushcube.model.attribute import Attribute
from hushcube.model.noise import Measurement, gaussian_variance, laplace_variance
from hushcube.model.privacy import Privacy
from hushcube.model.schema import COUNT, Schema
from hushcube.model.workload import Workload
from hushcube.planning.plan import Plan
from hushcube.planning.question import Question
from hushcube.private.blocks import Noise
from hushcube.private.engines import open_source
from hushcube.private.measure import carry_out
from hushcube.private.noise import SeededEntropy
from hushcube.strategies import ADAPTIVE, REGISTRY, read_strategy

settings.register_profile("hushcube", deadline=None, max_examples=60)
settings.load_profile("hushcube")

ADULT8 = (9, 16, 7, 15, 6, 5, 2, 2)
SMALL_DOMAINS = [(2, 3, 4), (2, 2, 2, 2), (3, 5), (2, 1, 3), (7,)]
LAWS = [{"epsilon": 1}, {"rho": "1/2"}, {"rho": 20}, {"epsilon": 1, "delta": "1e-6"}]
NEIGHBOURS = ["add-remove", "replace-one"]


def names(sizes):
    return [f"a{i}" for i in range(len(sizes))]


def make_schema(sizes):
    return Schema(tuple(Attribute(name=name, codes=n) for name, n in zip(names(sizes), sizes, strict=True)))


def make_request(sizes, words="cube", *, neighbours="add-remove", **privacy):
    return Request(
        Workload.parse(words, make_schema(sizes)), Privacy.of(neighbours=neighbours, **privacy), effort="low"
    )


def question(request, **tried):
    """A request as a plan is asked for it: counts alone, with the strategies to try."""
    return Question(request.schema, request.workload, request.privacy, request.objective, request.effort, **tried)


def applicable(law):
    """The strategies for a guarantee; a sketch's error is more than noise, so that it has tests of its own."""
    request = make_request((2, 2), **law)
    return [name for name, strategy in REGISTRY.items() if name != "sketch" and strategy.accepts(request) is None]


def make_plan(request, strategy, budgets="optimal", recovery="gls"):
    return read_strategy(strategy).plan(request, budgets, recovery)


def adaptive(name, **options):
    """A method for small relative errors, with those of the options that it has; other names stay what they are."""
    return ADAPTIVE[name].filled(**options) if name in ADAPTIVE else name


def every_plan(request, strategies=tuple(name for name in REGISTRY if name != "sketch"), recoveries=RECOVERIES):
    """All variants of the strategies that accept the request; tests that ask for the same ones share them."""
    for name, budgets, recovery in product(strategies, BUDGETS, recoveries):
        if REGISTRY[name].accepts(request) is None:
            yield _shared_plan(request, request.objective, request.effort, name, budgets, recovery)


@lru_cache(maxsize=1024)
def _shared_plan(request, objective, effort, name, budgets, recovery):
    """Requests are equal whatever their objective and effort are, so that both are part of the key."""
    return make_plan(request, name, budgets, recovery)


def hand_plan(request, basis, measured, budgets, *, recovery="gls", proof="direct"):
    """A plan with budgets of one's own, in the order of the measured sets given."""
    family = Family.of(measured, request.schema.sizes)
    ordered = np.empty(len(family))
    ordered[family.ids(measured)] = budgets
    return LatticeDesign(request, "by hand", "optimal", recovery, proof, ordered, basis, family)


def label(plan):
    return f"{plan.strategy} {plan.budget_rule} {plan.recovery} {plan.proof}"


# ---------------------------------------------------------------------------------------------- counting in memory


class Counts:
    sums = {}  # noqa: RUF012 - of no measures; nobody writes to it
    dropped = bad = 0

    def __init__(self, schema, codes):
        self.schema, self.codes, self.rows = schema, np.asarray(codes, dtype=np.int64), len(codes)

    def tables(self, marginals):
        if not marginals.shape[1]:
            return np.full((len(marginals), 1), self.rows, dtype=np.int64)
        shape = self.schema.shape(tuple(marginals[0].tolist()))
        flat = (np.ravel_multi_index(tuple(self.codes[:, i] for i in row), shape) for row in marginals.tolist())
        return np.array([np.bincount(f, minlength=math.prod(shape)).reshape(shape) for f in flat], dtype=np.int64)


class MemoryEngine:
    """Counts coded rows held in memory: an array (rows, attributes)."""

    def __init__(self, codes, d=None):
        self.codes = np.asarray(codes, dtype=np.int64).reshape(len(codes), -1 if d is None else d)

    def count(self, schema, wanted, *, measures=(), progress=None):
        return Counts(schema, self.codes)


def carried_out(design, engine, **given):
    """A design of counts, carried out as a plan: the design that it ended with, and its measurement."""
    done, measured = carry_out(Plan.of_counts(design), engine, **given)
    return done.count, measured[COUNT]


def released(design, measurement):
    """The release of a design of counts, in memory."""
    return Release.of(Plan.of_counts(design), {COUNT: measurement})


class CountedOnce:
    """An engine that counts once, for as many releases of one plan as there are."""

    def __init__(self, engine):
        self._engine, self._kept = engine, None

    def count(self, schema, wanted, *, measures=(), progress=None):
        self._kept = self._kept or self._engine.count(schema, wanted, measures=measures)
        return self._kept


def seeded_releases(plan, data, seeds):
    """What `release` makes of a plan under each seed, in memory; the data is read once."""
    engine = CountedOnce(open_source(data))
    for seed in seeds:
        yield Release.of(*carry_out(plan, engine, entropy=SeededEntropy(seed)))


def random_codes(sizes, rows, seed=0):
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, n, rows) for n in sizes], axis=1)


def exact_table(schema, codes, marginal):
    rows = np.array([marginal], dtype=np.int32).reshape(1, len(marginal))
    return Counts(schema, codes).tables(rows)[0].reshape(schema.shape(marginal))


def expected_overall_error(truth, scales, sanity_bound):
    """When the noise of table i has the mean absolute value scales[i] in every cell.   [Xiao et al. 2011, section 5.2]

    >>> marginals = [np.array([100, 100]), np.array([1, 1, 1, 1])]
    >>> round(expected_overall_error(marginals, (22, 2.2), sanity_bound=1), 12)
    1.21
    """
    return float(
        np.mean([scale * (1 / np.maximum(q, sanity_bound)).mean() for q, scale in zip(truth, scales, strict=True)])
    )


def all_tables(plan, answers):
    """Every workload marginal's table."""
    tables = {}
    for batch in plan.request.marginals.batches:
        found = answers.tables(batch.rows, batch.shape)
        tables |= {tuple(row): table for row, table in zip(batch.rows.tolist(), found, strict=True)}
    return tables


# ------------------------------------------------------------------------------------------------- dense matrices


def kron(matrices):
    return reduce(np.kron, matrices, np.ones((1, 1)))


@cache
def helmert_rows(n):
    """Row k: k ones, then -k."""
    return np.array([[1.0] * k + [-float(k)] + [0.0] * (n - k - 1) for k in range(1, n)]).reshape(n - 1, n)


@cache
def hadamard_rows(n):
    """(-1)^<b, j> for frequencies b > 0 and the real codes j < n."""
    size = 1
    while size < n:
        size *= 2
    return np.array([[(-1.0) ** (b & j).bit_count() for j in range(n)] for b in range(1, size)]).reshape(size - 1, n)


AXIS_ROWS = {
    "marginal": np.eye,
    "fourier": hadamard_rows,
    "helmert": helmert_rows,
    "centred": lambda n: n * np.eye(n) - np.ones((n, n)),
}
"""The integer rows that are measured along an axis of size n."""


def set_rows(basis_name, sizes, B):
    """The integer rows measured on set B, on the full domain."""
    return _set_rows(basis_name, tuple(sizes), tuple(B))


@cache
def _set_rows(basis_name, sizes, B):
    return kron([AXIS_ROWS[basis_name](n) if i in B else np.ones((1, n)) for i, n in enumerate(sizes)])


def marginal_rows(sizes, A):
    return set_rows("marginal", sizes, A)


def projection(sizes, C):
    """Onto the residual space V_C."""
    return kron([np.eye(n) - np.ones((n, n)) / n if i in C else np.ones((n, n)) / n for i, n in enumerate(sizes)])


def all_subsets(items):
    return [c for k in range(len(items) + 1) for c in combinations(items, k)]


class Dense:
    """A plan on a small domain as matrices: z = S x + noise, answers = R z."""

    def __init__(self, plan):
        self.plan = plan
        sizes = plan.schema.sizes
        basis = plan.basis.name
        ids, rows, norms = [], [], []
        for batch in plan.measured.batches:  # the order in which a Measurement holds its numbers
            for number, row in zip(batch.ids.tolist(), batch.rows.tolist(), strict=True):
                block = set_rows(basis, sizes, tuple(row))
                ids += [number] * len(block)
                rows.append(block)
                axes = [(helmert_rows(sizes[i]) ** 2).sum(axis=1) for i in row] if basis == "helmert" else []
                norms.append(reduce(np.kron, axes, np.ones(1)) if axes else np.ones(len(block)))
        self.set_of, self.S, self.norms = np.array(ids), np.concatenate(rows), np.concatenate(norms)
        sets = list(plan.measured)
        self.stretch = np.array([math.prod(sizes[i] for i in sets[b]) if basis == "centred" else 1 for b in ids], float)
        self.budget = plan.budgets[self.set_of]
        self.public = ~np.isfinite(self.budget)

    def noise_variances(self, *, exact=True):
        """Of each measured integer."""
        if not exact:
            smoothing = self.plan.smoothing[self.set_of]
            noisy = 2 / self.budget**2 if self.plan.law.name == "laplace" else 0.5 / self.budget - smoothing
            return np.where(self.public, 0.0, noisy) * self.stretch**2 * self.norms
        if self.plan.law.name == "laplace":
            noisy = laplace_variance(np.where(self.public, 1.0, self.budget) / self.stretch)
        else:
            noisy = gaussian_variance(np.where(self.public, 1.0, 0.5 / self.budget) * self.norms)
        return np.where(self.public, 0.0, noisy)

    def recovery(self, A, *, exact=True):
        """R for one marginal, from numpy's pseudo-inverse."""
        plan = self.plan
        alone = {"marginal": self._best_single_table, "fourier": self._inverse_fourier}.get(plan.basis.name)
        if plan.recovery == "none" and alone:
            return alone(A)
        if plan.recovery == "answers" and alone:
            return marginal_rows(plan.schema.sizes, A) @ self._nearest_to_answers(alone)
        return marginal_rows(plan.schema.sizes, A) @ self._least_squares(exact=exact)

    def _nearest_to_answers(self, alone):
        """x = argmin ||Q x - y0|| subject to the public answers; y0 has the answers of the tables one by one."""
        if "_nearest" not in self.__dict__:
            asked = list(self.plan.request.marginals)
            Q = np.concatenate([marginal_rows(self.plan.schema.sizes, A) for A in asked])
            R = np.concatenate([alone(A) for A in asked])
            known, free = self._public_part()
            self._nearest = known + free @ np.linalg.pinv(Q @ free, rcond=1e-11) @ (R - Q @ known)
        return self._nearest

    def _public_part(self):
        """The least x with the public answers, from all numbers; and what leaves these as they are."""
        known, free = np.zeros(self.S.T.shape), np.eye(self.S.shape[1])
        if self.public.any():
            known[:, self.public] = np.linalg.pinv(self.S[self.public])
            _, singular, vt = np.linalg.svd(self.S[self.public])
            free = vt[int((singular > 1e-9).sum()) :].T
        return known, free

    def _least_squares(self, *, exact):
        """x = argmin ||U (S x - z)|| subject to the public answers; a row's scale is 1/deviation or 1."""
        key = f"_solution_{exact}"
        if key in self.__dict__:
            return self.__dict__[key]
        variances = self.noise_variances(exact=exact)
        if self.plan.recovery == "ols":  # unweighted in terms of the real rows
            variances = self.stretch**2 * self.norms
        noisy = ~self.public
        root = 1 / np.sqrt(variances[noisy])
        solution, free = self._public_part()
        M = (
            np.linalg.pinv(root[:, None] * self.S[noisy] @ free, rcond=1e-11)
            if free.size
            else np.zeros((0, noisy.sum()))
        )
        away = self.S[noisy] @ solution[:, self.public]  # what the public answers already explain
        solution[:, noisy] = free @ M * root
        solution[:, self.public] -= solution[:, noisy] @ away
        self.__dict__[key] = solution
        return solution

    def _best_single_table(self, A):
        """The measured table that answers A with the least variance; A's own table where there is one."""
        sizes = self.plan.schema.sizes
        cells = {B: math.prod(sizes[i] for i in B) for B in self.plan.measured}
        variances = self.noise_variances()
        choices = []
        for number, B in enumerate(self.plan.measured):
            if set(A) <= set(B):
                own = cells[B] == math.prod(sizes[i] for i in A)
                summed = cells[B] / math.prod(sizes[i] for i in A)
                choices.append((not own, variances[self.set_of == number][0] * summed, number, B))
        _, _, number, B = min(choices)
        R = np.zeros((math.prod(sizes[i] for i in A), len(self.S)))
        R[:, self.set_of == number] = kron([np.eye(sizes[i]) if i in A else np.ones((1, sizes[i])) for i in B])
        return R

    def _inverse_fourier(self, A):
        """2^-bits sum over coefficients inside A of chi_b times the coefficient."""
        sizes = self.plan.schema.sizes
        codes = math.prod(len(hadamard_rows(sizes[i])) + 1 for i in A)
        R = np.zeros((math.prod(sizes[i] for i in A), len(self.S)))
        for number, B in enumerate(self.plan.measured):
            if set(B) <= set(A):
                R[:, self.set_of == number] = kron(
                    [hadamard_rows(sizes[i]).T if i in B else np.ones((sizes[i], 1)) for i in A]
                )
        return R / codes

    def covariance(self, A, *, exact=True):
        key = f"_covariance_{A}_{exact}"
        if key not in self.__dict__:
            R = self.recovery(A, exact=exact)
            self.__dict__[key] = (R * self.noise_variances(exact=exact)) @ R.T
        return self.__dict__[key]

    def measurement(self, numbers):
        """A Measurement that holds the given integers."""
        values, start = [], 0
        for batch in self.plan.measured.batches:
            shape = (len(batch.ids), *map(self.plan.basis.rows, batch.shape))
            values.append(np.asarray(numbers[start : start + math.prod(shape)], dtype=np.int64).reshape(shape))
            start += math.prod(shape)
        assert start == len(numbers)
        return Measurement(self.plan.digest, tuple(values), private=False)


def below(values, total):
    """Floats as close below the given fractions as it takes for their exact sum to stay within the total."""
    floats = np.array([float(v) for v in values])
    while sum(map(Fraction, floats.tolist())) > total:
        floats *= 1 - 2.0**-52
    return floats


class Silence(Noise):
    """Zeros for noise; keeps the parameter of each drawn number, in the order of the drawing."""

    def __init__(self):
        self.parameters = []
        super().__init__(self._laplace, self._gaussian)

    def _laplace(self, rates, numbers, entropy):
        self.parameters.extend(rate for rate in rates for _ in range(numbers))
        return np.zeros((len(rates), numbers), np.int64)

    def _gaussian(self, variances, multipliers, entropy):
        self.parameters.extend(variance * int(m) for variance in variances for m in multipliers)
        return np.zeros((len(variances), len(multipliers)), np.int64)
