"""What we compare with: the published ResidualPlanner algorithm, written plainly, one marginal at a time.

Subtraction matrices, float Gaussian noise, no batching: the shape of the authors' code without its optimiser. It is not
exact and not private on a computer (floating-point noise); it is the yardstick for time only.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np


def closure(marginals):
    """All subsets of all marginals."""
    return sorted(
        {s for m in marginals for k in range(len(m) + 1) for s in combinations(m, k)}, key=lambda s: (len(s), s)
    )


def select(marginals, sizes):
    """Optimal noise variance of each residual at rho = 1/2, by the closed form, marginal by marginal."""
    weight = dict.fromkeys(closure(marginals), 0.0)
    for marginal in marginals:
        cells = math.prod(sizes[i] for i in marginal)
        for k in range(len(marginal) + 1):
            for subset in combinations(marginal, k):
                weight[subset] += 1 / cells
    p = {s: math.prod(1 - 1 / sizes[i] for i in s) for s in weight}
    v = {s: math.prod((sizes[i] - 1) * sizes[i] for i in s) * w for s, w in weight.items()}
    total = sum(math.sqrt(p[s] * v[s]) for s in weight)
    return {s: total * math.sqrt(p[s] / v[s]) for s in weight}, total**2


def subtraction(n):
    """Rows e_0 - e_k."""
    return np.hstack([np.ones((n - 1, 1)), -np.eye(n - 1)])


def along(matrices, table):
    """Apply one matrix along each axis."""
    for axis, matrix in enumerate(matrices):
        table = np.moveaxis(np.tensordot(matrix, table, axes=(1, axis)), 0, axis)
    return table


def measure(variances, codes, sizes, random):
    """Noisy residual answers of every set."""
    answers = {}
    for subset, variance in variances.items():
        shape = tuple(sizes[i] for i in subset)
        index = np.zeros(len(codes), dtype=np.int64)
        for i in subset:
            index = index * sizes[i] + codes[:, i]
        table = np.bincount(index, minlength=math.prod(shape)).reshape(shape).astype(float)
        noise = random.normal(scale=math.sqrt(variance), size=shape)
        answers[subset] = along([subtraction(n) for n in shape], table + noise)
    return answers


def recover(marginal, answers, sizes, inverses):
    """One marginal from the residuals of its subsets."""
    table = np.zeros(tuple(sizes[i] for i in marginal))
    for k in range(len(marginal) + 1):
        for subset in combinations(marginal, k):
            part = answers[subset].reshape([sizes[i] - 1 if i in subset else 1 for i in marginal])
            table += along(
                [inverses[i] if i in subset else np.full((sizes[i], 1), 1 / sizes[i]) for i in marginal], part
            )
    return table
