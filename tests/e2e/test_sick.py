"""A sick instrument is named in its jobs' records, and harms nobody else's energy."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster import Cluster, meanwhile, pause, wait_for
from tests.e2e.jobs import Flag
from tests.e2e.outcome import Outcome, apart_from_launch, audit, outcome, wait_on_disk
from tests.e2e.waveform import STEADY
from tests.peers.machines import Counter, write_files

PERIOD_S = 0.5
AMPLE_S = 30  # a loaded machine starts no script at once


class Meter:
    """A counter of the hwmon class at 50 W, written by a thread, until it falls sick."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "hwmon0"
        write_files(self.folder, {"name": "amd_energy", "energy1_label": "Esocket0"})
        self.counter = Counter(self.folder / "energy1_input", 2**62, 1_000_000_000)
        self.sickness = ""

    def run(self, done: threading.Event) -> None:
        began_s = time.monotonic()
        while not done.wait(0.05):
            if self.sickness == "stuck":
                continue
            back_uj = 900_000_000 if self.sickness == "jumps" else 0
            energy_uj = int(50e6 * (time.monotonic() - began_s)) - back_uj
            self.counter.advance(energy_uj - self.counter.total_uj)


@pytest.fixture
def meter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Meter]:
    folder = tmp_path_factory.mktemp("hwmon")
    for parent in (folder, *folder.parents[:2]):
        parent.chmod(0o755)  # the daemon is another user
    made = Meter(folder)
    with meanwhile(made.run):
        yield made


@pytest.fixture(scope="module")
def beside(cluster: Cluster) -> Iterator[Callable[[dict], Cluster]]:
    """`beside(instrument)`: it lies within a good one of 100 W, on each node."""

    def configure(sick: dict) -> Cluster:
        good = STEADY.instrument(cluster.state / "traces")
        inner = {"name": "sick", "parent": good["name"], "period_s": PERIOD_S, **sick}
        return cluster.change(instruments=[good, inner], daemon={"period_s": PERIOD_S})

    with cluster.changed():
        yield configure


def sick_ones(done: Outcome) -> dict[str, str]:
    """What the record says of each instrument: {"sick": "fails: text"}."""
    (record,) = done.records.values()
    return {
        entry["name"]: "; ".join(f"{fault['what']}: {fault['last']}" for fault in entry["faults"])
        for entry in record["instruments"]
    }


def check_the_rest(done: Outcome) -> None:
    """The good instrument's energy is exact all the same, and the books balance."""
    account = next(iter(done.accounts().values()))
    assert account.energy_j == pytest.approx(account.integral_j(), abs=0.01)
    assert apart_from_launch(account)[0] == 0
    assert sick_ones(done)["steady"] == ""
    for node in done.records:
        channels = audit(done.cluster, node).splitlines()
        assert channels and all(line.endswith(": balanced") for line in channels), channels


def run_job(cluster: Cluster) -> Outcome:
    return outcome(cluster, cluster.sbatch("-N1", "--wrap", "sleep 4"))


@pytest.mark.parametrize(
    ("command", "timeout_s", "named"),
    [
        ("sleep 1000", PERIOD_S, "did not end within"),
        ("echo three hundred", AMPLE_S, "fails:"),
        ("echo NaN", AMPLE_S, "is not a number"),
        ("echo -5", AMPLE_S, "negative"),
        ("exit 3", AMPLE_S, "fails:"),
        ("sleep 0.3; echo 40", AMPLE_S, ""),  # slow, but within its time
    ],
    ids=["hangs", "garbage", "nan", "negative", "disappears", "well"],
)
def test_a_sick_script_is_named_and_delays_nobody(
    beside: Callable[[dict], Cluster], command: str, timeout_s: float, named: str
) -> None:
    script = {"type": "exec", "every": "call", "command": command, "timeout_s": timeout_s}
    done = run_job(beside(script))
    assert named in sick_ones(done)["sick"]
    assert bool(named) == bool(sick_ones(done)["sick"])
    check_the_rest(done)


@pytest.mark.parametrize(
    ("sickness", "named"), [("stuck", "stuck: "), ("jumps", "jumps: "), ("", "")]
)
def test_a_sick_counter_is_named(
    beside: Callable[[dict], Cluster], meter: Meter, sickness: str, named: str
) -> None:
    """And a healthy one is not."""
    cluster = beside({"type": "hwmon", "root": str(meter.folder.parent)})
    node, end = cluster.node("n1"), Flag(cluster, "sick")
    said = node.daemon.news()
    job = cluster.sbatch("-w", "n1", "--wrap", end.wait)
    wait_on_disk(node, job, "batch", "samples", 5)  # the counter is well within the job, too
    meter.sickness = sickness
    if sickness:
        wait_for(lambda: f"instrument sick {sickness}: " in said(), what=f"{sickness} to be said")
    else:
        pause(5 * PERIOD_S)
    end.set()
    done = outcome(cluster, job)
    assert sick_ones(done)["sick"].startswith(named)
    assert bool(sick_ones(done)["sick"]) == bool(sickness)
    check_the_rest(done)
    if sickness:
        assert f"sick {sickness}" in done.column("Faults")
