"""Raw damage of published folders: whatever byte, length, name or place of a file changes, `verify` says so.

Small releases: of counts, of counts with whole numbers and people beside them, a cube, a stack. In the long form every
byte of the manifest, every third of the other texts and every ninth of the tables is changed, one at a time.
"""

import random
import shutil
import tempfile
from pathlib import Path

import pyarrow as pa

from hushcube import plan, recover, release
from hushcube.bundle.release import Release
from hushcube.bundle.verify import verify
from hushcube.designs import StackedDesign
from hushcube.errors import BundleError
from hushcube.model.attribute import Attribute
from hushcube.model.measure import Measure
from hushcube.model.schema import COUNT, Schema
from hushcube.planning.plan import Plan

ATTRIBUTES = (Attribute(name="sex", values=("F", "M")), Attribute(name="age", codes=3))
DATA = pa.table({"sex": ["F", "M", "M"] * 9, "age": [0, 1, 2] * 9, "days": [3, 4, 5] * 9})
KINDS = ("counts", "faces", "cube", "stack")
_TEXTS = (".json", ".yaml", ".md")
_SAMPLE = {"short": (40, 2), "long": (None, None)}
"""Changed bytes in the manifest and in each other file; None: as many as the docstring says."""


def make(folder, kind):
    """A release in a new folder."""
    if kind == "cube":
        schema = Schema(ATTRIBUTES, measures=(Measure(name="days", bounds=(0, 9)),))
        asked = plan(schema, "<=1-way", measures=["avg(days)"], epsilon=1, neighbours="add-remove")
        release(asked, DATA, out=folder)
        return
    if kind == "stack":
        schema = Schema(ATTRIBUTES)
        plans = [plan(schema, words, rho=1, neighbours="add-remove") for words in ("sex", "<=2-way")]
        designs = [each.count for each in plans]
        measured = [release(each, DATA).source.measurement() for each in plans]
        stack, joined = StackedDesign.join(designs, measured, designs[-1].workload)
        Release.of(Plan.of_counts(stack), {COUNT: joined}).save(folder)
        return
    asked = plan(Schema(ATTRIBUTES), "<=2-way", epsilon=1, neighbours="add-remove", strategy="workload")
    release(asked, DATA, out=folder)
    if kind == "faces":
        recover(folder)


def files(folder):
    """The names of all files."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def damages(folder, scale, seed=0):
    """Every change to be made, as its name, a file and the file's new bytes; None: the file goes away."""
    rng = random.Random(seed)
    names = files(folder)
    for name in names:
        old = (folder / name).read_bytes()
        yield f"{name} is missing", name, None
        yield f"{name} is longer", name, old + b"\n"
        for length in sorted({0, len(old) // 2, len(old) - 1} - {len(old)}):
            yield f"{name} is cut to {length} bytes", name, old[:length]
        most = _SAMPLE[scale][name != "manifest.json"]
        places = range(0, len(old), 1 if name == "manifest.json" else 3 if name.endswith(_TEXTS) else 9)
        for at in places if most is None else rng.sample(range(len(old)), min(most, len(old))):
            other = (old[at] + rng.randrange(1, 256)) % 256
            yield f"byte {at} of {name} is {other}", name, old[:at] + bytes([other]) + old[at + 1 :]
    for name in names:
        others = [other for other in names if other != name and Path(other).suffix == Path(name).suffix]
        for other in others if scale == "long" else rng.sample(others, min(1, len(others))):
            if (folder / other).read_bytes() != (folder / name).read_bytes():
                yield f"{name} is another file, {other}", name, (folder / other).read_bytes()


def missed(folder, scale, seed=0):
    """How many changes were made one by one, and those that went unnoticed or ended in anything but a verdict."""
    number, unnoticed = 0, []
    for told, name, new in damages(folder, scale, seed):
        old = (folder / name).read_bytes()
        if new is None:
            (folder / name).unlink()
        else:
            (folder / name).write_bytes(new)
        number += 1
        try:
            if verify(folder).holds:
                unnoticed.append(told)
        except BundleError:
            if name != "manifest.json" or new is not None:
                unnoticed.append(f"{told}: no verdict")
        except Exception as problem:
            unnoticed.append(f"{told}: {type(problem).__name__}")
        (folder / name).write_bytes(old)
    return number, unnoticed


def figures(scale):
    """The part of the audit's page."""
    changes, unnoticed = {}, []
    with tempfile.TemporaryDirectory() as place:
        for kind in KINDS:
            folder = Path(place, kind)
            make(folder, kind)
            changes[f"changes to a release: {kind}"], missed_here = missed(folder, scale)
            unnoticed += [f"{kind}: {told}" for told in missed_here]
            shutil.rmtree(folder)
    return {
        "title": "Raw damage",
        "attacked": "A release that was damaged on its way does not pass `hushcube verify`.",
        "how": "Bytes of the files of small releases were changed one at a time, files cut, lengthened, removed and "
        "put in the place of others. Each change must be found, and `verify` may not end in anything but a verdict.",
        "figures": changes,
        "violations": len(unnoticed),
        "broken": unnoticed,
    }
