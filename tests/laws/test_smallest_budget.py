"""The smallest budget for random targets is certified by duality to 0.1%: the bound is computed afresh here."""

import math
from itertools import combinations

import numpy as np
import pytest

from helpers import make_request, question
from hushcube.planning.smallest import Program
from hushcube.planning.targets import resolve

CASES = 100


def subsets(A):
    return [B for k in range(len(A) + 1) for B in combinations(A, k)]


def problem(seed):
    """Sizes, words and targets: up to six attributes, single tables of all sizes, sometimes a mean."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 7))
    sizes = tuple(int(n) for n in rng.integers(2, 30, d))
    texts = []
    for _ in range(rng.integers(1, 5)):
        chosen = sorted(rng.choice(d, rng.integers(0, min(d, 3) + 1), replace=False).tolist())
        word = "*".join(f"a{i}" for i in chosen) or "total"
        texts.append(f"{word}: {rng.choice(['stderr', 'margin', 'variance'])}<={rng.uniform(2, 100):.3g}")
    if rng.random() < 0.5:
        texts.append(f"workload: rmse<={rng.uniform(2, 50):.3g}")
    return sizes, f"<={min(d, 3)}-way", texts


@pytest.mark.parametrize("seed", range(CASES))
def test_the_optimum_is_certified(seed):
    sizes, words, texts = problem(seed)
    asked = question(make_request(sizes, words, rho=1))
    program = Program.of(asked, resolve(texts, asked))
    dense = np.zeros(program.rows.shape)  # constraints by tables
    dense[program.rows.rows, program.rows.columns] = program.rows.values
    tables = asked.workload.marginals
    spaces = sorted({B for A in tables for B in subsets(A)})
    cells = {B: math.prod(sizes[i] for i in B) for B in (*spaces, *tables)}
    m = {B: math.prod(sizes[i] - 1 for i in B) for B in spaces}
    V = np.array([[m[B] * cells[B] / cells[A] ** 2 * (set(B) <= set(A)) for B in spaces] for A in tables])
    C = np.array([m[B] / cells[B] for B in spaces])
    weights = program.solution.weights
    assert weights.min() >= 0 and math.isclose(weights.sum(), 1, rel_tol=1e-9)
    # whatever beta of cost 1: max_j F_j >= sum_B s_B / (2 beta_B) >= (sum_B sqrt(C_B s_B))² / 2, by Cauchy
    bound = np.sqrt(C * (weights @ dense @ V)).sum() ** 2 / 2
    s = (program._weighed(program.rows) * program.cells) @ V
    seen = s > 0
    beta = np.sqrt(s[seen] / C[seen]) / np.sqrt(s * C).sum()  # of cost 1
    reached = (dense @ V)[:, seen] @ (0.5 / beta)
    assert bound <= reached.max() * (1 + 1e-12) <= bound * 1.001
    rest = 1.0101 if program.rest.any() else 1.0001
    assert bound * (1 - 1e-9) <= program.cost(program.weights) <= rest * bound
