# `joulemark top`: what joulemarkctl tells, by an srun that is none, while jobs come and go.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import contextlib
import csv
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

import pytest
from joulemark.top import columns, jobs, readings
from joulemark.top.jobs import Jobs
from joulemark.top.readings import OnNode, Reading, Sum
from joulemark.top.streams import Streams

from tests.cluster import wait_for

# As joulemarkctl has it; the time and what grows with it are put in.
LINE = (
    "node=n{node} job={job} time_ns={time_ns} seconds={s:.6f} energy_uj={uj} uncertainty_uj=1 "
    "systematic_uj={sys} common_uj=3000.000000 random_uj=4000.000000 ends_uj=100.000000 "
    "estimated=1 max_hz=5.000000 cpu_uj={cpu} rest_uj=5"
)
# 100 W on each node, 70 of them processors'; a job whose file in the folder is gone has ended.
SRUN = f"""\
#!{sys.executable}
import os, select, sys, time
words = dict(word.partition("=")[::2] for word in sys.argv if word.startswith("--"))
job, nodes = str(int(words["--jobid"]) + int(words.get("--het-group", 0))), int(words["--nodes"])
path = os.path.join(os.path.dirname(sys.argv[0]), "job-" + job)
print("srun: cluster configuration lacks support for cpu binding", flush=True)
open(path + ".srun", "a").write(" ".join([str(os.getpid()), *sys.argv[1:], chr(10)]))
if job == "14":
    sys.exit("srun: error: Unable to create step for job 14: Access/permission denied")
begun = time.monotonic()
while os.path.exists(path):
    s = 10 + time.monotonic() - begun
    for node in range(1, nodes + 1):
        print({LINE!r}.format(node=node, job=job, time_ns=int(s * 1e9), s=s, uj=int(s * 1e8),
                              sys=s * 1e6, cpu=int(s * 7e7)), flush=True)
    if select.select([0], [], [], 0.1)[0] and not os.read(0, 100):
        sys.exit()
print("srun: error: step terminated")
"""
SQUEUE = """\
#!/bin/sh
echo "$*" >> "$0.words"
for word; do
    case $word in *%A*) mark=${word%%%*};; esac
done
for job in "${0%squeue}"job-??; do
    [ ! -e "$job" ] || { printf %s "$mark"; cat "$job"; }
done
"""


# The record of each job that has a file record-NN, in AdminComment, after another program's lines.
SACCT = r"""#!/bin/sh
d=${2#--delimiter=}
for job in "${0%sacct}"record-??; do
    [ ! -e "$job" ] || printf 'paid\nby %s\n' "$(cat "$job")$d${job##*-}${d}demo${d}1${d}2"
done
"""
RECORD = "<joulemark 1: Energy: 1234.5 J +- 6.7 J (k=2), 100.0 W mean, 1 node, counter{}>"


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """A folder with the commands; a file job-NN, squeue's line of it, is a job that runs."""
    for name, text in {"srun": SRUN, "squeue": SQUEUE, "sacct": SACCT, "joulemarkctl": ""}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr("joulemark.top.jobs.LIST_S", 0.2)
    return tmp_path


def begin(cluster, raw, name="wrap", nodes=1, elapsed="1:02", job_id=None, state="RUNNING"):
    line = f"{raw}|{job_id or raw}|{state}|{nodes}|{elapsed}|{name}\n"
    (cluster / "new").write_text(line)
    (cluster / "new").replace(cluster / f"job-{raw}")  # whole: squeue may be reading it


def sruns(cluster, raw):
    """The processes that were started for a job, with their words."""
    lines = (cluster / f"job-{raw}.srun").read_text().splitlines()
    return [(int(line.split()[0]), line.split()[1:]) for line in lines]


def is_gone(pid, patience_s=10):
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


def reading(time_s, energy_j, node="n1", **changes):
    about = {"systematic_uj": energy_j * 1e4, "common_uj": 3e5, "random_uj": 4e5, "ends_uj": 1e5}
    about.update(estimated=False, max_hz=10.0, cpu_uj=None, gpu_uj=None, **changes)
    return Reading(node, int(time_s * 1e9), time_s, int(energy_j * 1e6), **about)


def test_what_joulemarkctl_prints_is_read():
    line = LINE.format(node=1, job=7, time_ns=5, s=2.5, uj=9, sys=1.5, cpu=3)
    assert Reading.parse(line) == Reading(
        "n1", 5, 2.5, 9, 1.5, 3000.0, 4000.0, 100.0, True, 5.0, 3, None
    )
    assert Reading.parse("srun: error: node=n1 is down") is None
    assert Reading.parse(line.replace("=9", "=x")) is None


def test_sums_have_their_errors():
    """Over nodes what is alike adds up; over jobs what is systematic alone."""
    nodes = []
    for name in ("n1", "n2"):
        node = OnNode(reading(10, 1000, name), 0.0)
        node.take(reading(10, 1000, name), 0.0)  # the same moment: nothing new
        assert node.rate("energy_uj") is None
        node.take(reading(12, 1300, name, random_uj=5e5), 0.0)
        nodes.append(node)
    one = readings.of_job(nodes, nodes)
    assert one.power_w == pytest.approx(2 * 150) and one.cpu_w is None
    assert one.mean_w == pytest.approx(2 * 1300 / 12)
    systematic_j, common_j, random_j = 2 * 13, 2 * 0.3, 0.5 * 2**0.5
    square = systematic_j**2 + common_j**2 + random_j**2
    assert one.error_j == pytest.approx(2 * square**0.5)
    grown_j = (0.5**2 - 0.4**2 + 2 * 0.1**2) ** 0.5
    assert one.error_w == pytest.approx(2 * ((2 * 3 / 2) ** 2 + (2 * grown_j / 2) ** 2) ** 0.5)
    both = readings.total([one, one])
    assert both.energy_j == 2 * one.energy_j and both.systematic_j == 2 * one.systematic_j
    assert both.random_j == pytest.approx(2**0.5 * one.random_j)
    late = OnNode(reading(12, 5, "n3"), 0.0)  # it has told once
    assert readings.of_job([*nodes, late], [*nodes, late]).power_w is None
    silent = readings.of_job(nodes, nodes[:1])
    assert silent.power_w == pytest.approx(150) and silent.energy_j == one.energy_j


def test_an_estimate_has_no_digit_that_its_error_leaves_unknown():
    about = {"estimated": True, "power_w": 54.4, "random_w": 14.0, "mean_w": 41.8}
    cells = jobs._cells(Sum(504.9, systematic_j=87.5, **about), columns.Joules([504.9]), True)
    assert cells[:5] == ["~54", "28", "~42", "~500", "180"]
    measured = Sum(504.9, systematic_j=87.5, **{**about, "estimated": False})
    cells = jobs._cells(measured, columns.Joules([504.9]), True)
    assert cells[:5] == ["54.4", "28.0", "41.8", "504.9", "175"]


def test_one_round(cluster, site):
    begin(cluster, 12, nodes=2)
    begin(cluster, 13, name="a|b", elapsed="1-00:00:01", job_id="13_1")
    out = site.out("top", "--once", "--every", "0.2")
    rows = {line.split()[0]: line.split() for line in out.splitlines() if line}
    assert rows["12"][1:3] == ["wrap", "2"] and rows["13_1"][1:3] == ["a|b", "1"]
    assert rows["12"][3].startswith("00:01:0") and rows["13_1"][3].startswith("1-00:00:0")
    assert rows["12"][4:7] == ["~200", "4.0", "~200"] and rows["all"][1] == "~300"
    assert rows["12"][9:] == ["~140", "-"] and "ESTIMATED" in out and "\x1b" not in out
    assert 2000 <= float(rows["12"][7].strip("~")) <= 2400
    ((pid, words),) = sruns(cluster, 12)
    assert "--overlap" in words and "--look-on" in words and f"{cluster}/joulemarkctl" in words
    assert is_gone(pid)
    assert "--me" in (cluster / "squeue.words").read_text()


@pytest.mark.parametrize("end", "\n\u2028\x0b\x0c\x1c\x85\r")
def test_a_name_may_have_any_character(cluster, site, end):
    """Also what ends a line, looks like another job, or is a terminal's command."""
    name = f"a{end}15|15|RUNNING|1|1:02|b\x1b]0;x\x07\x1b[2J"
    begin(cluster, 12, name=name)
    begin(cluster, 13)
    out = site.out("top", "--once", "--every", "0.1")
    assert "\n12 " in out and "\n13 " in out and "\n15" not in out and "cpu binding" not in out
    assert all(one.isprintable() for one in out.split("\n"))
    out = site.out("top", "--once", "--json")
    (job, _) = json.loads(out)["jobs"]
    assert job["name"] == name.replace("\r", "\n") and out.rstrip().isprintable()


def test_what_is_said_of_a_job_is_no_terminals_command(cluster, site):
    begin(cluster, 12)
    (cluster / "srun").write_text("#!/bin/sh\nprintf 'srun: error: \\033[2Jno\\n'\n")
    assert "job 12: srun: error: ?[2Jno\n" in site.fails("top", "--once")


def test_what_kept_a_node_silent_is_said_until_it_is_over(cluster):
    begin(cluster, 12)
    srun = (cluster / "srun").read_text()
    said = "joulemarkctl: joulemarkd does not answer"
    silent = cluster / "silent"
    silent.touch()
    until = f"while os.path.exists({str(silent)!r}): time.sleep(0.05)"
    (cluster / "srun").write_text(
        srun.replace("begun =", f"print({said!r}, flush=True)\n{until}\nbegun =")
    )
    watched = Jobs([], 0.1)

    def is_said():
        watched.wait(time.monotonic() + 0.1)
        return [note for note in watched.table()[1] if said in note]

    with watched:
        watched.begin()
        wait_for(lambda: f"Job 12: {said}" in is_said(), what="it to be said")
        silent.unlink()
        wait_for(lambda: not is_said(), what="it to be over")


def test_a_job_that_began_after_now_has_run_for_no_time(cluster, site):
    """Where this machine's clock is behind slurmctld's, squeue has another word for its time."""
    begin(cluster, 12, elapsed="INVALID")
    (job,) = json.loads(site.out("top", "--once", "--json"))["jobs"]
    assert job["elapsed_s"] < 60


def test_components_of_a_heterogeneous_job(cluster, site):
    begin(cluster, 20, job_id="20+0")
    begin(cluster, 21, job_id="20+1", nodes=2)
    jobs = json.loads(site.out("top", "20", "--once", "--json"))["jobs"]
    assert [(job["job_id"], len(job["nodes_told"])) for job in jobs] == [("20+0", 1), ("20+1", 2)]
    assert {"--jobid=20", "--het-group=1"} <= set(sruns(cluster, 21)[0][1])


def test_records_for_programs(cluster, site):
    begin(cluster, 12, nodes=2)
    (job,) = json.loads(site.out("top", "--once", "--json"))["jobs"]
    assert job["nodes_told"] == ["n1", "n2"] and job["gpu_w"] is None
    assert job["power_w"] == pytest.approx(200, rel=1e-3)
    assert job["energy_error_j"] == pytest.approx(0.02 * job["energy_j"], rel=1e-3)


def test_csv_has_a_row_a_job_and_one_header(cluster, site):
    begin(cluster, 12, nodes=2)
    begin(cluster, 13)
    with follow("--every", "0.1", "--format", "csv") as top:
        lines = [next(top.stdout) for _ in range(5)]  # two rounds
        (cluster / "job-12").unlink()
        (cluster / "job-13").unlink()
        lines += top.stdout.read().splitlines(keepends=True)
    head, *rows = csv.reader(lines)
    assert tuple(head) == Jobs.columns and head not in rows
    found = [dict(zip(head, row)) for row in rows]
    assert {len(row) for row in rows} == {len(head)}
    assert [one["job_id"] for one in found[:4]] == ["12", "13", "12", "13"]
    assert found[0]["nodes_told"] == "n1,n2" and float(found[0]["time"]) < float(found[2]["time"])
    assert float(found[0]["power_w"]) == pytest.approx(200, rel=1e-3)


def test_a_file_holds_one_round(cluster, site, capsys):
    begin(cluster, 12)
    for name, begin_with in (("t.csv", "time,job_id,"), ("t.md", "**"), ("t.json", '{"time": ')):
        path = site.folder / name
        assert site.out("top", "--once", "--out", str(path)) == ""
        assert path.read_text().startswith(begin_with)
    with pytest.raises(SystemExit) as stopped:
        site.run("top", "--out", str(site.folder / "more.parquet"))
    assert stopped.value.code == 2 and "it holds one round: say --once" in capsys.readouterr().err
    assert "| 12 |" in site.out("top", "--once", "--format", "markdown")


def test_parquet_has_the_rows_of_csv(cluster, site):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = site.folder / "t.parquet"
    site.out("top", "--once", "--out", str(path))  # none runs
    none = parquet.read_schema(path)
    begin(cluster, 12)
    site.out("top", "--once", "--out", str(path))
    (found,) = parquet.read_table(path).to_pylist()
    assert tuple(found) == Jobs.columns and found["job_id_raw"] == 12 and found["gpu_w"] is None
    kinds = {field.name: field.type for field in parquet.read_schema(path)}
    assert {field.name: field.type for field in none if field.name in kinds} == kinds


def test_what_cannot_be_watched_is_named(cluster, site):
    begin(cluster, 12)
    begin(cluster, 14)
    code, out, err = site.run("top", "--once", "12", "14", "15")
    assert code == 1 and "~100" in out
    assert "job 14: srun: error: Unable to create step for job 14: Access/perm" in err
    assert "job 15: does not run" in err
    assert "-j 12,14,15" in (cluster / "squeue.words").read_text()
    (cluster / "job-12").unlink()
    (cluster / "job-14").unlink()
    assert site.out("top") == "no job of yours runs\n"


def follow(*words):
    """The command, which looks for new jobs often."""
    code = (
        "import sys; from joulemark import cli; from joulemark.top import jobs; jobs.LIST_S = 0.2"
    )
    code += "; jobs.RECORD_S, jobs.RECORD_EVERY_S = 1.0, 0.1"
    code += "; sys.exit(cli.main(sys.argv[1:]))"
    return subprocess.Popen(
        [sys.executable, "-c", code, "top", *words], stdout=subprocess.PIPE, text=True
    )


LAST = r"^job {} ended; at \d\d:\d\d:\d\d it had used ~([\d.]+) J \+- [\d.]+ J \(k=2\)$"


@pytest.mark.parametrize(
    ("missing", "expected"), [("", ""), ("; missing: n2", ", and what is missing: n2")]
)
def test_what_a_job_used_in_all_is_told_once_its_record_is_there(cluster, missing, expected):
    begin(cluster, 12)
    begin(cluster, 13)
    with follow("--every", "0.1") as top:
        assert any(line.startswith("12 ") for line in top.stdout)
        for job in ("job-12", "job-13"):
            (cluster / job).unlink()
        (cluster / "record-12").write_text(RECORD.format(missing))
        lines = top.stdout.read().splitlines()
    assert f"job 12 ended; it used 1234.5 J +- 6.7 J (k=2){expected}" in lines
    assert [line for line in lines if re.match(LAST.format(13), line)]
    assert len([line for line in lines if "ended" in line]) == 2


def test_a_sacct_that_does_not_tell_is_not_waited_for(cluster):
    (cluster / "sacct").write_text("#!/bin/sh\nexit 1\n")
    begin(cluster, 12)
    with follow("--every", "0.1") as top:
        assert any(line.startswith("12 ") for line in top.stdout)
        (cluster / "job-12").unlink()
        assert re.search(LAST.format(12), top.stdout.read(), re.M)


def test_jobs_come_and_go(cluster):
    begin(cluster, 12)
    with follow("--every", "0.1") as top:
        assert any(line.startswith("12 ") for line in top.stdout)
        begin(cluster, 13)
        assert any(line.startswith("13 ") for line in top.stdout)
        (cluster / "job-12").unlink()
        line = next(line for line in top.stdout if "ended" in line)
        (last,) = re.findall(LAST.format(12), line)
        assert 1000 <= float(last) <= 4000
        (cluster / "job-13").unlink()
        rest = top.stdout.read()
    assert "job 13 ended" in rest and "\n12 " not in rest and top.returncode == 0
    assert len(sruns(cluster, 12)) == 1


def test_a_step_that_is_lost_is_begun_again(cluster):
    begin(cluster, 12)
    lost = 0
    with follow("--every", "0.1") as top:
        for line in top.stdout:
            if line.startswith("12 ") and len(found := sruns(cluster, 12)) > lost:
                lost += 1
                os.kill(found[-1][0], signal.SIGKILL)
            if lost == 3:
                break
        (cluster / "job-12").unlink()
        assert "job 12 ended" in top.stdout.read()


@pytest.mark.parametrize("end", ["\x03", "q", signal.SIGTERM, signal.SIGKILL])
def test_who_ends_it_leaves_nothing_behind(cluster, end):
    """In a terminal: the table stays in place, and Ctrl-C is no failure."""
    begin(cluster, 12)
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-m", "joulemark", "top", "--every", "0.3"])
    seen, asked, deadline = "", False, time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            if select.select([terminal], [], [], 0.1)[0]:
                seen += os.read(terminal, 65536).decode()
        except OSError:  # it has ended
            break
        if not asked and seen.count("~100") >= 3:
            asked = True
            if isinstance(end, str):
                os.write(terminal, end.encode())
            else:
                os.kill(pid, end)
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    assert status == (signal.SIGKILL if end == signal.SIGKILL else 0), seen
    assert "\x1b[1A" in seen  # up to where the table began
    for srun, _ in sruns(cluster, 12):
        assert is_gone(srun)


WAITING_SRUN = """\
#!/bin/sh
echo $$ >> "$0.pids"
exec sleep 600
"""


@pytest.mark.parametrize("again", [0, 1])
def test_signals_leave_no_srun_that_waits_for_its_place(cluster, again):
    """While they are still begun, and once more while they are ended."""
    for raw in range(10, 60):
        begin(cluster, raw)
    (cluster / "srun").write_text(WAITING_SRUN)
    pids = cluster / "srun.pids"
    with follow() as top:
        while not pids.exists():
            time.sleep(0.001)
        top.send_signal(signal.SIGTERM)
        for _ in range(again):
            time.sleep(0.3)
            top.send_signal(signal.SIGINT)
            top.send_signal(signal.SIGHUP)
    assert top.returncode == 0
    left = [pid for pid in map(int, pids.read_text().split()) if not is_gone(pid, 0.1)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left


def test_a_signal_that_was_ignored_stays_ignored(cluster):
    """As by nohup."""
    begin(cluster, 12)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        top = follow("--every", "0.1")
    finally:
        signal.signal(signal.SIGHUP, before)
    with top:
        assert any(line.startswith("12 ") for line in top.stdout)
        top.send_signal(signal.SIGHUP)
        assert any(line.startswith("12 ") for line in top.stdout)
        (cluster / "job-12").unlink()
        assert "job 12 ended" in top.stdout.read()


def test_a_suspended_job_is_asked_when_it_goes_on(cluster, site):
    """A step in it would wait."""
    begin(cluster, 12, state="SUSPENDED")
    begun_s = time.monotonic()
    assert "\n12 " in site.out("top", "--once") and time.monotonic() - begun_s < 10
    with follow("--every", "0.1") as top:
        time.sleep(1)
        assert not (cluster / "job-12.srun").exists()
        begin(cluster, 12)
        assert any("~100" in line for line in top.stdout)
        (cluster / "job-12").unlink()
        assert "job 12 ended" in top.stdout.read()
    assert [word for word in sruns(cluster, 12)[0][1] if word.startswith("--immediate=")]


def test_a_count_that_begins_anew_takes_no_power_back():
    """Of a job that was requeued, and of a node that has booted since: its clock is behind."""
    node = OnNode(reading(10, 1000), 0.0)
    for time_s, energy_j, power_w in ((12, 1200, 100), (14, 50, None), (16, 250, 100)):
        node.take(reading(time_s, energy_j), 0.0)
        assert node.rate("energy_uj") == (power_w and pytest.approx(power_w))
    node.take(reading(1, 300), 0.0)
    assert node.rate("energy_uj") is None
    node.take(reading(2, 400), 0.0)
    assert node.rate("energy_uj") == pytest.approx(100)


def test_who_tells_without_end_holds_up_no_round():
    began_s = time.monotonic()
    with Streams() as streams:
        streams.start("job", ["yes"])
        lines = list(streams.until(began_s + 0.3))
        assert lines and time.monotonic() - began_s < 5


def test_a_terminal_is_left_as_it_was(cluster):
    """And what is typed is not shown in the table."""
    begin(cluster, 12)
    code = "import subprocess, sys, termios\n"
    code += "modes = termios.tcgetattr(0)\n"
    code += (
        "code = subprocess.call([sys.executable, '-m', 'joulemark', 'top', '--every', '0.3'])\n"
    )
    code += "print('LEFT', code, termios.tcgetattr(0) == modes, flush=True)"
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", code])
    seen, asked, deadline = "", False, time.monotonic() + 30
    with contextlib.suppress(OSError):  # it has ended
        while time.monotonic() < deadline:
            seen += os.read(terminal, 65536).decode()
            if not asked and seen.count("~100") >= 3:
                asked = True
                os.write(terminal, b"xq")
    os.close(terminal)
    os.waitpid(pid, 0)
    assert "LEFT 0 True" in seen and "xq" not in seen


def test_of_many_jobs_some_are_watched(cluster, site, monkeypatch):
    monkeypatch.setattr("joulemark.top.jobs.MOST_JOBS", 2)
    for raw in range(20, 25):
        begin(cluster, raw)
    out = site.out("top", "--once", "--every", "0.2")
    assert "\n21 " in out and "\n22 " not in out and "3 more jobs run" in out


def test_slurmctld_may_be_away_for_a_moment(cluster):
    begin(cluster, 12)
    with follow("--every", "0.1") as top:
        assert any(line.startswith("12 ") for line in top.stdout)
        squeue = (cluster / "squeue").read_text()
        (cluster / "squeue").write_text("#!/bin/sh\necho 'squeue: error: away' >&2; exit 1\n")
        time.sleep(0.6)
        (cluster / "squeue").write_text(squeue)
        assert sum(line.startswith("12 ") for line, _ in zip(top.stdout, range(100))) >= 10
        (cluster / "job-12").unlink()
        assert "job 12 ended" in top.stdout.read()
    assert top.returncode == 0


def test_nobody_is_asked_more_often_than_a_profile_is_sampled(cluster, site):
    begin(cluster, 12)
    out = site.out("top", "--once", "--every", "0.1")
    assert "Every 0.2 s: no finer, by the site's profile_max_hz." in out


@pytest.mark.parametrize("text", ["0", "0.09", "soon", "1e9", "nan"])
def test_a_time_that_is_none_is_refused(site, capsys, text):
    with pytest.raises(SystemExit):
        site.run("top", "--every", text)
    assert f"'{text}' is not a time in seconds from 0.1 up to 3600" in capsys.readouterr().err
