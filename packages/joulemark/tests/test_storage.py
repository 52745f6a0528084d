# Tests of joulemark.storage: job_stats of several releases of Lustre, differences over expiry,
# reset and restart, and lines that are there once.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Layouts and figures are those of real servers: 2.17.57 as it ran for this project; 2.15, 2.14 of
DDN and 2.10 as named below."""

import json
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joulemark.errors import UsageError, UserError
from joulemark.storage import jobstats, names
from joulemark.storage.collect import Collector
from joulemark.storage.journal import Journal
from joulemark.storage.lustre import Lustre
from joulemark.storage.work import Work

# An OST of 2.17.57: a stripe of two of `dd bs=4M count=8`, and a step that SPANK named.
OST = b"""\
job_stats:
- job_id:          "4711:dd:0"
  snapshot_time:   1795338236.492027080 secs.nsecs
  start_time:      1795338235.582216120 secs.nsecs
  elapsed_time:    0.909810960 secs.nsecs
  read_bytes:      { samples:           0, unit: bytes, min:        0, max:        0, sum:  0 }
  write_bytes:     { samples:           4, unit: bytes, min:  4194304, max:  4194304, \
sum:         16777216, sumsq:     70368744177664, hist: { 4M: 4 } }
  read:            { samples:           0, unit: usecs, min:        0, max:        0, sum:  0 }
  write:           { samples:           4, unit: usecs, min:    36083, max:    87877, sum: 251548 }
  punch:           { samples:           1, unit: usecs, min:     1791, max:     1791, sum: 1791 }
  getattr:         { samples:           0, unit: usecs, min:        0, max:        0, sum: 0 }
- job_id:          demo.4713.0
  snapshot_time:   1795338237.402397140 secs.nsecs
  start_time:      1795338237.337577030 secs.nsecs
  write_bytes:     { samples:           2, unit: bytes, min:  4194304, max:  4194304, \
sum:          8388608, sumsq:     35184372088832, hist: { 4M: 2 } }
  setattr:         { samples:           7, unit: usecs, min:        1, max:        1, sum: 7 }
"""
# The MDT beside it: kinds of rename are renames, too.
MDT = b"""\
job_stats:
- job_id:          "4712:rm:0"
  start_time:      1795338236.964993310 secs.nsecs
  open:            { samples:           0, unit: usecs, min:        0, max:        0, sum:  0 }
  unlink:          { samples:           1, unit: usecs, min:    11959, max:    11959, sum: 11959 }
  getattr:         { samples:           1, unit: usecs, min:       90, max:       90, sum:    90 }
  readpage:        { samples:           1, unit: usecs, min:       90, max:       90, sum:    90 }
  rename:          { samples:           2, unit: usecs, min:       90, max:       90, sum:    90 }
  samedir_rename:  { samples:           2, unit: usecs, min:       90, max:       90, sum:    90 }
  write_bytes:     { samples:           1, unit: bytes, min:      512, max:      512, sum:   512 }
"""
# github.com/HewlettPackard/lustre_exporter, sources/procfs_test.go at 2017 (Lustre 2.9).
OF_2_9 = b"""\
- job_id:          29
  snapshot_time:   1493326943
  read_bytes:      { samples:     212, unit: bytes, min: 1048576, max: 1048576, sum:  15648015 }
  write_bytes:     { samples:     262, unit: bytes, min: 1048576, max: 1048576, sum: 274726912 }
  getattr:         { samples:          10, unit:  reqs }
"""
# lustre-release at 04e7562, lprocfs_jobstats.c: the example of its comment (2.4).
OF_2_4 = b"""\
job_stats:
- job_id         4854
  snapshot_time: 1322494602
  read:          { samples:  0, unit: bytes, min:  0, max:  0, sum:  0 }
  write:         { samples:  1, unit: bytes, min: 10, max: 10, sum: 10 }
  setattr:       { samples:  0, unit: reqs }
"""
# Telegraf's plugin lustre2_lctl, its tests of 2.15 and 2.17: indented, `key   :`, bytes as reqs.
INDENTED = b"""\
job_stats:
\t- job_id:          yhcontrol.20575
\t  snapshot_time   : 1896533.424837288 secs.nsecs
\t  start_time      : 379.000000001 secs.nsecs
\t  open:            { samples:           3, unit:  reqs }
\t  read_bytes:      { samples:           9, unit:  reqs, min:       0, max:       0, sum:   36 }
"""


def works(text, is_mdt=False):
    return {one.name: (one.work, one.start) for one in jobstats.entries(text, is_mdt)}


@pytest.mark.parametrize(
    ("text", "is_mdt", "expected"),
    [
        (
            OST,
            False,
            {
                "4711:dd:0": (Work(0, 16777216, 0), "1795338235.582216120"),
                "demo.4713.0": (Work(0, 8388608, 0), "1795338237.337577030"),
            },
        ),
        (MDT, True, {"4712:rm:0": (Work(0, 512, 5), "1795338236.964993310")}),
        (OF_2_9, False, {"29": (Work(15648015, 274726912, 0), "")}),
        (OF_2_4, False, {"4854": (Work(0, 10, 0), "")}),
        (INDENTED, True, {"yhcontrol.20575": (Work(36, 0, 3), "379.000000001")}),
        (b"job_stats:\n", False, {}),
        (b"job_stats:\n- job_id:          \n  open: { samples: 3 }\n", True, {}),
    ],
)
def test_job_stats_of_a_release(text, is_mdt, expected):
    assert works(text, is_mdt) == expected


@given(st.binary(max_size=300))
def test_any_text_is_read(text):
    works(OST[:200] + text + MDT)


# -- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "name", "job"),
    [
        (None, "demo.4713.0", "4713.0"),
        (None, "demo.4713.batch", "4713.batch"),
        (None, "4713", ""),  # any program may have that name
        (None, "4713.1000", ""),
        (None, "demo.4713.1000", "4713.1000"),
        (None, "demo.4713.0 ", ""),
        (None, "demo.\u0664.0", ""),
        ("%j", "4713", "4713."),
        ("%j", "demo.4713.0", "4713.0"),
        ("%j", "4713 ", ""),
        ("%j:%e:%u", "demo.4711.batch:dd:0", "4711.batch"),
        (None, "other.4713.0", ""),
        (None, "cp.0", ""),
        (None, "demo.4713.cp", ""),
        ("%j:%e:%u", "4711:dd:0", "4711."),
        ("%j:%e:%u", ":lfs:0", ""),
    ],
)
def test_whose_name_it_is(template, name, job):
    assert names.reader("demo", template)(name) == job


def test_a_cluster_whose_name_is_too_long_for_lustre():
    long = "a-cluster-of-a-long-name"
    assert names.reader(long, None)("4713.0") == "4713.0"
    assert names.reader(long, None)(f"{long}.4713.0") == "4713.0"


@pytest.mark.parametrize("template", ["%e.%u", "%j%j", ""])
def test_a_template_that_says_no_job(template):
    with pytest.raises(UsageError, match="--names"):
        names.reader("demo", template)


# -- rounds --------------------------------------------------------------------------------------


class Server:
    """A tree like that of a Lustre server, its collector, and what its lines add up to."""

    def __init__(self, folder):
        self.root, self.records = folder / "root", folder / "records"
        self.records.mkdir(parents=True)
        self.boot = "first"
        self.start()

    def start(self):
        journal = Journal(self.records, "oss1", self.boot)
        self.collector = Collector(Lustre(self.root), journal, names.reader("demo", None))

    def move(self, one, other):
        place = self.root / "proc/fs/lustre"
        (place / one).rename(place / other)

    def write(self, target="obdfilter/l-OST0000", prefix="demo.", **jobs):
        place = self.root / "proc/fs/lustre" / target
        place.mkdir(parents=True, exist_ok=True)
        text = "job_stats:\n"
        for name, (start, number) in jobs.items():
            text += f"- job_id:          {prefix}{name[1:]}.0\n"
            text += f"  start_time:      {start}.0 secs.nsecs\n" if start else ""
            text += f"  write_bytes:     {{ samples: 1, unit: bytes, sum: {number} }}\n"
        (place / "job_stats").write_text(text)

    def round(self, **jobs):
        self.write(**jobs)
        self.collector.round()

    @property
    def lines(self):
        path = self.records / "io" / "oss1.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines() if line[:1] == "{"]

    @property
    def written(self):
        """Bytes by job, over all lines."""
        found = {}
        for line in self.lines:
            assert line["total"] == [sum(one) for one in zip(*line["jobs"].values(), [0, 0, 0])]
            for job, (_, number, _) in line["jobs"].items():
                found[job] = found.get(job, 0) + number
        return found


@pytest.fixture
def server(tmp_path):
    return Server(tmp_path / "server")


def test_what_was_there_before_us_is_nobodys_gain(server):
    server.round(j1=(5, 1000))
    server.round(j1=(5, 1300), j2=(8, 50))
    assert server.written == {"1.0": 300, "2.0": 50}
    assert server.lines[0]["from_ns"] == server.lines[0]["time_ns"]
    assert server.lines[1]["from_ns"] == server.lines[0]["time_ns"]


@pytest.mark.parametrize("start", [0, 7])
def test_counters_that_begin_anew(server, start):
    """By their start where it is told, else by being less."""
    server.round(j1=(start, 1000))
    server.round(j1=(start, 1500))
    server.round(j1=(start and 9, 200))
    assert server.written == {"1.0": 700}
    if start:
        server.round(j1=(11, 900))
        assert server.written == {"1.0": 1600}


def test_a_target_that_comes_from_another_server_counts_whole(server):
    server.round()
    server.write("obdfilter/l-OST0001", j3=(5, 70))
    server.collector.round()
    assert server.written == {"3.0": 70}


def test_a_new_process_goes_on(server):
    server.round(j1=(5, 1000))
    server.round(j1=(5, 1100))
    server.start()
    server.round(j1=(5, 1150), j2=(6, 10))
    assert server.written == {"1.0": 150, "2.0": 10}


def test_after_a_boot_all_counters_have_begun_anew(server):
    server.round(j1=(0, 100))
    server.boot = "second"
    server.start()
    server.round(j1=(0, 900))
    assert server.written == {"1.0": 900}


@pytest.mark.parametrize("what", ["state", "line"])
def test_an_end_between_the_two_writes_loses_and_doubles_nothing(server, monkeypatch, what):
    server.round(j1=(5, 1000))
    server.write(j1=(5, 1100))
    with monkeypatch.context() as patch:

        def end(*_):
            raise OSError(28, "No space left on device")

        patch.setattr("os.replace" if what == "state" else "os.write", end)
        with pytest.raises(OSError):
            server.collector.round()
    server.collector.forget()
    server.round(j1=(5, 1150))
    assert server.written == {"1.0": 150}


def test_a_torn_line_stays_a_line_of_its_own(server):
    server.round(j1=(5, 0))
    with open(server.records / "io" / "oss1.jsonl", "a") as file:
        file.write("torn")
    server.round(j1=(5, 40))
    server.start()
    server.round(j1=(5, 60))
    assert server.written == {"1.0": 60}


def test_entries_that_were_gone_before_they_were_read(server, monkeypatch):
    now_s = 1000.0
    monkeypatch.setattr("joulemark.storage.collect._boot_s", lambda: now_s)
    server.round(j1=(5, 1), j2=(5, 1), j4=(5, 1))
    now_s += 30
    server.round(j1=(5, 2), j4=(7, 1))  # j2 and j4 were reset: they had 570 s to live
    for _ in range(19):
        now_s += 30
        server.round(j1=(5, 2), j3=(9, 1))
    now_s += 30
    server.round(j3=(9, 1))  # j1 expired
    now_s += 700
    server.round()  # nobody knows what j3 did in so long a time
    found = [line["unread"] for line in server.lines]
    # j4 at once, j2 when it cannot come back; then j3, and j4 a second time, which is gone, too
    assert [(at, n) for at, n in enumerate(found) if n] == [(1, 1), (20, 1), (21, 1), (22, 1)]


def test_an_entry_that_a_read_leaves_out_is_not_counted_anew(server, monkeypatch):
    """Of Lustre up to 2.15, where others expire meanwhile."""
    now_s = 1000.0
    monkeypatch.setattr("joulemark.storage.collect._boot_s", lambda: now_s)
    server.round(j1=(5, 1000))
    for there in (False, True, False, False, True):
        now_s += 30
        server.round(**({"j1": (5, 1000 + now_s)} if there else {}))
    assert server.written == {"1.0": 1150}
    assert not any(line["unread"] for line in server.lines)


def test_a_target_that_goes_and_comes_back_counts_whole(server):
    server.round(j1=(0, 1000))
    server.move("obdfilter/l-OST0000", "away")
    server.collector.round()
    server.move("away", "obdfilter/l-OST0000")
    server.round(j1=(0, 5000))
    assert server.written == {"1.0": 5000}
    assert [line["unread"] for line in server.lines] == [0, 1, 0]


def test_a_target_that_was_not_seen_once_goes_on(server):
    """By its entries' starts."""
    server.round(j1=(5, 1000))
    server.move("obdfilter/l-OST0000", "away")
    server.collector.round()
    server.move("away", "obdfilter/l-OST0000")
    server.round(j1=(5, 1010))
    assert server.written == {"1.0": 10}
    assert not any(line["unread"] for line in server.lines)


def test_a_target_that_could_not_be_read_at_first_begins_later(server):
    server.write(j1=(5, 1000))
    place = server.root / "proc/fs/lustre/obdfilter/l-OST0000/job_stats"
    place.unlink()
    place.mkdir()  # to read it fails
    server.collector.round()
    place.rmdir()
    server.round(j1=(5, 1100))
    server.round(j1=(5, 1150))
    assert server.written == {"1.0": 50}


@pytest.mark.parametrize(
    ("away_s", "boot", "seen_s"), [(300, 1, 300), (7200, 1, 600), (300, 2, 40)]
)
def test_of_a_time_without_rounds_a_line_tells_no_more_than_it_saw(
    server, monkeypatch, away_s, boot, seen_s
):
    """Entries live for 600 s, and none over a boot, which was 40 s ago."""
    now_s = 1000.0
    monkeypatch.setattr("joulemark.storage.collect._boot_s", lambda: now_s)
    begin_ns = 10**18
    monkeypatch.setattr("time.time_ns", lambda: begin_ns + round(now_s * 10**9))
    server.round(j1=(5, 1000))
    now_s += away_s
    server.start()
    if boot == 2:
        server.boot, begin_ns = "second", begin_ns + round((now_s - 40) * 10**9)
        now_s = 40.0
        server.start()
    server.round(j1=(5, 1000))
    line = server.lines[-1]
    assert line["time_ns"] - line["from_ns"] == seen_s * 10**9
    assert line["unread"] == boot - 1


def test_a_clock_that_goes_back_costs_no_line(server, monkeypatch):
    server.round(j1=(5, 0))
    now_ns = server.lines[0]["time_ns"] - 10**12
    monkeypatch.setattr("time.time_ns", lambda: now_ns)
    server.round(j1=(5, 40))
    first, second = server.lines
    assert second["time_ns"] > first["time_ns"]


def test_two_collectors_of_one_server(server):
    refused = pytest.raises(UserError, match="another `joulemark io collect`")
    with server.collector.journal.locked(), refused, server.collector.journal.locked():
        pass
    with server.collector.journal.locked():
        pass


@pytest.mark.parametrize("text", ["", "{}", "[]", "x"])
def test_a_state_that_is_not_ours(server, text):
    server.round(j1=(5, 0))
    (server.records / "io" / "oss1.state").write_text(text)
    server.start()
    with pytest.raises(UserError, match=r"oss1\.state: is not what"):
        server.collector.round()


def test_no_link_is_followed(server, tmp_path):
    """The folder is SlurmUser's, and the collector may be root."""
    (server.records / "io").mkdir()
    victim = tmp_path / "victim"
    victim.write_text("theirs")
    for name in ("oss1.draft", "oss1.lock", "oss1.jsonl"):
        (server.records / "io" / name).symlink_to(victim)
    with pytest.raises(OSError):
        server.round(j1=(5, 0))
    with pytest.raises(OSError), server.collector.journal.locked():
        pass
    assert victim.read_text() == "theirs"


def test_names_that_are_all_nobodys_are_told_once(server, capsys):
    for number in range(3):
        server.write(x1=(5, number), prefix="cp.")
        server.collector.round()
    assert (
        capsys.readouterr().err.count("no name is of a job of this cluster, such as 'cp.1.0'") == 1
    )


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("work"), st.sampled_from("123"), st.integers(1, 10**9)),
            st.tuples(st.just("round")),
            st.tuples(st.just("expire"), st.sampled_from("123")),
            st.tuples(st.just("process")),
            st.tuples(st.just("boot")),
            st.tuples(st.just("left out"), st.sampled_from("123")),
        ),
        max_size=30,
    ),
    st.booleans(),
)
def test_the_lines_add_up_to_what_was_done(tmp_path_factory, events, has_starts):
    """Whatever begins anew, so long as it was read before; an older Lustre does not say when."""
    server = Server(tmp_path_factory.mktemp("server"))
    server.round()
    done, now = {}, {}
    for number, (what, *more) in enumerate(events):
        if what == "work":
            job, amount = more
            start, before = now.get(f"j{job}", ((number + 1) * has_starts, 0))
            now[f"j{job}"] = (start, before + amount)
            done[f"{job}.0"] = done.get(f"{job}.0", 0) + amount
            continue
        if what == "left out":
            server.round(**{name: one for name, one in now.items() if name != f"j{more[0]}"})
            continue
        server.round(**now)
        if what == "expire":
            now.pop(f"j{more[0]}", None)
            if not has_starts:
                known = server.collector._gains.targets["obdfilter.l-OST0000"]
                known.pop(f"demo.{more[0]}.0", None)  # that takes long
        elif what in ("process", "boot"):
            server.boot = f"{what} {number}" if what == "boot" else server.boot
            now = {} if what == "boot" else now
            server.start()
    server.round(**now)
    assert server.written == done


def test_the_command(server, site):
    server.write(j1=(5, 10))
    (server.root / "proc/sys/kernel/random").mkdir(parents=True)
    (server.root / "proc/sys/kernel/random/boot_id").write_text("one\n")
    for number in (10, 30):
        server.write(j1=(5, number))
        site.out("io", "collect", "--server", "oss1", "--once", "--root", str(server.root))
    [line] = (site.records / "io" / "oss1.jsonl").read_text().splitlines()[1:]
    assert json.loads(line)["jobs"] == {"1.0": [0, 20, 0]}
    shutil.rmtree(server.root / "proc/fs")
    said = site.fails("io", "collect", "--once", "--root", str(server.root))
    assert "is this a Lustre server" in said
