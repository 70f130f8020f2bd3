"""Installing hushcube compiles its C files, where there is a compiler; without, Python counts, more slowly."""

import os
import shlex
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCES = [Path("src/hushcube/private/engines") / name for name in ("counting.c", "pages.c")]


class Compiled(BuildHookInterface):
    """Makes kernels.compiled, beside its sources, part of the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Compile; the wheel is then one for this kind of machine, with any Python."""
        if self.target_name != "wheel":
            return
        built = SOURCES[0].with_name("kernels.compiled")
        compiler = shlex.split(os.environ.get("CC", "cc"))
        command = [*compiler, "-std=c99", "-O3", "-shared", "-fPIC", "-o", str(built), *map(str, SOURCES)]
        try:
            subprocess.run(command, cwd=self.root, check=True, capture_output=True)  # noqa: S603
        except (OSError, subprocess.CalledProcessError) as problem:
            (Path(self.root) / built).unlink(missing_ok=True)
            self.app.display_warning(f"there is no compiled code ({problem}): numpy counts instead")
            return
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["artifacts"].append(str(built))
        build_data.update(pure_python=False, tag=f"py3-none-{platform}")
