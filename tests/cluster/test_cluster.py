"""The cluster's own machinery, as far as it needs no Slurm: configuration, services, waiting."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import collections
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import yaml

from tests.cluster import Build, Cluster, ClusterError, Service, Waited, exclusive, wait_for
from tests.cluster.config import (
    Options,
    daemon_config,
    give,
    machine_instruments,
    service_user,
    slurm_conf,
)
from tests.cluster.config import yaml as to_yaml
from tests.cluster.place import CHECKOUT, run_child, state_folder
from tests.cluster.ports import choose_ports, free_port
from tests.cluster.service import leftovers, start_ticks

VALUES = collections.defaultdict(lambda: "x")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    for name in ("services", "log", "etc"):
        (tmp_path / name).mkdir()
    return tmp_path


@pytest.fixture
def sleeper(state: Path):
    service = Service("sleeper", ["sleep", "600"], state, dict(os.environ), ready=lambda: True)
    yield service
    service.stop()


def test_a_service_starts_once_and_dies_by_kill(sleeper: Service) -> None:
    sleeper.start()
    pid = sleeper.pid
    sleeper.start()
    assert pid and sleeper.pid == pid
    sleeper.kill(9)
    assert not sleeper.alive
    sleeper.start()
    assert sleeper.pid not in (None, pid)


def test_another_process_with_a_recorded_pid_is_a_stranger(sleeper: Service, state: Path) -> None:
    mine = {"pid": os.getpid(), "start_ticks": start_ticks(os.getpid()) - 1}
    (state / "services" / "sleeper.json").write_text(json.dumps(mine))
    assert sleeper.pid is None
    sleeper.stop()  # would end this very test if it took the pid's word for it


def test_a_service_whose_record_was_lost_is_found(sleeper: Service, state: Path) -> None:
    sleeper.start()
    pid = sleeper.pid
    (state / "services" / "sleeper.json").unlink()
    assert sleeper.pid is None
    assert leftovers(state, state / "etc" / "slurm.conf") == [pid]
    os.kill(pid, signal.SIGKILL)


def test_a_jobs_process_is_found_but_not_the_users_shell(state: Path) -> None:
    conf = state / "etc" / "slurm.conf"
    user = {"PATH": os.environ["PATH"], "SLURM_CONF": str(conf)}
    job = subprocess.Popen(["sleep", "600"], env={**user, "SLURM_JOB_ID": "1"})
    shell = subprocess.Popen(["sleep", "600"], env=user)
    try:
        assert leftovers(state, conf) == [job.pid]
    finally:
        for process in (job, shell):
            process.kill()
            process.wait()


def test_a_changed_input_makes_a_service_outdated(state: Path, sleeper: Service) -> None:
    conf = state / "etc" / "conf"
    conf.write_text("a")
    sleeper.inputs = [conf]
    sleeper.start()
    assert not sleeper.outdated
    conf.write_text("b")
    assert sleeper.outdated


def test_a_service_that_dies_at_once_says_so_with_its_log(state: Path) -> None:
    command = ["sh", "-c", "echo no such luck; exit 1"]
    service = Service("unlucky", command, state, dict(os.environ), ready=lambda: False)
    with pytest.raises(ClusterError, match=r"unlucky ended(?s:.)*unlucky.out(?s:.)*no such luck"):
        service.start()


def test_waiting_gives_up_with_what_it_waited_for() -> None:
    with pytest.raises(Waited, match="the moon"):
        wait_for(lambda: False, 0.05, "the moon")


def test_ports_stay_unless_a_stranger_has_one(state: Path) -> None:
    names = ["slurmctld", "n1", "n2"]
    first = choose_ports(state, names, {})
    assert choose_ports(state, names, {}) == first
    with socket.socket() as stranger:
        stranger.bind(("", first["n1"]))
        stranger.listen()
        moved = choose_ports(state, names, {})
        assert moved["n1"] != first["n1"] and moved["n2"] == first["n2"]
        assert choose_ports(state, names, {"n1": True})["n1"] == moved["n1"]


def test_of_two_that_choose_at_once_one_gets_a_port(state: Path) -> None:
    """Another run may have chosen it and not listen yet."""
    port = free_port()
    (state / "ports.json").write_text(json.dumps({"n1": port}))
    other = "from tests.cluster.ports import choose_ports; from pathlib import Path; import sys;"
    other += "print(choose_ports(Path(sys.argv[1]), ['n1'], {})['n1'])"
    words = [sys.executable, "-c", other, state]
    done = subprocess.run(words, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert int(done.stdout) != port
    assert choose_ports(state, ["n2"], {})["n2"] not in (port, int(done.stdout))


def test_slurm_conf_takes_overrides() -> None:
    options = Options(contain=False, slurm_conf={"KillWait": "1", "Licenses": "a:1"})
    text = slurm_conf(options, {"n1": 1, "n2": 2}, VALUES)
    assert "PrologFlags" not in text
    assert "\nKillWait=1\n" in text and "KillWait=5" not in text
    assert "\nLicenses=a:1\n" in text
    assert text.count("\nNodeName=") == 2


def test_slurm_conf_loads_our_plugins_only_with_a_build(tmp_path: Path) -> None:
    ports = {"n1": 1, "n2": 2}
    assert "joulemark" not in slurm_conf(Options(), ports, VALUES)
    with_build = slurm_conf(Options(build=Build(tmp_path)), ports, VALUES)
    assert "\nAcctGatherEnergyType=acct_gather_energy/joulemark\n" in with_build


def test_the_daemons_file_is_the_yaml_it_looks_like(tmp_path: Path) -> None:
    replay = {"name": "r", "type": "replay", "file": "/a: b", "repeat": True, "error": {"x": 0.5}}
    config = daemon_config(tmp_path, Options(instruments=[replay, {"name": "m", "idle_w": 1.5}]))
    assert yaml.safe_load(to_yaml(config)) == config
    assert yaml.safe_load(to_yaml({"instruments": []})) == {"instruments": []}


def test_the_machines_best_instrument_is_chosen(tmp_path: Path) -> None:
    powercap, hwmon = tmp_path / "powercap", tmp_path / "hwmon"
    assert machine_instruments(powercap, hwmon)[0]["type"] == "model"
    (hwmon / "hwmon0").mkdir(parents=True)
    (hwmon / "hwmon0" / "power1_input").write_text("1000000\n")
    assert machine_instruments(powercap, hwmon)[0]["type"] == "hwmon"
    (powercap / "intel-rapl:0").mkdir(parents=True)
    (powercap / "intel-rapl:0" / "energy_uj").write_text("5\n")
    assert machine_instruments(powercap, hwmon)[0]["type"] == "powercap"


def test_a_build_without_its_file_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="run environments/build"):
        Build.load(tmp_path)


def test_the_state_folder_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOULEMARK_STATE", "/somewhere")
    assert state_folder() == Path("/somewhere")
    monkeypatch.delenv("JOULEMARK_STATE")
    assert len(f"{state_folder()}/demo/run/joulemarkd-n1.sock") < 108


def test_a_second_holder_of_a_lock_is_told(tmp_path: Path) -> None:
    busy = exclusive(tmp_path / "lock", "somebody is here")
    with exclusive(tmp_path / "lock"), pytest.raises(ClusterError, match="somebody is here"), busy:
        pass


ALONE = "import sys; from tests.cluster.place import run_child; run_child(sys.argv[1:])"
IN_A_THREAD = """\
import sys
from concurrent.futures import ThreadPoolExecutor
from tests.cluster.place import end_children, run_child
with ThreadPoolExecutor(1) as pool:
    running = pool.submit(run_child, sys.argv[1:])
    try:
        running.result()
    except KeyboardInterrupt:
        end_children()
        raise
"""


AT_ITS_START = """\
import os, signal, subprocess, sys
class Popen(subprocess.Popen):
    def __init__(self, *words, **more):
        super().__init__(*words, **more)
        while not os.path.exists(sys.argv[-1]):
            pass
        os.kill(os.getpid(), signal.SIGINT)
subprocess.Popen = Popen
from tests.cluster.place import run_child
run_child(sys.argv[1:])
"""


@pytest.mark.parametrize(
    "code", [ALONE, IN_A_THREAD, AT_ITS_START], ids=["alone", "in a thread", "at its start"]
)
def test_a_stopped_run_takes_its_children_along(tmp_path: Path, code: str) -> None:
    """Ctrl-C: run_child's program ends, and with it what that started."""
    script = (
        f"sleep 600 & echo $! > {tmp_path}/pid.new; mv {tmp_path}/pid.new {tmp_path}/pid; wait"
    )
    words = [sys.executable, "-c", code, "bash", "-c", script, f"{tmp_path}/pid"]
    runner = subprocess.Popen(words, cwd=CHECKOUT, stderr=subprocess.DEVNULL)
    wait_for(lambda: (tmp_path / "pid").exists())
    grandchild = int((tmp_path / "pid").read_text())
    began = time.monotonic()
    runner.send_signal(signal.SIGINT)
    assert runner.wait(60) != 0
    wait_for(lambda: start_ticks(grandchild) is None, what="the grandchild to end")
    assert time.monotonic() - began < 25  # by the signal, not by the end of run_child's patience


def test_run_child_gives_the_exit_status() -> None:
    assert run_child(["sh", "-c", "exit 7"]) == 7


def test_a_new_database_deletes_no_other_ones_files() -> None:
    """A starting MariaDB takes every #sql file of its tmpdir for its own of a run that crashed."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        cluster = Cluster(folder)
        cluster._make_folders()
        others = Path("/tmp") / f"#sql-temptable-{os.getpid():x}-1-1.MAI"
        others.touch()
        give(others, service_user())
        try:
            cluster._create_database()
            assert others.exists() and (cluster.state / "db" / "mysql").is_dir()
        finally:
            others.unlink(missing_ok=True)
