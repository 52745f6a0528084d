"""What users' programs mark with, where users can read it: a checkout may be root's alone."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import shutil
import sys
import textwrap
from pathlib import Path

from tests.cluster import CHECKOUT, Cluster

SOURCE = CHECKOUT / "packages" / "joulemark" / "src" / "joulemark"


def folder(cluster: Cluster) -> Path:
    """For programs of any user; `from joulemark import region` works for those in it."""
    path = cluster.state / "scripts"
    package = path / "joulemark"
    package.mkdir(parents=True, exist_ok=True)
    for name in ("__init__.py", "regions.py"):
        shutil.copy(SOURCE / name, package / name)
        (package / name).chmod(0o644)
    for one in (path, package):
        one.chmod(0o755)
    return path


def python(cluster: Cluster, name: str, text: str) -> str:
    """The command that runs this Python program in a job."""
    path = folder(cluster) / f"{name}.py"
    path.write_text(textwrap.dedent(text))
    path.chmod(0o644)
    return f"{sys.executable} -B {path}"
