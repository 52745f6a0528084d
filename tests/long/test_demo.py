"""`make demo` where loopback is the only network interface: built from nothing, and run."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.cluster import CHECKOUT, run_child, state_folder

ALONE = CHECKOUT / "tests" / "alone"
DEMO_LIMIT_S = 1000.0  # the build has the most of it
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("options", [["--user"], []], ids=["user", "root"])
def test_the_demo_needs_no_network(tmp_path: Path, options: list[str]) -> None:
    log = tmp_path / "log"
    state = state_folder() / "alone"
    shutil.rmtree(state, ignore_errors=True)
    # not root's own: there Spack may be, or a copy of it that its git knows
    env = {"HOME": str(tmp_path), "PATH": PATH, "JOULEMARK_STATE": str(state)}
    try:
        with log.open("w") as output:
            words = [ALONE, *options, "sh", "-c", "make demo && make clean-demo"]
            streams = {"stdout": output, "stderr": output}
            status = run_child(words, DEMO_LIMIT_S, cwd=CHECKOUT, env=env, **streams)
        said = log.read_text()
        assert status == 0 and "built by cmake" in said and "demo: done in" in said, said
        assert not (state / "demo").exists() and not (state / "user" / "demo").exists()
    finally:
        shutil.rmtree(state, ignore_errors=True)
