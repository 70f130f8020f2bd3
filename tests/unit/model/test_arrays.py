"""Memory that is kept from step to step."""

import subprocess
import sys

STEPS = """
import resource, sys
import numpy as np
from hushcube.model.arrays import keep_freed
if sys.argv[1] == "kept":
    keep_freed()
for step in range(21):
    if step == 1:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    arrays = [np.ones(1 << 17) for _ in range(20)]
    del arrays
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // 20)
"""


def test_arrays_of_the_next_step_are_not_paged_in_anew():
    """A step has 20 arrays of 1 MB, or 5,120 pages."""
    faults = {}
    for way in ("kept", "given back"):
        done = subprocess.run([sys.executable, "-c", STEPS, way], capture_output=True, text=True, check=True)
        faults[way] = int(done.stdout)
    assert faults["kept"] < 100 < 1_000 < faults["given back"]
