"""Run the audit and write its page: `python -m audit [--scale short] [--page FILE] [--kept FOLDER] [PART ...]`.

Parts are independent of each other and run side by side, one on each core; the longest start first. The figures of
each part are kept as JSON, so that one part can be run again, or the page be written anew (`--write`) without running
anything.
"""

import argparse
import importlib
import json
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from audit import progress
from audit.page import PARTS, write_page

ROOT = Path(__file__).resolve().parents[2]


def run(part, scale, kept):
    """Run one part and keep its figures."""
    progress.part = part
    started = time.monotonic()
    print(f"{part} ...", flush=True)
    found = importlib.import_module(PARTS[part]).figures(scale)
    found |= {"scale": scale, "seconds": round(time.monotonic() - started)}
    (kept / f"{part}.json").write_text(json.dumps(found, indent=1, ensure_ascii=False), encoding="utf-8")
    lines = [f"{part}: {found['violations']} violations, {found['seconds']} s", *found.get("broken", [])]
    print("\n".join(lines), flush=True)


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="audit", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one of {', '.join(PARTS)}; all of them by default")
    parser.add_argument("--scale", choices=["short", "long"], default="long")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "audit.md")
    parser.add_argument("--kept", type=Path, default=ROOT / "build" / "audit")
    parser.add_argument("--write", action="store_true", help="only write the page from the figures that were kept")
    given = parser.parse_args(arguments)
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"unknown part: {', '.join(sorted(unknown))}")
    given.kept.mkdir(parents=True, exist_ok=True)
    parts = [] if given.write else [part for part in reversed(PARTS) if part in (given.parts or PARTS)]
    if len(parts) > 1:
        with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("fork")) as pool:
            for running in [pool.submit(run, part, given.scale, given.kept) for part in parts]:
                running.result()
    else:
        for part in parts:
            run(part, given.scale, given.kept)
    kept = {
        part: json.loads(path.read_text(encoding="utf-8"))
        for part in PARTS
        if (path := given.kept / f"{part}.json").exists()
    }
    write_page(given.page, kept)
    broken = [part for part, found in kept.items() if found["violations"]]
    print(f"broken: {', '.join(broken)}" if broken else f"every promise held; the figures are in {given.page}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
