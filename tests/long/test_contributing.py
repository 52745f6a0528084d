"""CONTRIBUTING.md's commands, in their order, in a fresh clone with an empty home."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.cluster import CHECKOUT, run_child

LIMIT_S = 900.0  # the quarter of an hour that it promises
COMMAND = re.compile(r"^    (.+)$", re.MULTILINE)


def test_its_commands_lead_to_a_tested_change(tmp_path: Path) -> None:
    commands = COMMAND.findall((CHECKOUT / "CONTRIBUTING.md").read_text())
    assert commands[0] == "tests/setup" and len(commands) > 5
    with tempfile.TemporaryDirectory(prefix="jm-", dir="/var/tmp") as name:  # sockets lie in it
        folder = Path(name)
        folder.chmod(0o755)
        clone, log = folder / "clone", folder / "log"
        subprocess.run(["git", "clone", "-q", CHECKOUT, clone], check=True, timeout=60)
        env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "JOULEMARK_STATE": f"{name}/s"}
        script = "set -ex\n" + "\n".join(commands) + "\ntests/all --clean\n"
        with log.open("w") as output:
            streams = {"stdout": output, "stderr": output}
            status = run_child(["bash", "-c", script], LIMIT_S, cwd=clone, env=env, **streams)
        assert status == 0, log.read_text()[-4000:]
        shutil.rmtree(folder / "s", ignore_errors=True)
