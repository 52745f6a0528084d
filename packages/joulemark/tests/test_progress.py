# The line that tells on a terminal how far a command is, and never elsewhere.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import importlib
import io
import json
import os
import re
import subprocess
import sys
import time
from types import SimpleNamespace

import builders
import pytest
from cooked_lines import line as cooked_line
from joulemark import progress
from joulemark.slurm import command

LIMIT_S = 30.0


class Terminal(io.StringIO):
    """Has what was written, and how often."""

    writes = 0

    def isatty(self):
        return True

    def write(self, text):
        self.writes += 1
        return super().write(text)

    def said(self):
        """What was on the line, one after the other."""
        return self.getvalue().split("\r")

    def shows(self, what):
        """Whether that was there, with no time, or with whatever time the machine took."""
        return any(re.fullmatch(rf"{re.escape(what)}(, \d+ s)?", text) for text in self.said())

    def is_clean(self):
        """Nothing is left to be seen."""
        line = []
        for text in self.said():
            line[: len(text)] = text
        return not "".join(line).strip()


@pytest.fixture
def merged(site):
    """A job's record, of long ago."""
    os.utime(site.leave(1), ns=(builders.START_NS,) * 2)
    site.out("merge")
    return site


@pytest.fixture
def terminal(monkeypatch):
    """What the line is written to; all takes long."""
    made = Terminal()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=made))
    monkeypatch.setattr(progress, "AFTER_S", 0.001)
    monkeypatch.setattr(progress, "EVERY_S", 0.001)
    return made


@pytest.fixture
def slow(terminal, monkeypatch):
    """Makes a function wait until the line was written anew: twice, for the first was begun."""

    def make(name, limit_s=LIMIT_S):
        module, *owner, function = name.split(":")
        place = importlib.import_module(f"joulemark.{module}")
        for part in owner:
            place = getattr(place, part)
        real = getattr(place, function)

        def waits(*args, **options):
            before, end_s = terminal.writes, time.monotonic() + limit_s
            while terminal.writes < before + 2 and time.monotonic() < end_s:
                time.sleep(0.001)
            return real(*args, **options)

        monkeypatch.setattr(place, function, waits)

    return make


@pytest.mark.parametrize(
    ("words", "where", "line"),
    [
        ("report usage", "store.sums:uses", "summing jobs"),
        ("report usage", "layout:as_text", "laying tables out"),
        ("report html", "html.report:uses", "summing jobs"),
        ("report nodes", "store.node_sums:node_uses", "summing jobs"),
        ("report jobs", "store.sums:top_jobs", "looking for the greatest jobs"),
        ("export prometheus", "store.node_sums:node_uses", "summing jobs"),
        ("job 1", "accounting.job:find", "asking the store"),
        ("merge", "store.schema:migrate", "waiting for the store"),
        ("merge", "store.zones:set_zone", "putting jobs' days right"),
        ("merge --rebuild", "accounting.merge:_came", "0 merged records found"),
        ("merge --rebuild", "accounting.noderecord:read", "0 of 1 records read"),
        ("merge --rebuild", "accounting.merge:_move_merged", "moving merged records"),
        ("store prune --keep 30d", "store.node_sums:keep", "0 jobs pruned"),
        ("store prune --keep 30d", "store.retention:is_pruned", "0 files looked at"),
        ("store prune --keep 30d", "store:compact", "giving room back"),
        ("store prune --keep 30d --dry-run", "store.session:Session:after", "0 jobs found"),
    ],
)
def test_what_takes_long_says_so(merged, slow, terminal, words, where, line):
    slow(where)
    merged.out(*words.split())
    assert terminal.shows(line) and terminal.is_clean()


def test_a_merge_counts_jobs(site, slow, terminal):
    slow("accounting.merge:_Update:job")
    for job in (1, 2, 3):
        site.leave(job)
    assert len(site.out("merge").splitlines()) == 3
    said = [text for text in dict.fromkeys(terminal.said()) if text.endswith("made")]
    counts = [f"{done} of 3 jobs' records made" for done in range(4)]
    assert said in (counts[:-1], counts)  # a machine may stand still between the last and the end
    assert terminal.is_clean()


@pytest.mark.parametrize("more", [(), ("--anonymous",)])
@pytest.mark.parametrize("is_seen", [False, True])
def test_an_export_counts_records_unless_they_are_seen(
    site, slow, terminal, monkeypatch, more, is_seen
):
    for job in (1, 2):
        site.leave(job)
    site.out("merge")
    terminal.truncate(terminal.seek(0))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_seen)
    if not is_seen:
        slow("accounting.joblist:as_records")
    out = site.out("report", "jobs", "--all", *more, "--format", "json")
    assert len(json.loads(out)) == (0 if more else 2)  # of two jobs none is anonymous
    line = "0 records read" if more else "0 records written"
    assert (line in terminal.said()) is not is_seen and terminal.is_clean()


@pytest.mark.parametrize(
    "words",
    [
        "report plot mod2am --out FOLDER",
        "compare mod2am --with LRZ --plot FOLDER",
        "report scaling mod2am --plot FOLDER",
        "report usage --plot FOLDER/usage.png",
    ],
)
def test_drawing_says_so(merged, results, slow, terminal, words):
    results(cooked_line(), cooked_line(threads=4))
    slow("plots.chart:pyplot:subplots")
    merged.out(*words.replace("FOLDER", str(merged.folder)).split())
    assert terminal.shows("drawing") and terminal.is_clean()


@pytest.mark.parametrize(
    ("where", "line"),
    [("bench.cooked:parse", "0 files of results read"), ("output:write_text", "0 files written")],
)
def test_an_export_of_results_counts_files(site, results, slow, terminal, where, line):
    slow(where)
    out = str(site.folder / "profiles")
    site.out("export", "thicket", "--from", str(results(cooked_line())), "--out", out)
    assert terminal.shows(line) and terminal.is_clean()


def test_profiles_are_counted(site, slow, terminal):
    (site.records / "profiles").mkdir()
    (site.records / "profiles" / "demo.1.n1.profile.jsonl").touch()
    slow("profile.hdf5:read_node")
    site.out("merge")
    assert "0 profiles read" in terminal.said()


def test_sacct_is_waited_for(site, sacct_on_path, slow, terminal):
    slow("slurm.sacct:_run")
    site.run("sacct", "-j", "1")
    assert terminal.shows("asking sacct")


@pytest.fixture
def slurm(merged, monkeypatch):
    """Whose commands answer what `budget` asks."""
    (merged.folder / "budgets.csv").write_text("physics,100,2020-01-01,2100-01-01\n")
    merged.configure(f"budgets: {merged.folder}/budgets.csv\n")
    answers = {
        "sacct": "exit 1",
        "sacctmgr": "case \"$*\" in *ParentName*) echo 'demo|root||';; esac",
        "scontrol": "echo AccountingStorageEnforce = limits",
    }
    for name, answer in answers.items():
        (merged.folder / name).write_text(f"#!/bin/sh\n{answer}\n")
        (merged.folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{merged.folder}:/usr/bin:/bin")
    return merged


@pytest.mark.parametrize(
    "words", ["job 1", "budget", "store correct 1 --charge 50% --why refund", "top --once"]
)
def test_slurm_is_waited_for(slurm, slow, terminal, words):
    slow("slurm.command:subprocess:run")
    slurm.run(*words.split())
    assert terminal.shows("asking Slurm") and terminal.is_clean()


def test_doctor_is_waited_for(slurm, slow, terminal, monkeypatch):
    (slurm.folder / "slurm.conf").write_text("ClusterName=demo\n")
    monkeypatch.setenv("SLURM_CONF", f"{slurm.folder}/slurm.conf")
    slow("doctor.site:subprocess:run")
    slurm.run("doctor")
    assert terminal.shows("looking") and terminal.is_clean()


def test_who_asks_slurm_with_a_line_of_his_own_has_that_alone(slurm, slow, terminal):
    slow("slurm.command:subprocess:run")
    slurm.run("report", "usage", "--budget")
    assert terminal.shows("summing jobs")
    assert not any("Slurm" in text for text in terminal.said())


def test_a_screen_of_its_own_has_no_line(slurm, slow, terminal, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    slow("slurm.command:subprocess:run", limit_s=2.0)
    asked, run = [], command.run
    monkeypatch.setattr(
        command, "run", lambda *words, **more: asked.append(1) or run(*words, **more)
    )
    slurm.run("top")
    assert asked and not any(terminal.said())


def test_a_part_of_longer_work_has_no_line_of_its_own(terminal):
    with progress.shown("whole"):
        for _ in progress.counted([1], "parts"):
            time.sleep(0.1)
    assert terminal.shows("whole") and terminal.is_clean()
    assert not any("parts" in text for text in terminal.said())


def test_what_fails_leaves_no_line(terminal):
    with pytest.raises(ValueError), progress.shown("failing"):
        time.sleep(0.1)
        raise ValueError
    assert terminal.shows("failing") and terminal.is_clean()


def test_it_comes_after_two_seconds_and_only_on_a_terminal(site):
    """Two real merges that wait for a record that never comes, as long and longer."""
    ends = [os.openpty(), os.pipe(), os.openpty()]
    words = [sys.executable, "-m", "joulemark", "merge", "--job", "1", "--nodes", "n1", "--wait"]
    merges = [
        subprocess.Popen([*words, wait_s], stdout=subprocess.DEVNULL, stderr=end)
        for (_, end), wait_s in zip(ends, ("3", "3", "0.2"))
    ]
    assert [merge.wait() for merge in merges] == [0, 0, 0]
    on_terminal, in_pipe, short = (read(*each) for each in ends)
    assert re.search("waiting for nodes' records, [23] s", on_terminal)
    assert in_pipe == "" and "waiting" not in short


def read(end, other):
    os.set_blocking(end, False)
    try:
        return os.read(end, 1 << 16).decode()
    except BlockingIOError:
        return ""
    finally:
        os.close(end)
        os.close(other)
