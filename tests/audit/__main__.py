"""Run the audit and write its page: `python -m audit [--scale short] [--page FILE] [--kept FOLDER] [PART ...]`.

The figures of each part are kept as JSON, so that one part can be run again, or the page be written anew (`--write`)
without running anything.
"""

import argparse
import importlib
import json
import sys
import time
from pathlib import Path

from audit.page import PARTS, write_page

ROOT = Path(__file__).resolve().parents[2]


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
    for part in [] if given.write else given.parts or PARTS:
        started = time.monotonic()
        print(f"{part} ...", flush=True)
        found = importlib.import_module(PARTS[part]).figures(given.scale)
        found |= {"scale": given.scale, "seconds": round(time.monotonic() - started)}
        (given.kept / f"{part}.json").write_text(json.dumps(found, indent=1, ensure_ascii=False), encoding="utf-8")
        print("\n".join([f"{part}: {found['violations']} violations, {found['seconds']} s", *found.get("broken", [])]))
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
