"""How fast is the exact noise? Draws per second against OpenDP (exact) and numpy (insecure), one thread.

    python benchmarks/noise.py

All three are measured in one run, best of several. Targets: at least 50 times OpenDP, within 6 times numpy.
"""

import time
from fractions import Fraction

import numpy as np
import opendp.prelude as dp

from hushcube.private.noise import SystemEntropy, discrete_gaussian, discrete_laplace

SCALES = [1.0, 10.0, 1000.0, 1e6]
DRAWS, OPENDP_DRAWS, REPEATS = 1_000_000, 10_000, 5


def seconds_per_draw(function, draws):
    """The best of a few runs, after one that warms up."""
    function()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times) / draws


def opendp_laplace(scale):
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    return dp.m.make_laplace(*space, scale=scale)


def opendp_gaussian(scale):
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    return dp.m.make_gaussian(*space, scale=scale)


def peers(scale):
    """Yield each law's name with our sampler, OpenDP's and numpy's, as functions without arguments."""
    entropy, rng = SystemEntropy(), np.random.default_rng()
    zeros, ones = [0] * OPENDP_DRAWS, np.ones(DRAWS, np.int64)
    rate, variance = [1 / Fraction(scale)], [Fraction(scale) ** 2]
    theirs = opendp_laplace(scale)
    yield (
        "laplace",
        lambda: discrete_laplace(rate, DRAWS, entropy),
        lambda: theirs(zeros),
        lambda: rng.laplace(0, scale, DRAWS),
    )
    theirs = opendp_gaussian(scale)
    yield (
        "gaussian",
        lambda: discrete_gaussian(variance, ones, entropy),
        lambda: theirs(zeros),
        lambda: rng.normal(0, scale, DRAWS),
    )


def tables(rows=1_000, columns=729):
    """Yield draws for tables in which every row has its own parameter, every column its multiplier."""
    entropy, rng = SystemEntropy(), np.random.default_rng(1)
    factors = np.array([k * (k + 1) for k in range(1, 10)])
    multipliers = np.multiply.outer(np.multiply.outer(factors, factors), factors).ravel()
    values = [Fraction(float(x)) for x in rng.uniform(50, 5000, rows)]
    rates = [1 / value for value in values]
    yield "laplace", lambda: discrete_laplace(rates, columns, entropy), rows * columns
    yield "gaussian", lambda: discrete_gaussian(values, multipliers, entropy), rows * columns


def main():
    """Print the table and return its rows."""
    dp.enable_features("contrib")
    rows = []
    for scale in SCALES:
        for law, ours, opendp, numpy in peers(scale):
            exact = seconds_per_draw(ours, DRAWS)
            opendp_time = seconds_per_draw(opendp, OPENDP_DRAWS)
            numpy_time = seconds_per_draw(numpy, DRAWS)
            rows.append(
                {
                    "law": law,
                    "scale": scale,
                    "nanoseconds": exact * 1e9,
                    "times_opendp": opendp_time / exact,
                    "slower_than_numpy": exact / numpy_time,
                }
            )
    for law, ours, draws in tables():
        rows.append({"law": f"{law}, 1000 x 729", "scale": None, "nanoseconds": seconds_per_draw(ours, draws) * 1e9})
    print(f"{'law':24}{'scale':>10}{'ns/draw':>10}{'x OpenDP':>10}{'/ numpy':>10}")
    for row in sorted(rows, key=lambda row: row["law"]):
        print(
            f"{row['law']:24}{row['scale'] or '':>10}{row['nanoseconds']:10.1f}"
            f"{row.get('times_opendp', float('nan')):10.0f}{row.get('slower_than_numpy', float('nan')):10.2f}"
        )
    return rows


if __name__ == "__main__":
    main()
