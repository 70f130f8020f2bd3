"""The publisher's way with files: made-up hospital encounters in a CSV, a schema in YAML, several rows per person.

python examples/hospital.py                  writes encounters.csv and hospital-release here, and prints a table
python examples/hospital.py --data-only      writes encounters.csv only
"""

from __future__ import annotations

import csv
import random
import sys
from pathlib import Path

from hushcube import Schema, plan, release

MOST_ENCOUNTERS = 3
"""No patient has more rows than this; the noise covers all of them."""


def write_encounters(path: Path, patients: int = 3_000) -> None:
    """Made-up encounters, the same every time: one row each, at most three for a patient."""
    chance = random.Random(1)  # noqa: S311 - made-up people need no secrets
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["patient", "ward", "sex", "age", "nights", "outcome"])
        for patient in range(patients):
            sex = chance.choices(["female", "male", ""], [52, 46, 2])[0]
            age = int(chance.triangular(0, 100, 60))
            for _ in range(chance.randint(1, MOST_ENCOUNTERS)):
                wards = ["emergency", "medicine", "surgery"] + ["maternity"] * (sex == "female" and 18 <= age < 45)
                nights = min(int(chance.expovariate(0.3)), 40)
                outcome = chance.choices(["home", "care home", "transferred", "died"], [85, 6, 6, age / 30])[0]
                rows.writerow([patient, chance.choice(wards), sex, age, nights, outcome])


def main() -> None:
    data = Path("encounters.csv")
    write_encounters(data)
    if "--data-only" in sys.argv[1:]:
        return
    schema = Schema.from_yaml(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    decided = plan(
        schema,
        ["1-way", "ward*outcome", "ward*age", "ward*nights"],
        epsilon=3,
        neighbours="add-remove",
        rows_per_person=MOST_ENCOUNTERS,
    )
    published = release(decided, data, out="hospital-release")
    table = published.table("ward*outcome")
    print(f"{decided.privacy}, strategy {decided.strategy}")
    for ward, values, margins in zip(table.labels[0], table.values, table.margins, strict=True):
        print(f"{ward:>10}: " + ", ".join(f"{v:.0f} ± {m:.0f}" for v, m in zip(values, margins, strict=True)))
    short = published.estimate("ward*nights", {"ward": "surgery", "nights": ["0", "1", "2"]})
    print(f"surgery, at most two nights: {short.value:.0f}, between {short.low:.0f} and {short.high:.0f} (95%)")


if __name__ == "__main__":
    main()
