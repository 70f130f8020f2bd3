"""Requests to stop at many moments of a release: afterwards all of it is published, or nothing is left of it.

    python -m faults.interrupts --moments 252        (in tests/; prints the figures as JSON)

The program is stopped (SIGSTOP) at a moment counted from when it begins to listen, so that what it has published by
then is known; then the request is sent and the program goes on. It must end with 128 plus the signal's number and leave
no file, or, where the release was published before the request, with 0 and the release whole.
"""

import argparse
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from cli.desk import ASKED, BUDGET, listing, write_desk

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
BASE = ["release", *ASKED, *BUDGET, "--out", "new"]
RELEASES = {
    "csv": [*BASE, "--data", "people.csv"],
    "database": [*BASE, "--data", "people.duckdb#people"],
    "face": [*BASE, "--data", "people.parquet", "--face", "integral"],
}
"""Releases of a desk; the last one goes on after it has published."""
LINUX = Path("/proc/self/status").exists()


@dataclass(frozen=True)
class Outcome:
    """What became of a release that was asked to stop; `fault` says what must not be."""

    kind: str
    fault: str | None = None


def make_desk(folder: Path) -> Path:
    """A publisher's folder, and beside it the folder for temporary files."""
    desk = folder / "desk"
    for made in (desk, folder / "temporary"):
        made.mkdir()
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        write_desk(desk)
    return desk


def interrupted(desk: Path, arguments: list[str], number: int, moment: float) -> Outcome:
    """Run a release, ask it to stop so many seconds after it begins to listen, and judge what is left."""
    temporary, new = desk.parent / "temporary", desk / "new"
    before = listing(desk)
    with subprocess.Popen(
        [sys.executable, "-m", "hushcube", *arguments],
        cwd=desk,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        try:
            _until_it_listens(run)
            time.sleep(moment)
            run.send_signal(signal.SIGSTOP)
            published = new.exists()
            run.send_signal(number)
            run.send_signal(signal.SIGCONT)
            _, told = run.communicate(timeout=60)
        finally:
            run.kill()
    left = listing(temporary)
    after = listing(desk)
    release = {name: after.pop(name) for name in list(after) if name.split("/")[0] == "new"}
    outcome = _judge(run.returncode, told, number, was_published=published, release=bool(release), whole=_whole(new))
    shutil.rmtree(new, ignore_errors=True)
    if after != before or left:
        return Outcome("litter", f"left behind: {sorted(set(after) ^ set(before))} {sorted(left)}")
    return outcome


def _until_it_listens(run: subprocess.Popen) -> None:
    """Wait until the process catches SIGTERM: what Python does before our first line is not ours."""
    while run.poll() is None:
        caught = Path(f"/proc/{run.pid}/status").read_text().partition("SigCgt:")[2].split()[0]
        if int(caught, 16) >> (signal.SIGTERM - 1) & 1:
            return
        time.sleep(0.001)


def _whole(folder: Path) -> bool:
    """Whether a release can be opened, and holds nothing but what its manifest lists."""
    import hushcube as hc
    from hushcube.errors import BadInput

    try:
        hc.open(folder)
    except BadInput:
        return False
    listed = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["checksums"]
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    return found == {*listed, "manifest.json"}


def _judge(code: int, told: str, number: int, *, was_published: bool, release: bool, whole: bool) -> Outcome:
    if release and not whole:
        return Outcome("damaged", "the release is not whole")
    if "Traceback" in told or "Exception ignored" in told:
        return Outcome("traceback", told[-2000:])
    if code == 0:
        known = was_published and whole
        return Outcome("published", None if known else "published after it had been asked to stop")
    if code != 128 + number:
        return Outcome("other", f"exit code {code}: {told[-500:]}")
    if release:
        known = was_published and "published in new" in told
        return Outcome("published, then interrupted", None if known else f"published, but: {told[-500:]}")
    if "interrupted" not in told or "nothing was published" not in told:
        return Outcome("other", f"interrupted, but: {told[-500:]}")
    return Outcome("interrupted")


def duration(desk: Path, arguments: list[str]) -> float:
    """How long a release takes from when it begins to listen, so that moments can be spread over it."""
    with chdir(desk), tempfile.TemporaryDirectory() as temporary:
        renamed = [f"{temporary}/new" if word == "new" else word for word in arguments]
        nowhere = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        run = subprocess.Popen([sys.executable, "-m", "hushcube", *renamed], **nowhere)
        _until_it_listens(run)
        start = time.monotonic()
        if run.wait(60) != 0:
            raise RuntimeError("the release fails without any request to stop")
        return time.monotonic() - start


def campaign(folder: Path, *, moments: int, signals=SIGNALS, releases=tuple(RELEASES)) -> dict:
    """Interrupt every kind of release by every signal, at so many moments in all, spread evenly; the figures."""
    desk = make_desk(folder)
    kinds, faults = Counter(), []
    each = -(-moments // (len(signals) * len(releases)))
    for name in releases:
        length = duration(desk, RELEASES[name])
        for number in signals:
            for moment in (at * length / each for at in range(each)):
                outcome = interrupted(desk, RELEASES[name], number, moment)
                kinds[outcome.kind] += 1
                if outcome.fault:
                    faults.append(f"{name}, {signal.Signals(number).name} after {moment:.3f} s: {outcome.fault}")
    return {"moments": kinds.total(), "outcomes": dict(kinds), "faults": faults}


def main() -> int:
    """Print the figures; the exit code is 1 where a release was torn, lost a request or left litter."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moments", type=int, default=252, metavar="NUMBER")
    with tempfile.TemporaryDirectory() as folder:
        figures = campaign(Path(folder), moments=parser.parse_args().moments)
    print(json.dumps(figures, indent=1))
    return 1 if figures["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
