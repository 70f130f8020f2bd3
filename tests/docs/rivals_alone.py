"""What is checked of the rivals in mbi's environment, without pytest: run by test_accuracy.py."""

import doctest
import sys
from itertools import combinations

import numpy as np
from benchmarks.adaptive import aim, graphical, rivals
from benchmarks.peers.one_job import Job

mbi = graphical.mbi


def fits_and_tables_are_those_of_mbi():
    sizes, random = (2, 3, 4, 2, 5), np.random.default_rng(1)
    codes = np.stack([(random.random(3000) ** 2 * n).astype(int) for n in sizes], axis=1)
    job, domain = Job(sizes, (), codes), mbi.Domain(range(5), sizes)
    measured, given = aim.Measured(sizes), []
    for r in ((0, 1), (1, 2), (2, 3), (0, 3), (2, 4), (1, 2)):  # one of them twice
        noisy = job.exact(r) + random.normal(scale=20, size=job.shape(r))
        measured.add(r, noisy, 20.0)
        given.append(mbi.LinearMeasurement(noisy.ravel(), r, stddev=20.0))
    total = mbi.estimation.minimum_variance_unbiased_total(given)
    assert np.isclose(total, measured.total())
    model, theirs = (
        graphical.fit(measured, steps=5000),
        mbi.estimation.MirrorDescent().estimate(domain, given, total, iters=5000),
    )
    asked = [r for k in (1, 2, 3) for r in combinations(range(5), k)]
    full = model.tables(asked)
    graphical.FULL_TABLE = 0
    eliminated = model.tables(asked)
    for r in asked:
        own = mbi.marginal_oracles.variable_elimination(model.field.potentials, r, total)
        assert np.allclose(full[r], eliminated[r], rtol=1e-9)
        assert np.allclose(full[r], np.asarray(own.values), rtol=1e-9)
        assert np.abs(full[r] - np.asarray(theirs.project(r).values)).max() < 1  # counts are hundreds


def junction_trees_are_as_large_as_those_of_mbi():
    random = np.random.default_rng(2)
    sizes = (2, 3, 4, 5, 6, 7, 8)
    domain, pairs = mbi.Domain(range(7), sizes), [r for k in (2, 3) for r in combinations(range(7), k)]
    for count in (1, 4, 6, 8, 12):
        cliques = [pairs[i] for i in random.choice(len(pairs), count, replace=False)]
        theirs = mbi.junction_tree.hypothetical_model_size(domain, cliques)
        assert np.isclose(graphical.tree_megabytes(sizes, cliques), theirs), cliques


def selection_has_the_law_of_the_exponential_mechanism():
    """Each frequency of 40,000 draws within 5 standard deviations: a false alarm in less than one of 100,000 runs."""
    random, quality = np.random.default_rng(3), np.array([0.0, 2.0, 5.0])
    found = np.bincount([aim.exponential(quality, 2.0, 1.5, random) for _ in range(40_000)], minlength=3) / 40_000
    law = np.exp(1.5 * quality / 4)
    law /= law.sum()
    assert (np.abs(found - law) < 5 * np.sqrt(law * (1 - law) / 40_000)).all()


def all_of_the_budget_is_spent():
    random = np.random.default_rng(5)
    job = Job((2, 2, 3), ((0, 1), (1, 2)), random.integers(0, 2, (500, 3)), rho=0.3)
    tables, about = rivals.aim_on_mbi(job, 1)
    assert set(tables) == set(job.tables) and np.isclose(about["spent"], 0.3)
    tables, _ = rivals.mst(job, 1)
    assert tables[1, 2].shape == (2, 3) and np.isclose(tables[0, 1].sum(), tables[1, 2].sum())


for module in (aim, graphical, rivals):
    assert doctest.testmod(module).failed == 0
for check in (
    fits_and_tables_are_those_of_mbi,
    junction_trees_are_as_large_as_those_of_mbi,
    selection_has_the_law_of_the_exponential_mechanism,
    all_of_the_budget_is_spent,
):
    check()
    sys.stdout.write(f"{check.__name__}\n")
