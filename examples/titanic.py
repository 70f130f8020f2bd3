"""The Python way, end to end: plan without data, release once, read tables and sums with error bars.

python examples/titanic.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import hushcube as hc
from hushcube import compare, release
from hushcube.samples import TITANIC, titanic


def main() -> None:
    # 1. Plan. No data is needed, so looking at every strategy costs nothing.
    comparison = compare(TITANIC, "<=2-way", epsilon=1, neighbours="add-remove")
    plan = comparison.chosen
    print(f"{plan.strategy} was chosen among {len(comparison.plans)} plans: {plan.privacy}")

    with tempfile.TemporaryDirectory() as place:
        # 2. Release. The data is read once, the noise comes from the operating system.
        folder = Path(place) / "titanic"
        release(plan, titanic(), out=folder)

        # 3. Read it, as anyone may who gets the folder.
        published = hc.open(folder)
        table = published.table("class*survived")
        for (cls, survived), value, margin in zip(
            [(c, s) for c in table.labels[0] for s in table.labels[1]],
            table.values.ravel(),
            table.margins.ravel(),
            strict=True,
        ):
            print(f"{cls:>5} {survived:>4} {value:8.1f} ± {margin:.1f}")

        women = published.estimate("sex*survived", {"sex": "female", "survived": "yes"})
        print(f"women who survived: {women.value:.0f}, between {women.low:.0f} and {women.high:.0f} (95%)")


if __name__ == "__main__":
    main()
