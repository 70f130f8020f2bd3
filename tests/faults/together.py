"""Recovers at the same time, and readers meanwhile: no release is destroyed, no face is lost, and no reader fails.

Of two releases to one folder one is published, and the other is told that the folder is taken.
"""

from itertools import combinations_with_replacement, cycle, islice

from faults.program import FACE, FACES, RELEASE, Program, faults_of, names

READERS = (
    ["show", "DESK/published", "sex", "--face", "consistent", "--json"],
    ["show", "DESK/published", "sex*age", "--face", "face-valid"],
    ["verify", "DESK/published"],
    ["show", "DESK/published"],
)


def part(program: Program, pairs: int) -> dict:
    """Run so many pairs of recovers of one release; the figures."""
    program.fresh("published")
    before = names(program.desk)
    destroyed, lost, reads, problems = 0, 0, 0, []
    present, readers = {"consistent", "face-valid"}, cycle(READERS)
    for pair in islice(cycle(combinations_with_replacement(FACES, 2)), pairs):
        running = [program.start([*FACE, face]) for face in pair]
        present |= {FACES[face] for face in pair}
        for _ in range(2):
            command = next(readers)
            code, told, _ = program.run(command)
            reads += 1
            if code and "sex*age" not in command:
                problems.append(f"{command[0]} fails during recovers of {pair}: {told[-300:]}")
        for face, run in zip(pair, running, strict=True):
            code, told, _ = run.wait()
            if code:
                problems.append(f"recover {face} fails beside another: {told[-300:]}")
        faults, manifest = faults_of(program.desk / "published")
        destroyed += bool(faults)
        lost += len(present - set(manifest["faces"]))
        problems += [f"after {pair}: {fault}" for fault in faults]
        problems += [f"after {pair}: lost {face}" for face in present - set(manifest["faces"])]
    listed = {f"published/{name}" for name in manifest["checksums"]}
    left = {n for n in names(program.desk) - before - listed if not (program.desk / n).is_dir()}
    problems += [f"left: {sorted(left)}"] * bool(left)
    races = pairs // 10 + 1
    problems += [problem for _ in range(races) for problem in _race(program)]
    return {"pairs": pairs, "races": races, "destroyed": destroyed, "lost": lost, "reads": reads, "problems": problems}


def _race(program: Program) -> list[str]:
    """Two releases to one folder."""
    program.fresh("plain")
    before = names(program.desk)
    running = [program.start([*RELEASE, "DESK/new"]) for _ in range(2)]
    ended = sorted(run.wait()[:2] for run in running)
    problems, _ = faults_of(program.desk / "new")
    (first, _), (second, told) = ended
    if (first, second) != (0, 2) or not ("another process made" in told or "exists already" in told):
        problems.append(f"two releases to one folder: exit codes {first} and {second}: {told[-300:]}")
    left = {name for name in names(program.desk) - before if name.split("/")[0] != "new"}
    return problems + [f"two releases to one folder: left {sorted(left)}"] * bool(left)
