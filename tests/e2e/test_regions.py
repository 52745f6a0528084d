"""Regions: a program's own marks, from the shell and from any language, and who may do what."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.e2e.outcome import Outcome, joulemarkctl, outcome

USER = None if os.geteuid() else "nobody"  # marks are for everybody

# What any language can do: one packet a question, over a SEQPACKET socket.
CLIENT = """
import json, os, socket, sys, time

def ask(text):
    link.send(text.encode())
    verb, *fields = link.recv(4096).decode().split()
    return {"verb": verb, **dict(field.split("=", 1) for field in fields)}

link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
link.connect(os.environ.get("JOULEMARK_SOCKET", sys.argv[-1]))
"""
NESTED = """
ask("region_begin name=outer")
time.sleep(0.4)
ask("region_begin name=in%20ner")
time.sleep(0.5)
inner = ask("region_end name=in%20ner")
time.sleep(0.3)
print(json.dumps([inner, ask("region_end name=outer"), ask("region_end name=outer")]))
"""
FORBIDDEN = ["open job=1 step=0", "read", "close", "end job=1", "node", "books"]
FORBIDDEN_SCRIPT = f"print(json.dumps([ask(text) for text in {FORBIDDEN!r}]))"


@pytest.fixture(scope="module")
def folder(steady: Cluster) -> Path:
    """Where jobs of any user find the scripts."""
    path = steady.state / "scripts"
    path.mkdir(exist_ok=True)
    path.chmod(0o755)
    return path


def client(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.py"
    path.write_text(CLIENT + text)
    path.chmod(0o644)
    return path


def run_job(cluster: Cluster, command: str) -> Outcome:
    job = cluster.sbatch("-w", "n1", "--exclusive", "--wrap", command, user=USER)
    done = outcome(cluster, job)
    assert done.rows["job"]["ExitCode"] == "0:0", cluster.job_output(job)
    return done


def regions(done: Outcome, step: str) -> dict[str, dict]:
    return {region["name"]: region for region in done.accounts(step)["n1"]["regions"]}


def assert_hundred_watts(energy_uj: float, uncertainty_uj: float, seconds: float) -> None:
    expected_uj = 100e6 * seconds
    assert abs(energy_uj - expected_uj) <= uncertainty_uj + 0.01 * expected_uj


def test_a_shell_command_is_a_region_and_regions_nest(steady: Cluster) -> None:
    mark = f"{joulemarkctl(steady)} region"
    done = run_job(steady, f"srun {mark} outer -- {mark} inner -- sleep 0.6")
    found = regions(done, "0")
    assert set(found) == {"outer", "inner"}
    for region in found.values():
        assert region["count"] == 1 and region["seconds"] > 0.6
        assert_hundred_watts(region["energy_uj"], region["uncertainty_uj"], region["seconds"])
    assert found["inner"]["seconds"] <= found["outer"]["seconds"]
    assert found["inner"]["energy_uj"] <= found["outer"]["energy_uj"] <= done.energy_uj("0")
    said = steady.job_output(done.job)
    assert f"inner: {found['inner']['energy_uj'] / 1e6:.3f} J +- " in said


def test_regions_from_another_language(steady: Cluster, folder: Path) -> None:
    path = client(folder, "nested", NESTED)
    done = run_job(steady, f"{sys.executable} {path}")
    inner, outer, again = json.loads(steady.job_output(done.job))
    recorded = regions(done, "batch")
    for answer, name, at_least_s in ((inner, "in ner", 0.5), (outer, "outer", 1.2)):
        assert answer["verb"] == "ok" and answer["estimated"] == "0"
        seconds = float(answer["seconds"])
        assert at_least_s <= seconds < at_least_s + 1
        energy_uj = int(answer["energy_uj"])
        assert_hundred_watts(energy_uj, float(answer["uncertainty_uj"]), seconds)
        assert recorded[name]["energy_uj"] == energy_uj
    assert again["verb"] == "error"


def test_a_region_that_ran_often_is_one_line_with_its_count(steady: Cluster) -> None:
    mark = f"{joulemarkctl(steady)} region loop -- sleep 0.2"
    done = run_job(steady, f"{mark}; {mark}; {mark}")
    (region,) = regions(done, "batch").values()
    assert region["name"] == "loop" and region["count"] == 3
    assert_hundred_watts(region["energy_uj"], region["uncertainty_uj"], region["seconds"])


@pytest.mark.skipif(USER is None, reason="only root can be another user than the daemon's")
def test_another_user_may_not_touch_accounts(steady: Cluster, folder: Path) -> None:
    """Neither from outside nor from within a job: the daemon asks the kernel who calls."""
    path = client(folder, "forbidden", FORBIDDEN_SCRIPT)
    outside = steady.run([sys.executable, path, steady.node("n1").socket], user=USER)
    inside = steady.job_output(run_job(steady, f"{sys.executable} {path}").job)
    for answers in (json.loads(outside), json.loads(inside)):
        assert len(answers) == len(FORBIDDEN)
        for answer in answers:
            assert answer["verb"] == "error" and "not%20permitted" in answer["text"], answer


def test_marks_outside_a_job_are_refused(steady: Cluster, folder: Path) -> None:
    path = client(folder, "stray", 'print(json.dumps(ask("region_begin name=stray")))')
    text = steady.run([sys.executable, path, steady.node("n1").socket], user=USER)
    answer = json.loads(text)
    assert answer["verb"] == "error" and "no%20job%20step" in answer["text"]


@pytest.mark.parametrize("socket", ["/nowhere/joulemarkd.sock", ""], ids=["gone", "empty"])
def test_marks_without_a_daemon_do_nothing(steady: Cluster, tmp_path: Path, socket: str) -> None:
    prefix = steady.options.build.slurm_prefix
    env = {**steady.env, "JOULEMARK_SOCKET": socket}
    run = {"env": env, "cwd": tmp_path, "capture_output": True, "text": True}
    done = subprocess.run([prefix / "bin" / "joulemarkctl", "region", "x", "--", "true"], **run)
    assert done.returncode == 0
    module = f"module use {steady.options.build.modules} && module load jm-stream"
    quick = f". /usr/share/lmod/lmod/init/bash && {module} && jm-stream --quick --cooked c.jsonl"
    done = subprocess.run(["bash", "-c", quick], **run)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]
    assert lines and all(line["verified"] and line["energy_j"] is None for line in lines)
