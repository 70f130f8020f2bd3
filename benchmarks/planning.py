"""Planning time of each strategy: optimal budgets, generalised least squares, epsilon = 1 (rho = 1/2 where noted).

`ratio` is the time over that of `workload` on the same request in the same run: closed-form budgets for the tables that
are asked for. The errors are continuous total variances. `covering` searches as long as the default effort allows.
Strategies that do not apply are left out.
"""

from __future__ import annotations

import time

ADULT8 = (9, 16, 7, 15, 6, 5, 2, 2)
CASES = (
    ("Adult-8", ADULT8, "1..3-way", {"epsilon": 1}),
    ("16 binary", (2,) * 16, "1..3-way", {"epsilon": 1}),
    ("30 of 10 values", (10,) * 30, "<=2-way", {"epsilon": 1}),
    ("30 of 10 values, rho", (10,) * 30, "<=3-way", {"rho": "1/2"}),
    ("100 of 10 values", (10,) * 100, "<=2-way", {"epsilon": 1}),
    ("100 of 10 values, rho", (10,) * 100, "<=3-way", {"rho": "1/2"}),
)


def main(cases=CASES):
    from hushcube import Attribute, Privacy, Schema, Workload
    from hushcube.designs import errors as error
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
            rows.append({**row, "ratio": seconds / baseline, "total_variance": error.total_variance(plan, exact=False)})
            print({k: round(v, 3) if isinstance(v, float) else v for k, v in rows[-1].items()}, flush=True)
    return rows


def _seconds(strategy, request):
    start = time.perf_counter()
    plan = strategy.plan(request, "optimal", "gls")
    return time.perf_counter() - start, plan


if __name__ == "__main__":
    main()
