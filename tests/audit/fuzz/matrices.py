"""Matrices to ask for or to measure, and facts: whole, changed in a number, or damaged in their bytes."""

import io
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse

from audit.fuzz.documents import as_yaml, changed, written
from audit.fuzz.hostile import NUMBERS, TEXTS, damage
from audit.fuzz.subjects import Subject

ENTRIES = (0, 1, -1, 2, 0.5, 3, 2**40, 2**63, 1e-300, 1e300, 1e308)


def write_matrix(rng: Random, subject: Subject, folder: Path, stem: str, *, hostile: float) -> str:
    """Write a matrix over the full table; the option's value that names it."""
    wide = subject.cells if rng.random() > hostile / 4 else rng.choice((1, subject.cells + 1))
    shape = (rng.choice((1, 2, 3, wide)), wide)
    simple = rng.random() > hostile / 2
    numbers = [
        [float(rng.choice(ENTRIES[:3] if simple else ENTRIES)) for _ in range(shape[1])] for _ in range(shape[0])
    ]
    kind = rng.choice(("csv", "json", "npy", "npz", "mtx"))
    content = {"csv": _csv, "json": _json, "npy": _npy, "npz": _npz, "mtx": _mtx}[kind](rng, numbers, hostile)
    if rng.random() < hostile / 2:
        content = damage(rng, content)
    name = f"{stem}.{kind if rng.random() > hostile / 8 else rng.choice(('csv', 'npy', 'txt', 'json'))}"
    (folder / name).write_bytes(content)
    before = "*".join(subject.names) + ":" if rng.random() < 0.3 else "no:" if rng.random() < hostile / 6 else ""
    return before + name


def _csv(rng: Random, numbers: list[list[float]], hostile: float) -> bytes:
    lines = [[f"{number:g}" for number in row] for row in numbers]
    if rng.random() < hostile:
        rng.choice(lines)[0] = rng.choice((rng.choice(NUMBERS), rng.choice(TEXTS)))
    return "\n".join(map(",".join, lines)).encode("utf-8", "replace")


def _json(rng: Random, numbers: list[list[float]], hostile: float) -> bytes:
    tree: Any = {"rows": numbers}
    if rng.random() < 0.4:
        sparse = scipy.sparse.csr_array(np.array(numbers))
        tree = {
            "width": len(numbers[0]),
            "starts": sparse.indptr.tolist(),
            "columns": sparse.indices.tolist(),
            "values": sparse.data.tolist(),
        }
    if rng.random() < 0.2:
        tree["names"] = [f"q{i}" for i in range(len(numbers))]
    return written(changed(rng, tree) if rng.random() < hostile else tree).encode()


def _npy(rng: Random, numbers: list[list[float]], hostile: float) -> bytes:
    array = np.array(numbers)
    if rng.random() < hostile:
        with np.errstate(all="ignore"):
            array = rng.choice(
                (
                    lambda: array * np.nan,
                    lambda: array.astype(np.float32),
                    lambda: array.astype(complex),
                    lambda: array.astype("U8"),
                    lambda: array.astype("M8[s]"),
                    lambda: array.ravel(),
                    lambda: array[None],
                    lambda: array[:0],
                    lambda: array.astype(bool),
                    lambda: array.astype(">f8"),
                    lambda: array.astype(np.uint64),
                    lambda: np.array([("a", 1)], dtype=[("x", "U1"), ("y", int)]),
                    lambda: np.asfortranarray(array),
                )
            )()
    sink = io.BytesIO()
    np.save(sink, array)
    return sink.getvalue()


def _npz(rng: Random, numbers: list[list[float]], hostile: float) -> bytes:
    sparse = scipy.sparse.csr_array(np.array(numbers)).asformat(rng.choice(("csr", "csc", "coo")))
    sink = io.BytesIO()
    if rng.random() > hostile:
        scipy.sparse.save_npz(sink, sparse, compressed=rng.random() < 0.5)
        return sink.getvalue()
    parts: dict[str, Any] = {
        "format": np.array(b"csr"),
        "shape": np.array([2, 2]),
        "indptr": np.array([0, 1, 2]),
        "indices": np.array([0, 1]),
        "data": np.array([1.0, 1.0]),
    }
    odd = (
        np.array([]),
        np.array([-1, 5, 9]),
        np.array([[1]]),
        np.array(["x"]),
        np.array(2.5),
        np.array([1e300, np.nan]),
        np.array(10**18),
    )
    parts[rng.choice(list(parts))] = rng.choice(odd)
    np.savez(sink, **parts)
    return sink.getvalue()


def _mtx(rng: Random, numbers: list[list[float]], hostile: float) -> bytes:
    sink = io.BytesIO()
    scipy.io.mmwrite(sink, scipy.sparse.coo_array(np.array(numbers)))
    text = sink.getvalue().decode()
    if rng.random() < hostile:
        words = text.split(" ")
        words[rng.randrange(len(words))] = rng.choice((rng.choice(NUMBERS), "array", "complex", "symmetric", "pattern"))
        text = " ".join(words)
    return text.encode("utf-8", "replace")


def write_facts(rng: Random, who: Subject, folder: Path, *, hostile: float) -> str:
    """Write public facts, true or not; the file's name."""

    def somebody() -> dict[str, Any]:
        return {name: rng.choice(who.labels[name]) for name in rng.sample(who.names, rng.randint(1, len(who.names)))}

    counts = (0, 1, 5, 1000, rng.choice((10**12, 10**30, -1, 2.5)) if rng.random() < hostile else 3)
    tree: Any = {
        "zeros": [somebody() for _ in range(rng.choice((0, 1, 2)))],
        "totals": [{"where": somebody(), "count": rng.choice(counts)} for _ in range(rng.choice((0, 1, 2)))],
    }
    if rng.random() < 0.4:
        tree["totals"].append({"count": rng.choice(counts)})
    content = as_yaml(rng, changed(rng, tree, yaml_too=True) if rng.random() < hostile else tree).encode()
    (folder / "facts.yaml").write_bytes(damage(rng, content) if rng.random() < hostile / 6 else content)
    return "facts.yaml"
