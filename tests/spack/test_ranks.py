"""`spack test run`: who starts a benchmark's two ranks."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import CHECKOUT
from tests.stranger import stranger_in

ENVIRONMENT = """\
# SPDX-License-Identifier: Apache-2.0 OR MIT
spack:
  view: false
  concretizer: {{reuse: false}}
  specs: ["hydro@main ^[virtuals=mpi] cray-mpich"]
  packages:
    cray-mpich: {{buildable: false, externals: [{{spec: cray-mpich@8.1.28, prefix: {mpi}}}]}}
"""
TEST = (
    "import spack.environment as e; "
    "e.active_environment().concrete_roots()[0].package.test_ranks()"
)


def program(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('#!/bin/sh\necho "${0##*/} $*"\n')
    path.chmod(0o755)


@pytest.fixture
def run_ranks(tmp_path):
    """Hydro's test of ranks, with an MPI in tmp_path/mpi; `srun` is in tmp_path/bin."""
    (tmp_path / "environment").mkdir()
    text = ENVIRONMENT.format(mpi=tmp_path / "mpi")
    (tmp_path / "environment/spack.yaml").write_text(text)
    program(tmp_path / "bin/srun")
    spack = stranger_in(tmp_path / "spack", PATH=f"{tmp_path}/bin:/usr/bin:/bin")
    here = ("-e", tmp_path / "environment")
    spack("repo", "add", CHECKOUT / "spack-repo/spack_repo/joulemark")
    spack(*here, "concretize")
    return lambda: spack(*here, "python", "-c", TEST)


def test_srun_starts_the_ranks_of_an_mpi_without_mpiexec(run_ranks, tmp_path):
    """Cray's."""
    said = run_ranks()
    assert "srun -n 2 " in said and "/bin/hydro --quick" in said, said
    program(tmp_path / "mpi/bin/mpiexec")
    assert "mpiexec -n 2 " in run_ranks()
