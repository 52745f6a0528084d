# `joulemark top --nodes`: what Slurm has of all, or a visit to each, by commands that are none.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import csv
import json
import os
import sys
import time

import pytest
from joulemark.doctor import everywhere
from joulemark.top import nodes, sources
from joulemark.top.nodes import Nodes, Reading

SCONTROL = """\
#!/bin/sh
case $* in
*nodes*) [ ! -e "$0.away" ] || { echo "Unable to contact slurm controller" >&2; exit 1; };;
esac
case $* in
"show config") echo "AcctGatherNodeFreq      = $(cat "$0.freq") sec";;
*) cat "$0.nodes";;
esac
"""
# A line of Slurm 22.05's for each.
LINE = (
    "NodeName={name} Arch=x86_64 CoresPerSocket=1 CPUAlloc=1 State={state} ThreadsPerCore=1 "
    "CurrentWatts={watts} AveWatts=99 ExtSensorsJoules=n/s ExtSensorsWatts=0\n"
)
SQUEUE = "#!/bin/sh\n[ \"$SQUEUE_USERS\" ] || printf 'n[1-2]\\nn1\\n'\n"
SINFO = (
    "#!/bin/sh\n[ \"$SINFO_PARTITION\" ] || printf 'n1|mixed|none\\nn4|down*|Not responding\\n'\n"
)
# Node i draws 100 W for jobs and i W beside; n3 has no place, n5's daemon refuses, n9 hangs.
SRUN = f"""\
#!{sys.executable}
import os, select, sys, time
name = next(word[2:] for word in sys.argv if word.startswith("-w"))
open(sys.argv[0] + ".started", "a").write(name + " " + str(os.getpid()) + chr(10))
if name == "n3":
    sys.exit("srun: error: Unable to allocate resources: Requested nodes are busy")
if name == "n5":
    print("joulemarkctl: joulemarkd: not permitted: only root may ask this", flush=True)
    sys.exit("srun: error: n5: task 0: Exited with exit code 1")
if name == "n9":
    time.sleep(600)
number, begun = int(name[1:]), time.monotonic()
while True:
    s = 5 + time.monotonic() - begun
    print(f"node={{name}} time_ns={{int(s * 1e9)}} energy_uj={{int(s * (100 + number) * 1e6)}} "
          f"charged_uj={{int(s * 1e8)}} unallocated_uj={{int(s * number * 1e6)}} jobs={{number}} "
          "estimated=0", flush=True)
    if select.select([0], [], [], 0.1)[0] and not os.read(0, 100):
        sys.exit()
"""


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """A folder with the commands, of nodes n1 to n5."""
    programs = {"scontrol": SCONTROL, "squeue": SQUEUE, "sinfo": SINFO, "srun": SRUN}
    for name, text in programs.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "scontrol.freq").write_text("30")
    conf = tmp_path / "slurm.conf"
    conf.write_text("ClusterName=c\nSlurmctldHost=far\nNodeName=n[1-5] CPUs=1\n")
    monkeypatch.setenv("SLURM_CONF", str(conf))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def pids(started):
    """Nodes that were visited, and the processes."""
    lines = started.read_text().splitlines()
    return [(name, int(pid)) for name, pid in map(str.split, lines)]


def rows(out):
    return {line.split()[0]: line.split()[1:] for line in out.splitlines() if line}


def test_slurms_own_power_in_one_answer(cluster, site):
    powers = {"n1": 50, "n2": 250, "n3": 0}
    lines = [LINE.format(name=name, watts=w, state="MIXED") for name, w in powers.items()]
    (cluster / "scontrol.nodes").write_text("".join(lines))
    code, out, _ = site.run("top", "--nodes", "all", "--once")
    found = rows(out)
    assert list(found)[2:5] == ["n2", "n1", "all"]  # the greatest first
    assert found["n2"][:4] == ["250", "-", "-", "1"] and found["n1"][3] == "2"
    assert found["all"][:4] == ["300", "-", "-", "-"]  # two jobs, one of them on both
    assert "a job of several nodes is on each: of all there is no sum" in out.replace("\n", " ")
    assert "each 30 s (AcctGatherNodeFreq)" in out
    assert code == 1 and "n3: Slurm has no power of it: MIXED" in out
    assert "whether it is estimated it does not tell" in out
    record = json.loads(site.run("top", "--nodes", "all", "--once", "--json")[1])
    assert [one["estimated"] for one in record["nodes"]] == [None, None]


def test_csv_says_of_a_silent_node_why(cluster, site):
    powers = {"n1": 50, "n2": 250, "n3": 0}
    lines = [LINE.format(name=name, watts=w, state="MIXED") for name, w in powers.items()]
    (cluster / "scontrol.nodes").write_text("".join(lines))
    code, out, _ = site.run("top", "--nodes", "n[1-3]", "--once", "--format", "csv")
    head, *found = csv.reader(out.splitlines())
    assert code == 1 and tuple(head) == nodes.COLUMNS
    n2, n1, n3 = (dict(zip(head, row)) for row in found)
    assert (n2["node"], n2["power_w"], n2["said"]) == ("n2", "250.0", "")
    assert (n1["node"], n1["jobs"]) == ("n1", "2")
    assert (n3["node"], n3["power_w"], n3["energy_j"]) == ("n3", "", "")
    assert "Slurm has no power of it" in n3["said"]


def test_slurmctld_may_be_away_for_a_moment(cluster, monkeypatch):
    (cluster / "scontrol.nodes").write_text(LINE.format(name="n1", watts=50, state="MIXED"))
    with sources.choose("all", 0.1, split=False, wait_s=1) as watched:
        watched.wait(time.monotonic() + 0.3)
        (cluster / "scontrol.away").touch()
        watched.wait(time.monotonic() + 0.3)
        monkeypatch.setattr("joulemark.top.columns.SILENT_LEAST_S", 0.0)
        watched.wait(time.monotonic() + 0.5)
        assert "Unable to contact slurm controller" in watched.silent()["n1"]
        (cluster / "scontrol.away").unlink()
        assert any(_told(watched) for _ in range(20)) and not watched.failed


def _told(watched) -> bool:
    """Whether a round later all nodes have told; a busy machine may need some."""
    watched.wait(time.monotonic() + 0.3)
    return watched.silent() == {}


def test_of_how_many_jobs_there_are_squeue_alone_knows(cluster, site, monkeypatch):
    """Where it fails nobody; a user's own choice of jobs is not asked for."""
    (cluster / "scontrol.nodes").write_text(LINE.format(name="n1", watts=50, state="MIXED"))
    monkeypatch.setenv("SQUEUE_USERS", "nobody")
    once = ["top", "--nodes", "n1", "--once", "--json"]
    assert json.loads(site.out(*once))["nodes"][0]["jobs"] == 2
    (cluster / "squeue").write_text("#!/bin/sh\nexit 1\n")
    assert json.loads(site.out(*once))["nodes"][0]["jobs"] is None


def test_nodes_are_away_whatever_a_user_looks_at(cluster, monkeypatch):
    monkeypatch.setenv("SINFO_PARTITION", "other")
    assert list(everywhere.away()) == ["n4"]


@pytest.mark.parametrize("words", [["--split"], []])
def test_each_node_is_visited(cluster, site, words):
    (cluster / "scontrol.freq").write_text("30" if words else "0")
    code, out, _ = site.run("top", "--nodes", "all", "--once", "--every", "0.2", *words)
    found = rows(out)
    assert found["n1"][:4] == ["101", "100", "1.00", "1"]
    assert found["n2"][:4] == ["102", "100", "2.00", "2"]
    assert found["all"][:4] == ["203", "200", "3.00", "-"]
    assert code == 1
    assert "n3: srun: error: Unable to allocate resources: Requested nodes are busy" in out
    assert "n4: down* (Not responding)" in out
    assert (
        "n5: joulemarkctl: joulemarkd: not permitted: only root may ask this; without --s" in out
    )
    started = dict(pids(cluster / "srun.started"))
    assert started.keys() == {"n1", "n2", "n3", "n5"}
    for pid in started.values():
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.parametrize("transport", ["mqtt", "directory"])
def test_who_may_not_read_the_brokers_key_asks_slurm(cluster, site, transport):
    """Only where nodes use the broker are they heard there, by whom it lets in."""
    key = "cert_file: /nowhere/%n.pem, " if transport == "mqtt" else ""
    with site.yaml.open("a") as yaml:
        yaml.write(f"transport: {transport}\nmqtt: {{host: nowhere.invalid, {key}tls: true}}\n")
    (cluster / "scontrol.nodes").write_text(LINE.format(name="n1", watts=50, state="MIXED"))
    code, out, _ = site.run("top", "--nodes", "all", "--once")
    assert code == 0 and "By Slurm itself" in out


def test_records_of_nodes(cluster, site):
    code, out, _ = site.run("top", "--nodes", "n[1-2]", "--split", "--once", "--json")
    record = json.loads(out)
    assert code == 0 and record["silent"] == {}
    one, two = sorted(record["nodes"], key=lambda node: node["node"])
    assert one["node"] == "n1" and one["jobs"] == 1 and one["estimated"] is False
    assert two["unallocated_w"] == pytest.approx(2, rel=1e-3)
    assert two["power_w"] == pytest.approx(two["charged_w"] + two["unallocated_w"], rel=1e-6)


def test_who_was_asked_in_vain_is_asked_again(cluster, monkeypatch):
    monkeypatch.setattr(sources, "AGAIN_S", 0.2)
    with sources.Visits(["n3", "n1"], 0.1, 1) as visits:
        for _ in visits.until(time.monotonic() + 30):
            if [name for name, _ in pids(cluster / "srun.started")].count("n3") == 3:
                return
    pytest.fail("it was not")


def test_no_more_are_asked_at_once_than_slurmctld_bears(cluster, monkeypatch):
    monkeypatch.setattr("joulemark.doctor.everywhere.AT_ONCE", 1)
    with sources.Visits(["n9", "n1"], 0.1, 1) as visits:
        assert list(visits.until(time.monotonic() + 1)) == []
    ((name, pid),) = pids(cluster / "srun.started")
    assert name == "n9"
    with pytest.raises(ProcessLookupError):  # though it does not look at its input
        os.kill(pid, 0)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["12", "--nodes", "all"], "name jobs or --nodes, not both"),
        (["abc"], "'abc' is no running job's id: 12, 12_3 or 12+1"),
        (["1.0"], "'1.0' is no"),
        (["1_[1-3]"], "'1_[1-3]' is no"),
        (["--split"], "--split is of --nodes LIST"),
        (["--wait", "5"], "--wait is of --nodes LIST"),
        (["--no-mqtt"], "--no-mqtt is of --nodes LIST"),
        (["--password-file", "/nope"], "--password-file is of --nodes LIST"),
        (["--nodes", "n1", "--no-mqtt", "--user", "x"], "without --no-mqtt"),
    ],
)
def test_wrong_usage(site, capsys, words, why):
    with pytest.raises(SystemExit, match="2"):
        site.run("top", *words)
    assert why in capsys.readouterr().err


def test_no_node_is_not_all_jobs(cluster, site):
    """As of a shell's variable that is not set."""
    assert "--nodes '': is no value" in site.refuses("top", "--nodes", "", "--once")


def test_the_broker_may_be_left_out(cluster, site):
    with site.yaml.open("a") as yaml:
        yaml.write("transport: mqtt\nmqtt: {host: nowhere.invalid}\n")
    (cluster / "scontrol.nodes").write_text(LINE.format(name="n1", watts=50, state="MIXED"))
    once = ["top", "--nodes", "n1", "--once"]
    assert "Without the broker: --no-mqtt" in site.fails(*once)
    assert "By Slurm itself" in site.out(*once, "--no-mqtt")
    assert site.run(*once, "--no-mqtt", "--split")[0] == 0


def line(time_s, energy_j, **more):
    words = {"node": "n1", "time_ns": int(time_s * 1e9), "energy_uj": int(energy_j * 1e6), **more}
    return " ".join(f"{name}={value}" for name, value in words.items())


def test_a_ledger_that_begins_anew_takes_no_energy_back():
    node = nodes.Node()
    for moment in (line(10, 500), line(12, 700), line(14, 100), line(16, 300), line(1, 400)):
        node.take(Reading.parse(moment), 0.0)
    assert node.energy_j == pytest.approx(400)
    assert node.power_w is None  # it has booted since
    node.take(Reading.parse(line(2, 500)), 0.0)
    assert node.power_w == pytest.approx(100)


def test_what_is_no_reading_is_said():
    for text in ("joulemarkctl: no", "time_ns=1", "time_ns=x energy_uj=1", "energy_uj=1", ""):
        assert Reading.parse(text) is None


class Told:
    """A source of what it is given."""

    def __init__(self, *told):
        self.told = told

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def until(self, _):
        yield from self.told


def test_many_that_are_silent_take_one_line():
    names = [f"n{number}" for number in range(40)]
    told = [("n0", line(1, 1)), ("n0", line(2, 2)), ("stranger", line(1, 1))]
    with Nodes(names, Told(*told), "By a test.", 1.0) as watched:
        watched.wait(0.0)
        table, notes = watched.table()
    assert [cells[0] for _, cells in table.body] == ["n0", "all"]
    assert len(notes) == 2 + nodes.FEW + 1 and notes[-1].endswith("n39")
