"""Write icd9.csv: the three-character categories of ICD-9-CM, each with its chapter.

python examples/hospital/make_icd9.py        writes icd9.csv beside itself

The classification is public. Its ranges are written out in full, unassigned categories included, so that the list says
what a code could be. Leading zeros are left out, as the encounters leave them out: 8 is the category 008.
"""

from __future__ import annotations

from pathlib import Path

CHAPTERS = (
    ("infectious", 1, 139),
    ("neoplasms", 140, 239),
    ("endocrine", 240, 279),
    ("blood", 280, 289),
    ("mental", 290, 319),
    ("nervous", 320, 389),
    ("circulatory", 390, 459),
    ("respiratory", 460, 519),
    ("digestive", 520, 579),
    ("genitourinary", 580, 629),
    ("pregnancy", 630, 679),
    ("skin", 680, 709),
    ("musculoskeletal", 710, 739),
    ("congenital", 740, 759),
    ("perinatal", 760, 779),
    ("symptoms", 780, 799),
    ("injury", 800, 999),
)


def main() -> None:
    lines = [f"{code},{chapter}" for chapter, first, last in CHAPTERS for code in range(first, last + 1)]
    lines += [f"V{code:02},supplementary" for code in range(1, 92)]
    lines += [f"E{code:03},external" for code in range(1000)]
    Path(__file__).with_name("icd9.csv").write_text("code,chapter\n" + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
