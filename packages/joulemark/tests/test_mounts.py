# Tests of joulemark.storage.mounts: what clients count of mounts that are a job's each.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Real GlusterFS clients and servers are in tests/instruments/test_glusterfs.py."""

import contextlib
import itertools
import json
import signal
import subprocess
import sys
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joulemark.errors import UsageError
from joulemark.storage import collect, mounts, names
from joulemark.storage.collect import Collector
from joulemark.storage.journal import OF_NODES, Held, Journal
from joulemark.storage.mounts import Mounts
from joulemark.storage.work import Work

# A client of GlusterFS 10.3: .meta/graphs/active/demo/private, in which most are 0.
PRIVATE = """\
cumulative.data_read = {}
cumulative.data_written = {}
incremental.data_read = 7
incremental.data_written = 7
demo.cumulative.OPEN = 1,127629,127629.000,127629.000,127629.000
demo.incremental.OPEN = 1,127629,127629.000,127629.000,127629.000
demo.cumulative.WRITE = 192,17265041,1121.000,2975530.000,89922.089
demo.cumulative.INODELK = 2,0,0.000,0.000,0.000
demo.cumulative.LOOKUP = 28,0,0.000,0.000,0.000
demo.cumulative.FORGET = 4,0,0.000,0.000,0.000
"""
# github.com/prometheus/procfs, its tests of mountstats: an NFS 4.0, and figures of others'.
MOUNTSTATS = """\
device rootfs mounted on / with fstype rootfs
device /dev/sda1 mounted on / with fstype ext4
device 192.168.1.1:/srv/test mounted on {} with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.0,rsize=1048576
\tage:\t{}
\tevents:\t52 226 0 0 1 13 398 0 0 331 0 47 0 0 77 0 0 77 0 0 0 0 0 0 0 0 0
\tbytes:\t1207640230 0 0 0 1210214218 {} 295483 0
\tRPC iostats version: 1.0  p/v: 100003/4 (nfs)
\txprt:\ttcp 832 0 1 0 11 6428 6428 0 12154 0 24 26 5726
\tper-op statistics
\t        NULL: 0 0 0 0 0 0 0 0
\t        READ: 1298 1298 0 207680 1210292152 6 79386 79407
\t       WRITE: 0 0 0 0 0 0 0 0
\t      ACCESS: 2927395007 2927394995 0 526931094212 362996810236 18446743919241604546 1 1
"""
MOUNTINFO = "{} 25 {} / {} rw,relatime shared:1 - {} {} rw\n"


class Node:
    """A tree like that of a compute node, its collector, and what its lines add up to."""

    def __init__(self, folder):
        self.root, self.records = folder / "root", folder / "records"
        self.records.mkdir(parents=True)
        (self.root / "proc/self").mkdir(parents=True)
        self._mounted, self._minors = {}, itertools.count(50)
        self.mount()
        self.start()

    def start(self):
        """A new process."""
        journal = Journal(self.records, "n1", "boot", OF_NODES)
        job_of = names.reader("demo", "/jobs/%j", "--mounts")
        self.collector = Collector(Mounts(self.root, 30.0), journal, job_of)

    def mount(self, place=None, kind="fuse.glusterfs", device=None):
        if place:
            self._mounted[place] = (kind, device or f"0:{next(self._minors)}")
        self._write()

    def unmount(self, place):
        del self._mounted[place]
        self._write()

    def _write(self):
        lines = [MOUNTINFO.format(22, "8:1", "/", "ext4", "/dev/sda1")]
        for number, (place, (kind, device)) in enumerate(self._mounted.items(), 30):
            escaped = place.replace(" ", "\\040")
            lines.append(MOUNTINFO.format(number, device, escaped, kind, "host:/demo"))
        (self.root / "proc/self/mountinfo").write_text("".join(lines))

    def gluster(self, place, read, written, client="82b05b27"):
        """The client has counted this since it began."""
        meta = self.root / place.lstrip("/") / ".meta"
        graph = meta / "graphs" / "vm-21709-2026"
        for layer in ("c1", "demo"):
            (graph / layer).mkdir(parents=True, exist_ok=True)
            (graph / layer / "private").write_text("")
        (graph / "demo" / "private").write_text(PRIVATE.format(read, written))
        (meta / "process_uuid").write_text(f"{client}\n")
        if not (meta / "graphs/active").is_symlink():
            (meta / "graphs/active").symlink_to("vm-21709-2026")

    def nfs(self, place, written, age_s=1000):
        """Mounted so long ago."""
        (self.root / "proc/self/mountstats").write_text(MOUNTSTATS.format(place, age_s, written))

    @property
    def lines(self):
        path = self.records / "io" / "nodes" / "n1.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]

    @property
    def works(self):
        """By job, over all lines."""
        found = {}
        for line in self.lines:
            for job, work in line["jobs"].items():
                found[job] = Work(*work).plus(found.get(job, Work()))
        return found

    @property
    def unread(self):
        return sum(line["unread"] for line in self.lines)


@pytest.fixture
def node(tmp_path):
    made = Node(tmp_path)
    made.collector.round()
    return made


def test_a_glusterfs_mount_is_its_jobs(node):
    node.mount("/jobs/12")
    node.gluster("/jobs/12", 4096, 25165824)
    node.collector.round()
    node.gluster("/jobs/12", 8192, 25165824)
    node.collector.round()
    # It counts an open and 28 lookups; a write, a lock and what the client forgets are none.
    assert node.works == {"12.": Work(8192, 25165824, 29)}
    assert [line["jobs"]["12."][0] for line in node.lines[1:]] == [4096, 4096]


def test_an_nfs_mount_is_its_jobs(node):
    """What its servers were asked for: of what was read the cache had some."""
    node.mount("/jobs/demo.12.0", kind="nfs4")
    node.nfs("/jobs/demo.12.0", 77)
    node.collector.round()
    assert node.works == {"12.0": Work(1210214218, 77, 2927395007)}


def test_other_mounts_are_nobodys(node):
    node.mount("/home")
    node.gluster("/home", 1, 2)
    node.mount("/jobs/x y")
    node.gluster("/jobs/x y", 3, 4)
    node.collector.round()
    assert node.works == {"": Work(4, 6, 58)}


def test_what_was_mounted_before_us_is_nobodys_gain(tmp_path):
    node = Node(tmp_path)
    node.mount("/jobs/12")
    for written in (100, 130):
        node.gluster("/jobs/12", 0, written)
        node.collector.round()
    assert node.works == {"12.": Work(0, 30, 0)}


def test_places_of_one_superblock_are_counted_once_and_nobodys(node):
    """NFS without nosharecache: both have the same figures, and nobody knows whose they are."""
    for place in ("/jobs/12", "/jobs/13"):
        node.mount(place, kind="nfs", device="0:99")
    node.nfs("/jobs/12", 77)
    node.collector.round()
    assert node.works == {"": Work(1210214218, 77, 2927395007)}


def test_a_superblock_that_has_another_place_meanwhile_is_counted_once(node):
    node.mount("/jobs/12", kind="nfs", device="0:99")
    node.nfs("/jobs/12", 100)
    node.collector.round()
    node.mount("/jobs/13", kind="nfs", device="0:99")
    node.nfs("/jobs/12", 130)
    node.collector.round()
    node.unmount("/jobs/13")
    node.nfs("/jobs/12", 160)
    node.collector.round()
    written = {job: work.written_bytes for job, work in node.works.items()}
    assert written == {"12.": 130, "": 30} and node.unread == 0


def test_a_client_that_is_bound_elsewhere_is_its_first_place_s(node):
    """As a container's runtime does."""
    node.mount("/jobs/12", device="0:77")
    node.gluster("/jobs/12", 0, 100)
    node.collector.round()
    node.mount("/var/lib/box/rootfs/data", device="0:77")
    node.gluster("/jobs/12", 0, 150)
    node.collector.round()
    assert node.works["12."].written_bytes == 150


@pytest.mark.parametrize("is_asked", [False, True])
def test_the_last_seconds_of_a_mount_are_known_to_who_asks(node, is_asked):
    node.mount("/jobs/12")
    node.gluster("/jobs/12", 0, 100)
    node.collector.round()
    node.gluster("/jobs/12", 0, 250)
    if is_asked:
        node.collector.round(is_asked=True)
        node.start()
        node.collector.round()  # which falls between the question and the unmounting
    node.unmount("/jobs/12")
    node.collector.round()
    node.collector.round()
    assert node.unread == (0 if is_asked else 1)
    assert node.works["12."].written_bytes == (250 if is_asked else 100)
    assert node.collector._gains.kept() == {}


def test_what_was_asked_for_another_job_is_not_final_for_one_that_works_on(node):
    node.mount("/jobs/12")
    node.gluster("/jobs/12", 0, 100)
    node.collector.round(is_asked=True)
    node.gluster("/jobs/12", 0, 300)
    node.collector.round()
    node.unmount("/jobs/12")
    node.collector.round()
    assert node.unread == 1


def test_others_mounts_are_nothing_to_tell_jobs_of(node):
    """An automounter unmounts homes all the time."""
    node.mount("/home/ada")
    node.gluster("/home/ada", 0, 100)
    node.collector.round()
    node.unmount("/home/ada")
    node.collector.round()
    assert node.unread == 0


def test_a_place_that_is_mounted_anew_begins_anew(node):
    """Also where the new one has counted more."""
    node.mount("/jobs/12")
    node.gluster("/jobs/12", 0, 100, client="one")
    node.collector.round()
    node.gluster("/jobs/12", 0, 300, client="other")
    node.collector.round()
    assert node.works["12."].written_bytes == 400 and node.unread == 1


@pytest.mark.parametrize("is_asked", [False, True])
def test_a_superblock_s_number_is_given_again(node, is_asked):
    """To the next job's mount, between two rounds; the last task of an array did as much."""
    node.mount("/jobs/12", kind="nfs", device="0:50")
    node.nfs("/jobs/12", 100, age_s=300)
    node.collector.round(is_asked)
    node.unmount("/jobs/12")
    node.mount("/jobs/13", kind="nfs", device="0:50")
    node.nfs("/jobs/13", 100, age_s=20)
    node.collector.round()
    assert node.works["12."] == node.works["13."] and node.works["13."].written_bytes == 100
    assert node.unread == (0 if is_asked else 1)


def test_an_age_may_be_told_a_second_off(node):
    node.mount("/jobs/12", kind="nfs")
    for age_s, written in ((300, 100), (301, 110), (299, 125)):
        node.nfs("/jobs/12", written, age_s)
        node.collector.round()
    assert node.works["12."].written_bytes == 125 and node.unread == 0


def test_a_superblock_below_another_at_its_place_is_not_read(node):
    """The lower one was busy when an epilog unmounted it; of a place there is one figure."""
    node.mount("/jobs/12", kind="nfs", device="0:50")
    text = (node.root / "proc/self/mountinfo").read_text()
    upper = MOUNTINFO.format(99, "0:51", "/jobs/12", "nfs", "host:/demo")
    (node.root / "proc/self/mountinfo").write_text(text + upper)
    node.nfs("/jobs/12", 100)
    node.collector.round()
    assert node.works == {"12.": Work(1210214218, 100, 2927395007)}


def test_a_mount_that_goes_while_nobody_collects_is_told_of(node):
    """By the name that the process before us left."""
    for place in ("/jobs/12", "/home"):
        node.mount(place)
        node.gluster(place, 0, 100)
    node.collector.round()
    for place in ("/jobs/12", "/home"):
        node.unmount(place)
    node.start()
    node.collector.round()
    assert node.unread == 1


def test_what_was_never_read_is_told_of_by_the_next_process_too(node):
    node.mount("/jobs/12")
    node.collector.round()
    node.start()
    node.unmount("/jobs/12")
    node.collector.round()
    assert node.unread == 1


def test_a_mount_that_goes_while_others_are_read_stays_as_its_epilog_left_it(node, monkeypatch):
    """Another epilog's round may come while it is unmounted."""
    node.mount("/jobs/12")
    node.gluster("/jobs/12", 0, 100)
    node.collector.round(is_asked=True)

    def goes(*_):
        node.unmount("/jobs/12")
        raise OSError(107, "Transport endpoint is not connected")

    monkeypatch.setattr(mounts, "gluster", goes)
    node.collector.round(is_asked=True)
    node.collector.round()
    assert node.unread == 0 and node.collector.left_out == []


def test_others_mounts_keep_no_epilog(node):
    """A home whose volume does not count."""
    node.mount("/home")
    assert collect.once(node.collector) == []


def test_a_mount_that_hangs_holds_up_no_other(node, monkeypatch, capsys):
    """Its server is away; what it has counted meanwhile comes when it answers."""
    for number, place in enumerate(("/jobs/12", "/jobs/13"), 1):
        node.mount(place)
        node.gluster(place, 0, number)
    answers, real, asked = threading.Event(), mounts.gluster, []

    def hangs(name, place):
        asked.append(name)
        if name == "/jobs/12":
            answers.wait()
        return real(name, place)

    monkeypatch.setattr(mounts, "gluster", hangs)
    monkeypatch.setattr(mounts, "ANSWER_S", 0.2)
    for _ in range(3):
        node.collector.round(is_asked=True)
        monkeypatch.setattr(mounts, "ANSWER_S", 30.0)  # which is not waited for it again
    assert node.works == {"13.": Work(0, 2, 29)}
    assert capsys.readouterr().err.count("/jobs/12: no answer: left out of this round") == 1
    assert asked.count("/jobs/12") == 1 and node.collector.left_out == ["/jobs/12"]
    answers.set()
    deadline_s = time.monotonic() + 30
    while "12." not in node.works and time.monotonic() < deadline_s:
        node.collector.round()
    assert node.works["12."] == Work(0, 1, 29)


@pytest.mark.parametrize("was_read", [False, True])
def test_a_mount_that_goes_while_it_hangs_is_told_of(node, monkeypatch, was_read):
    """However often it was asked for."""
    node.mount("/jobs/12")
    node.gluster("/jobs/12", 0, 1)
    if was_read:
        node.collector.round(is_asked=True)

    def fails(*_):
        raise OSError(107, "Transport endpoint is not connected")

    monkeypatch.setattr(mounts, "gluster", fails)
    node.collector.round(is_asked=True)
    node.unmount("/jobs/12")
    node.collector.round()
    node.collector.round()
    assert node.unread == 1


def test_a_mount_that_does_not_count_is_said(node, capsys):
    node.mount("/jobs/12")
    node.gluster("/jobs/12", 0, 1)
    (node.root / "jobs/12/.meta/graphs/active/demo/private").unlink()
    node.collector.round()
    assert (
        "/jobs/12: " in (said := capsys.readouterr().err)
        and "`gluster volume profile VOLUME start`" in said
    )
    node.mount("/jobs/13")
    node.collector.round()
    assert "/jobs/13: No such file or directory: left out of this round" in capsys.readouterr().err


# -- epilogs -------------------------------------------------------------------------------------

HOLD = """
import sys, time
from joulemark.storage.journal import OF_NODES, Journal
from pathlib import Path
with Journal(Path(sys.argv[1]), "n1", "boot", OF_NODES).locked():
    print("locked", flush=True)
    time.sleep(float(sys.argv[2]))
"""


@contextlib.contextmanager
def held(records, seconds):
    """By another process, which answers no question."""
    words = [sys.executable, "-c", HOLD, str(records), str(seconds)]
    ignores = {"preexec_fn": lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [collect.ASK])}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, **ignores) as process:
        assert process.stdout.readline() == "locked\n"
        yield process
        process.kill()


def test_two_epilogs_at_once_read_one_after_the_other(node):
    """Each is no collector that could be asked."""
    node.mount("/jobs/12")
    node.gluster("/jobs/12", 0, 5)
    with held(node.records, 0.5):
        assert collect.once(node.collector) == []
    assert node.works["12."].written_bytes == 5


def test_who_holds_the_lines_is_known_by_the_kernel(node):
    with held(node.records, 60) as process:
        with pytest.raises(Held) as caught, node.collector.journal.locked():
            pass
        assert caught.value.pid == process.pid


def test_an_answer_that_does_not_come_is_not_waited_for_for_ever(node, monkeypatch):
    monkeypatch.setattr(collect, "ANSWER_S", 0.3)
    with held(node.records, 60), pytest.raises(Held, match="another `joulemark io collect`"):
        collect.once(node.collector)


def test_a_collector_that_starts_waits_for_an_epilog(node):
    with held(node.records, 0.5), node.collector.journal.locked(30.0):
        pass


def test_a_place_without_a_job_is_refused():
    with pytest.raises(UsageError, match="--mounts /scratch: must have %j"):
        names.reader("demo", "/scratch", "--mounts")


@given(st.text(max_size=200))
def test_any_text_is_read(text):
    list(mounts.mounted(MOUNTINFO + text))
    list(mounts.nfs_mounts(MOUNTSTATS.format("/a", 1, 1) + text))
