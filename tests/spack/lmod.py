"""The real Lmod, in a shell that uses a tree of modules."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import subprocess
from pathlib import Path

INIT = Path("/usr/share/lmod/lmod/init/bash")


def loading(name: str) -> str:
    """bash's words that load a module and, where it is not there without, Open MPI's before it; as
    a job template does."""
    return f"{{ module is-avail {name} || module load openmpi; }} && module load {name}"


class Lmod:
    """`lmod("module load hydro", "command -v hydro")`: what these lines of bash print; their last
    one's status is STATUS, and where that is a failure's, what they say of it is told, too."""

    def __init__(self, modules: Path, home: Path) -> None:
        self.use = f'source {INIT} && module use "{modules}" || exit 9'
        self.home = home

    def __call__(self, *lines: str, status: int = 0) -> str:
        env = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.home),
            "LMOD_REDIRECT": "yes",
            "OMP_NUM_THREADS": "1",
        }
        script = "\n".join([self.use, *lines])
        run = {"cwd": self.home, "env": env, "text": True, "capture_output": True, "timeout": 300}
        done = subprocess.run(["bash", "-c", script], **run)
        assert done.returncode == status, f"{script}\n{done.stdout}\n{done.stderr}"
        return done.stdout + (done.stderr if status else "")
