"""Schemas with rows that fit them: every kind of attribute, levels, mappings, units and measures, in small."""

from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from audit.fuzz.documents import as_yaml, changed
from audit.fuzz.hostile import TEXTS, damage


@dataclass
class Subject:
    """What a publisher has: a schema as its file says it, and people."""

    schema: dict[str, Any]
    rows: list[dict[str, Any]]
    labels: dict[str, list[str]] = field(default_factory=dict)
    levels: dict[str, list[str]] = field(default_factory=dict)
    ordered: list[str] = field(default_factory=list)
    mapping: str | None = None

    @property
    def names(self) -> list[str]:
        return list(self.labels)

    @property
    def measures(self) -> list[str]:
        return [measure["name"] for measure in self.schema.get("measures", ())]

    @property
    def cells(self) -> int:
        """Of the full table."""
        cells = 1
        for labels in self.labels.values():
            cells *= len(labels)
        return cells


def subject(rng: Random) -> Subject:
    """A random one; its schema is valid."""
    made = Subject({"name": "people", "attributes": []}, [{} for _ in range(rng.choice((0, 1, 1, 3, 8)))])
    for name in rng.sample(("sex", "age", "region", "a b", "straße"), rng.choice((1, 2, 2, 3))):
        _attribute(rng, made, name)
    if rng.random() < 0.2:
        made.schema |= {"unit": "person", "max_rows": rng.choice((1, 2, 5))}
        if rng.random() < 0.3:
            made.schema["unit_missing"] = "own"
        for row in made.rows:
            row["person"] = rng.choice(("p1", "p2", "p3", 7))
    if rng.random() < 0.3:
        made.schema["measures"] = [{"name": "days", "bounds": rng.choice(([0, 3], [1, 4], [-2, 2]))}]
        if rng.random() < 0.5:
            made.schema["measures"][0] |= rng.choice(({"resolution": 0.5}, {"center": "middle"}, {"missing": 0}))
        for row in made.rows:
            row["days"] = rng.choice((0, 1, 2.5, 9))
    return made


def _attribute(rng: Random, made: Subject, name: str) -> None:
    kind = rng.choice(("values", "values", "range", "bins", "size", "dates", "mapping"))
    spec: dict[str, Any] = {"name": name}
    fits: list[Any]
    if kind == "values":
        spec["values"] = fits = rng.choice((["F", "M"], ["x"], ["a", "b", "c"], ["1", "2", "é"]))
        labels = list(fits)
        if rng.random() < 0.3:
            spec["levels"] = [{"name": "group", "groups": {"g": labels}}]
    elif kind == "range":
        low = rng.choice((0, -2))
        spec["range"] = [low, low + rng.choice((0, 1, 3))]
        fits = list(range(low, spec["range"][1] + 1))
        labels = [str(value) for value in fits]
        if rng.random() < 0.3:
            spec["levels"] = [{"name": "band", "starts": sorted({low, spec["range"][1]})}]
    elif kind == "bins":
        spec["bins"] = rng.choice(([0, 10], [0, 0.5, 1], [-1e6, 0, 1e6]))
        fits = [0, 0.5, 1]
        closed = zip(spec["bins"], spec["bins"][1:], strict=False)
        labels = [f"[{low}, {high})" for low, high in closed]
    elif kind == "size":
        spec["size"] = rng.choice((1, 2, 3))
        fits = list(range(spec["size"]))
        labels = [str(value) for value in fits]
    elif kind == "dates":
        spec["dates"] = ["2023-12-30", "2024-01-02"]
        spec["by"] = rng.choice(("day", "month", "quarter", "year"))
        fits, labels = ["2024-01-01", "2023-12-31"], ["2024-01-01"]
    else:
        spec["mapping"] = "map.csv"
        made.mapping = "code,group\nu,g1\nv,g1\nw,g2\n"
        fits = labels = ["u", "v", "w"]
    made.levels[name] = {"dates": ["month", "quarter", "year"], "mapping": ["group"]}.get(
        kind, [level["name"] for level in spec.get("levels", ())]
    )
    for policy in ("missing", "other"):
        if rng.random() < 0.25:
            spec[policy] = rng.choice(("unknown", labels[0]))
            fits = [*fits, *([None] if policy == "missing" else ["elsewhere"])]
    if rng.random() < 0.15:
        spec["column"] = f"{name}_code"
    if rng.random() < 0.1:
        spec["ordered"] = rng.choice((True, False))
    if kind == "values" and rng.random() < 0.1:
        spec["before"] = "."
    if spec.get("ordered", kind in ("range", "bins", "dates")):
        made.ordered.append(name)
    made.labels[name] = labels
    made.schema["attributes"].append(spec)
    for row in made.rows:
        row[spec.get("column", name)] = rng.choice(fits)


def write_schema(rng: Random, made: Subject, folder: Path, *, hostile: float) -> None:
    """The schema file, and its mapping; changed with the probability `hostile`."""
    tree = made.schema
    if rng.random() < hostile:
        tree = changed(rng, tree, yaml_too=True)
    content = as_yaml(rng, tree).encode()
    if rng.random() < hostile / 4:
        content = damage(rng, content)
    (folder / "schema.yaml").write_bytes(content)
    if made.mapping is not None:
        mapping = made.mapping
        if rng.random() < hostile:
            mapping = rng.choice(
                (mapping.replace("u", rng.choice(TEXTS)), mapping.replace("g2", "g1"), "", mapping * 2)
            )
        written = mapping.encode("utf-8", "replace")
        (folder / "map.csv").write_bytes(damage(rng, written) if rng.random() < hostile / 2 else written)
