"""Planning time of each strategy: optimal budgets, generalised least squares, epsilon = 1 (rho = 1/2 where noted).

`ratio` is the time over that of `workload` on the same request in the same run: closed-form budgets for the tables that
are asked for. The errors are continuous total variances. `covering` searches as long as the default effort allows.
Strategies that do not apply are left out. Rows of `auto`, which compares all of them, come last; `over residual` is its
time over that of `residual` alone, the optimum under rho, where `auto` should be no slower than twice that.
"""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from operator import itemgetter

ADULT8 = (9, 16, 7, 15, 6, 5, 2, 2)
CASES = (
    ("Adult-8", ADULT8, "1..3-way", {"epsilon": 1}),
    ("16 binary", (2,) * 16, "1..3-way", {"epsilon": 1}),
    ("30 of 10 values", (10,) * 30, "<=2-way", {"epsilon": 1}),
    ("30 of 10 values, rho", (10,) * 30, "<=3-way", {"rho": "1/2"}),
    ("100 of 10 values", (10,) * 100, "<=2-way", {"epsilon": 1}),
    ("100 of 10 values, rho", (10,) * 100, "<=3-way", {"rho": "1/2"}),
)
FIRE = (2, 101, 11, 100, 15, 32, 5, 9, 100, 100, 2, 11, 101, 100, 100, 42, 100, 101, 8, 8)
FIRE += (100, 101, 46, 12, 101, 742, 10, 100, 100, 28)
"""The sizes of a table of fire calls."""
MIXED12 = (2, 3, 10, 5, 2, 7, 4, 12, 3, 2, 6, 9)
AUTOMATIC = (
    ("fire calls, rho", FIRE, "<=2-way", {"rho": "1/2"}),
    ("fire calls, rho", FIRE, "3-way", {"rho": "1/2"}),
    *(
        (case, sizes, words, {"epsilon": 1})
        for case, sizes in (("Adult-8", ADULT8), ("16 binary", (2,) * 16), ("12 mixed", MIXED12))
        for words in ("2-way", "1..3-way", "<=3-way", "star:1")
    ),
)


def main():
    """Both parts, each in a process of its own: what one strategy found out about a workload is kept for the next."""
    rows = []
    for part in (each, automatically):
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            rows += process.submit(part).result()
    return rows


def each(cases=CASES):
    """Every strategy on every case."""
    from hushcube import Attribute, Privacy, Schema, Workload
    from hushcube.designs.request import Request
    from hushcube.errors import NotApplicable
    from hushcube.strategies import REGISTRY

    rows = []
    for case, sizes, words, law in cases:
        schema = Schema(tuple(Attribute(name=f"a{i}", codes=n) for i, n in enumerate(sizes)))
        workload = Workload.parse(words, schema)

        def request(workload=workload, law=law):  # a new one each time: requests remember what they computed
            return Request(workload, Privacy.of(neighbours="add-remove", **law))

        baseline = min(_seconds(REGISTRY["workload"], request())[0] for _ in range(3))
        for name, strategy in REGISTRY.items():
            asked = request()
            if not strategy.concerns(asked) or strategy.accepts(asked) is not None:
                continue
            try:
                seconds, plan = _seconds(strategy, asked)
            except NotApplicable:
                continue
            row = {"case": case, "workload": words, "tables": len(workload), "strategy": name, "seconds": seconds}
            row |= {"ratio": seconds / baseline, "total_variance": plan.errors.total_variance(exact=False)}
            rows.append({**row, "over residual": None})
            print({k: round(v, 3) if isinstance(v, float) else v for k, v in rows[-1].items()}, flush=True)
    return rows


def automatically(cases=AUTOMATIC):
    """`auto` on every case."""
    from hushcube import Attribute, Privacy, Schema, Workload
    from hushcube.designs.request import Request

    rows = []
    for case, sizes, words, law in cases:
        schema = Schema(tuple(Attribute(name=f"a{i}", codes=n) for i, n in enumerate(sizes)))
        workload, privacy = Workload.parse(words, schema), Privacy.of(neighbours="add-remove", **law)
        own, alone, chosen = (
            min((_compared(Request(workload, privacy), name) for _ in range(repeats)), key=itemgetter(0))
            for name, repeats in (("workload", 3), ("residual", 3), ("auto", 3 if "rho" in law else 1))
        )
        row = {"case": case, "workload": words, "tables": len(workload), "strategy": f"auto: {chosen[1].strategy}"}
        row |= {"seconds": chosen[0], "ratio": chosen[0] / own[0]}
        row["total_variance"] = chosen[1].errors.total_variance(exact=False)
        rows.append({**row, "over residual": chosen[0] / alone[0] if "rho" in law else None})
        print({k: round(v, 3) if isinstance(v, float) else v for k, v in rows[-1].items()}, flush=True)
    return rows


def _compared(request, strategy):
    from hushcube.planning.planner import compare

    start = time.perf_counter()
    chosen = compare(request, strategy=strategy).chosen
    return time.perf_counter() - start, chosen


def _seconds(strategy, request):
    start = time.perf_counter()
    plan = strategy.plan(request, "optimal", "gls")
    return time.perf_counter() - start, plan


if __name__ == "__main__":
    main()
