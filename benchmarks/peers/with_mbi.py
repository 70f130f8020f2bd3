"""mbi (private-pgm): noisy tables as given, and a graphical model fitted to them by mirror descent.

It does not draw noise: numpy does, in floats, which no guarantee on a computer should rest on. 1,000 steps at most, as
is its default.
"""

import warnings
from importlib.metadata import version

import numpy as np
from one_job import Job, serve

warnings.simplefilter("ignore")

import jax  # noqa: E402

jax.config.update("jax_enable_x64", True)

import mbi  # noqa: E402


def answer(job: Job):
    random = np.random.default_rng()
    names = [f"a{i}" for i in range(len(job.sizes))]
    domain = mbi.Domain(names, job.sizes)
    deviation = (0.5 / job.share) ** 0.5 if job.rho else 2**0.5 / job.share
    measured = []
    for table in job.tables:
        exact = job.exact(table)
        noise = (
            random.normal(scale=deviation, size=exact.shape)
            if job.rho
            else random.laplace(scale=1 / job.share, size=exact.shape)
        )
        clique = tuple(names[i] for i in table)
        measured.append(mbi.LinearMeasurement((exact + noise).ravel(), clique, stddev=deviation))
    model = mbi.estimation.MirrorDescent().estimate(domain, measured, iters=1000, tol=1e-4)
    cliques = [tuple(names[i] for i in table) for table in job.tables]
    return [np.asarray(model.project(clique).values) for clique in cliques]


serve(version("mbi"), answer)
