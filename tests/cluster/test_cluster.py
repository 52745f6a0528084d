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

from environments.building.lock import Held, locked
from tests.cluster import (
    Build,
    Cluster,
    ClusterError,
    Service,
    Waited,
    exclusive,
    processes,
    supervisor,
    wait_for,
)
from tests.cluster.child import _namespace, run_child
from tests.cluster.config import (
    Options,
    daemon_config,
    give,
    machine_instruments,
    service_user,
    slurm_conf,
)
from tests.cluster.config import yaml as to_yaml
from tests.cluster.place import CHECKOUT, state_folder
from tests.cluster.ports import choose_ports, free_port
from tests.cluster.processes import start_ticks
from tests.cluster.service import leftovers

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
    conf = state / "etc" / "slurm.conf"  # its environment names it, which exec makes last
    wait_for(lambda: leftovers(state, conf) == [pid], what="it to be found")
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


def test_waiting_says_what_it_saw_at_its_end_not_at_its_beginning() -> None:
    looks = []
    with pytest.raises(Waited, match=r"the moon; looks: [2-9]"):
        wait_for(lambda: looks.append(1), 0.1, lambda: f"the moon; looks: {len(looks)}")


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
    lock = tmp_path / "lock"
    told = rf"somebody is here: {lock} is held by process {os.getpid()} since "
    busy = exclusive(lock, "somebody is here")
    with exclusive(lock), pytest.raises(ClusterError, match=told), busy:
        pass


def test_a_lock_is_waited_for_in_bounded_time_and_not_inherited(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with locked(lock, 0):
        child = subprocess.Popen(["sleep", "60"], close_fds=False)
        with pytest.raises(Held, match=r"waited 0\.2 s"), locked(lock, 0.2):
            pass
    try:
        with locked(lock, 0):
            pass
    finally:
        child.kill()
        child.wait()


ALONE = "import sys; from tests.cluster.child import run_child; run_child(sys.argv[1:], 600)"
IN_A_THREAD = """\
import sys
from concurrent.futures import ThreadPoolExecutor
from tests.cluster.child import end_children, run_child
with ThreadPoolExecutor(1) as pool:
    running = pool.submit(run_child, sys.argv[1:], 600)
    try:
        running.result()
    except KeyboardInterrupt:
        end_children()
        raise
"""


AT_ITS_START = """\
import os, signal, subprocess, sys
from tests.cluster import child
child._namespace()
class Popen(subprocess.Popen):
    def __init__(self, *words, **more):
        super().__init__(*words, **more)
        while not os.path.exists(sys.argv[-1]):
            pass
        os.kill(os.getpid(), signal.SIGINT)
subprocess.Popen = Popen
child.run_child(sys.argv[1:], 600)
"""


@pytest.mark.parametrize(
    "code", [ALONE, IN_A_THREAD, AT_ITS_START], ids=["alone", "in a thread", "at its start"]
)
def test_a_stopped_run_takes_its_children_along(tmp_path: Path, code: str) -> None:
    """Ctrl-C: run_child's program ends, and with it what that started."""
    sleep = f"sleep 600.{os.getpid()}{time.monotonic_ns()}"  # its pid is of another namespace
    script = f"{sleep} & touch {tmp_path}/started; wait"
    words = [sys.executable, "-c", code, "bash", "-c", script, f"{tmp_path}/started"]
    runner = subprocess.Popen(words, cwd=CHECKOUT, stderr=subprocess.DEVNULL)
    wait_for(lambda: (tmp_path / "started").exists())
    wait_for(lambda: processes_that_run(sleep) or code == AT_ITS_START)  # it may start later
    began = time.monotonic()
    runner.send_signal(signal.SIGINT)
    assert runner.wait(60) != 0
    wait_for(lambda: not processes_that_run(sleep), what="the grandchild to end")
    assert time.monotonic() - began < 25  # by the signal, not by the end of run_child's patience


def processes_that_run(command: str) -> list[int]:
    return [p for p in processes.all_pids() if " ".join(processes.command(p)) == command]


def test_run_child_gives_the_exit_status() -> None:
    assert run_child(["sh", "-c", "exit 7"], 60) == 7


@pytest.fixture(params=["namespace", "subreaper"])
def supervised(request: pytest.FixtureRequest, capfd: pytest.CaptureFixture[str]):
    """`supervised(limit_s, script)`: exit status and what was said of a shell's script."""
    namespace = _namespace() if request.param == "namespace" else ()
    if request.param == "namespace" and os.geteuid() == 0:
        assert namespace, "root may make a namespace here"

    def run(limit_s: float, script: str) -> tuple[int, str]:
        words = [*namespace, sys.executable, supervisor.__file__, str(limit_s), "sh", "-c", script]
        env = {**os.environ, "PYTHONFAULTHANDLER": "1"}
        child = subprocess.Popen(words, stdin=subprocess.PIPE, env=env)
        return child.wait(60), "".join(capfd.readouterr())

    return run


HANGS = """\
import time
def test_that_hangs():
    time.sleep(600.25)
test_that_hangs()
"""


def test_what_is_late_ends_and_says_where_it_stands(supervised, tmp_path: Path) -> None:
    """A grandchild that left its session and holds our pipe ends, too."""
    (tmp_path / "hangs.py").write_text(HANGS)
    status, said = supervised(10, f"setsid sleep 600.5 & {sys.executable} {tmp_path}/hangs.py")
    assert status == supervisor.LATE
    assert "HUNG: no end after 10 s" in said and "sleep 600.5" in said
    assert 'hangs.py", line 3 in test_that_hangs' in said
    assert not processes_that_run("sleep 600.5")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_frozen_file_system_holds_up_no_end(supervised, tmp_path: Path) -> None:
    """Its writer waits in the kernel, where no signal reaches it."""
    make = f"""cd {tmp_path}; truncate -s 4M image; mkdir disk; mkfs.ext4 -q image
mount -o loop image disk; fsfreeze --freeze disk"""
    subprocess.run(["sh", "-ec", make], check=True)
    try:
        status, said = supervised(2, f"echo x >{tmp_path}/disk/file")
        assert status == supervisor.LATE, said
        assert " D" in said and "outlive" not in said
    finally:
        subprocess.run(["fsfreeze", "--unfreeze", tmp_path / "disk"], stderr=subprocess.DEVNULL)
        subprocess.run(["umount", tmp_path / "disk"], check=True)


def test_what_is_left_behind_is_named_and_ended(supervised) -> None:
    status, said = supervised(60, "setsid sleep 600.75 & exit 0")
    assert status == supervisor.LEFT_BEHIND
    assert "LEFT BEHIND" in said and "sleep 600.75" in said
    assert not processes_that_run("sleep 600.75")


def test_a_supervised_status_is_the_programs_own(supervised) -> None:
    assert supervised(60, "exit 7") == (7, "")
    assert supervised(60, "kill -9 $$") == (128 + 9, "")


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
            made = [(cluster.state / "db" / name).is_dir() for name in ("mysql", "slurm_acct_db")]
            assert others.exists() and made == [True, True]
        finally:
            others.unlink(missing_ok=True)
