# `joulemark doctor --nodes`: many nodes at once, by an srun that is none.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys

import pytest
from joulemark.doctor.everywhere import LOOK_S

FINDING = {"check": "sensors", "level": "warning", "where": "x", "value": "y", "fix": "z"}
ANSWER = {"node": "NODE", "time": "NOW", "slurm_conf": {}, "findings": [FINDING]}
SRUN = """\
#!/bin/sh
for word; do case $word in -w*) node=${word#-w};; esac; done
[ "${node#n}" -gt %d ] && touch "$0.$node" && exec sleep 600
own=$0.json.$node
[ -f "$own" ] || own=$0.json
sed "s/NODE/$node/; s/\\"NOW\\"/$(date +%%s.%%N)/" "$own"
"""
SINFO = """\
#!/bin/sh
echo 'n1|idle|none'
echo 'n2|down*|Not responding'
"""


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """Makes a slurm.conf of so many nodes, the last ones of which never answer."""

    def make(nodes: int, hung: int = 0):
        conf = tmp_path / "slurm.conf"
        conf.write_text(f"ClusterName=c\nSlurmctldHost=far\nNodeName=n[1-{nodes}] CPUs=1\n")
        programs = {"srun": SRUN % (nodes - hung), "sinfo": SINFO, "scontrol": "#!/bin/false\n"}
        for name, text in programs.items():
            (tmp_path / name).write_text(text)
            (tmp_path / name).chmod(0o755)
        (tmp_path / "srun.json").write_text(json.dumps(ANSWER))
        monkeypatch.setenv("SLURM_CONF", str(conf))
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        monkeypatch.setattr("joulemark.doctor.everywhere.LOOK_S", 2.0)
        monkeypatch.setattr("joulemark.doctor.everywhere.SHORTEST_LOOK_S", 0.5)

    return make


def nodes_of(text: str, check: str) -> set[str]:
    return set(re.findall(rf"^\w+: (n\d+): {check}: ", text, re.MULTILINE))


def test_each_node_is_asked_and_one_that_is_down_is_not_waited_for(cluster, site):
    cluster(40)
    code, out, _ = site.run("doctor", "--nodes", "all")
    assert code == 1
    assert nodes_of(out, "sensors") == {f"n{n}" for n in range(1, 41) if n != 2}
    assert nodes_of(out, "node") == {"n2"} and "down* (Not responding)" in out


RAPL = "rapl/cpu/counter*2 rapl/dram/counter*2"


def test_a_node_that_is_measured_otherwise_than_its_kind_is_named(cluster, site, tmp_path):
    cluster(5)
    conf = tmp_path / "slurm.conf"
    conf.write_text(
        "ClusterName=c\nSlurmctldHost=far\nNodeName=n[1,3] CPUs=1 Port=1\n"
        "NodeName=n[4-5] CPUs=1 Port=2\nNodeName=n[6-7] CPUs=1 Gres=gpu:4\n"
    )
    quiet = {**ANSWER, "findings": []}
    with_gpus = f"{RAPL} auto-nvml/gpu/counter*4"
    of = {"n4": "rapl/cpu/counter*2", "n6": with_gpus, "n7": with_gpus}
    for name in ("n1", "n3", "n4", "n5", "n6", "n7"):
        text = json.dumps({**quiet, "meters": of.get(name, RAPL)})
        (tmp_path / f"srun.json.{name}").write_text(text)
    _, out, _ = site.run("doctor", "--nodes", "n[1,3-5]")
    lines = [line for line in out.splitlines() if ": alike: " in line]
    assert len(lines) == 1 and lines[0].startswith(
        "warning: n4: alike: instruments: lacks rapl/dram/counter*2, unlike 3 of its kind: "
    ), lines
    (tmp_path / "srun.json.n4").write_text(json.dumps({**quiet, "meters": RAPL}))
    for nodes in ("n[1,3-5]", "n[1,6]", "n[6-7]"):  # the GPUs' nodes are of another kind
        _, out, _ = site.run("doctor", "--nodes", nodes)
        assert ": alike: " not in out
    (tmp_path / "srun.json.n5").write_text(json.dumps(quiet))  # of a release before it told them
    _, out, _ = site.run("doctor", "--nodes", "n[1,3-5]")
    assert ": alike: " not in out


def test_nodes_that_never_answer_hold_up_no_other(cluster, site, tmp_path):
    cluster(100, hung=5)
    code, out, _ = site.run("doctor", "--nodes", "all", "--wait", "20", "--json")
    found = json.loads(out)["findings"]
    hung = {one["node"] for one in found if one["check"] == "node"}
    assert code == 1 and hung == {"n2", *(f"n{n}" for n in range(96, 101))}
    assert len({one["node"] for one in found if one["check"] == "sensors"}) == 94
    began = sorted(path.stat().st_mtime for path in tmp_path.glob("srun.n*"))
    assert len(began) == 5 and began[-1] - began[0] < 20  # else one waits for another's end


@pytest.mark.parametrize("python", ["/usr/bin/python3", "/nowhere/python3"])
def test_a_node_without_the_command_is_told_to_have_it(
    cluster, site, tmp_path, monkeypatch, python
):
    cluster(1)
    alone = 'while [ "$1" != sh ]; do shift; done\nexec env -u PYTHONPATH "$@"\n'
    (tmp_path / "srun").write_text(f"#!/bin/sh\n{alone}")
    monkeypatch.setattr("sys.executable", python)
    _, out, _ = site.run("doctor", "--nodes", "n1")
    line = next(line for line in out.splitlines() if line.startswith("error: n1: node: "))
    assert f"{python}: " in line and line.endswith("joulemark-cli"), line


@pytest.mark.parametrize(
    ("why", "level"), [("Requested nodes are busy", "warning"), ("Invalid account", "error")]
)
def test_a_node_that_is_full_of_jobs_is_not_set_up_wrongly(cluster, site, tmp_path, why, level):
    cluster(1)
    said = f"srun: error: Unable to allocate resources: {why}"
    (tmp_path / "srun").write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
    _, out, _ = site.run("doctor", "--nodes", "n1")
    assert f"\n{level}: n1: node: srun -Q -wn1: {said}: run " in out


def test_a_node_that_is_asked_late_is_waited_for_less_long(cluster, site, monkeypatch):
    """Else the last of a thousand would end long after 15 s (tests/bench/doctor)."""
    cluster(4, hung=2)
    monkeypatch.setattr("joulemark.doctor.everywhere.AT_ONCE", 1)
    _, out, _ = site.run("doctor", "--nodes", "n[3-4]", "--wait", "1", "--json")
    waits = [one["value"] for one in json.loads(out)["findings"] if one["check"] == "node"]
    first_s, second_s = (float(re.fullmatch(r"no answer in (\S+) s", one)[1]) for one in waits)
    assert first_s > 2 and second_s == 1.5


def test_a_program_that_hangs_on_a_node_costs_no_other_finding(
    cluster, site, tmp_path, monkeypatch
):
    """There each program has less time than the node's whole look."""
    cluster(1)
    (tmp_path / "srun").write_text('#!/bin/sh\nwhile [ "$1" != sh ]; do shift; done\nexec "$@"\n')
    (tmp_path / "scontrol").write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr("joulemark.doctor.everywhere.LOOK_S", LOOK_S)
    monkeypatch.setenv("JOULEMARK_ANSWER_S", "0.1")  # this machine's own look
    _, out, _ = site.run("doctor", "--nodes", "n1", "--json")
    found = [one for one in json.loads(out)["findings"] if one["node"] == "n1"]
    assert len(found) > 1 and "node" not in {one["check"] for one in found}


def test_findings_come_as_nodes_answer(cluster, site):
    """The first is there while a node still lets wait."""
    cluster(3, hung=1)
    words = [sys.executable, "-m", "joulemark", "doctor", "--nodes", "n1,n3", "--wait", "3600"]
    pipe = {"stdout": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen(words, **pipe) as doctor:
        assert any(line.startswith("warning: n1: sensors") for line in doctor.stdout)
        assert doctor.poll() is None
        os.killpg(doctor.pid, signal.SIGKILL)


@pytest.mark.parametrize("text", ["0", "-1", "soon", "1e9"])
def test_a_wait_that_is_none_is_refused(site, capsys, text):
    with pytest.raises(SystemExit):
        site.run("doctor", "--wait", text)
    assert f"'{text}' is not a time in seconds" in capsys.readouterr().err
