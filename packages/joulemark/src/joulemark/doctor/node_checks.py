# Checks of a machine's own side: configuration, daemon, folders, sensors, clock, what piles up.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import ctypes
import fnmatch
import json
import os
import re
import socket
import stat
import struct
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from joulemark import __version__
from joulemark.doctor.finding import ERROR, WARNING, Finding
from joulemark.doctor.site import Site, ask
from joulemark.folders import owner_name

OLD_S = 600
NETWORK_FILE_SYSTEMS = {"nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "cifs", "fuse.sshfs"}
DAC_READ_SEARCH = 1 << 2  # the capability's bit
AS_ROOT = "run it as root or SlurmUser"
PCI = Path("/sys/bus/pci/devices")
#: PCI's classes of what computes (its Code and ID Assignment, 03 and 12): 3D controllers, other
#: displays, accelerators; a VGA controller may be a BMC's, or in a CPU
GPU_CLASSES = ("0x0302", "0x0380", "0x1200")
#: by PCI's vendor: who makes GPUs, and the type of instrument that reads them
GPUS = {
    "0x10de": ("NVIDIA", "nvml"),
    "0x1002": ("AMD", "amdgpu"),
    "0x8086": ("Intel", "hwmon"),
}
TIME_ERROR = 5  # adjtimex(2): the clock is not synchronised


def configuration(site: Site) -> Iterator[Finding]:
    """joulemarkd says every error itself, with file, line and key."""
    path = site.config_file
    if not path.exists():
        fix = "copy the site's there (an example: site/joulemark.yaml), or set JOULEMARK_CONFIG"
        yield Finding("config", ERROR, str(path), "does not exist", fix)
        return
    if path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        yield Finding("config", ERROR, str(path), _mode(path), "chmod 644: others can change it")
    answer = ask(site.program("joulemarkd"), "--check", "-c", path, "-N", site.node)
    if answer.status is None:
        yield Finding("config", ERROR, "joulemarkd", answer.err, "install joulemark-slurm here")
    for line in answer.err.splitlines() if not answer.good and answer.status is not None else []:
        yield Finding("config", ERROR, "joulemarkd --check", line, "correct the line")
    cluster, named = site.key("cluster"), site.conf.get("ClusterName")
    if cluster and named and cluster != named:
        fix = f"say `cluster: {named}`, as ClusterName of slurm.conf"
        yield Finding("config", ERROR, str(path), f"cluster: {cluster}", fix)


def daemon(site: Site) -> Iterator[Finding]:
    """It must answer, be of our version, have a ledger on disk, see processes, know its node's
    cores, and have no job that is not there."""
    if not site.is_node:
        return
    if not site.daemon.good:
        fix = "start joulemarkd; its log says why it ended"
        yield Finding("daemon", ERROR, f"joulemarkd of {site.node}", site.daemon.err, fix)
        return
    said = site.daemon_said
    if said.get("version", __version__) != __version__:
        fix = f"joulemark is {__version__}: install the same version of both"
        yield Finding("daemon", WARNING, "joulemarkd", f"version {said['version']}", fix)
    if "protocol" not in said:
        fix = "install the plugins' release of it, and restart it: no job is disturbed"
        value = "of a release before protocols had versions"
        yield Finding("daemon", WARNING, f"joulemarkd of {site.node}", value, fix)
    if said.get("mixed"):
        fix = "jobs keep those they began with; if none is so old, restart slurmd with ours"
        value = f"not of joulemarkd's release: {said['mixed']}"
        yield Finding("daemon", WARNING, f"plugins of {site.node}", value, fix)
    if said.get("fault"):
        fix = "make room in state_dir, or mend its owner and mode"
        yield Finding("daemon", ERROR, "joulemarkd", said["fault"], fix)
    if said.get("left_out"):
        fix = "joulemarkd's log says why; mend it, and restart joulemarkd: no job is disturbed"
        value = f"could not be opened: {said['left_out']}: their energy is in no job's"
        yield Finding("instruments", ERROR, f"joulemarkd of {site.node}", value, fix)
    if said.get("unread"):
        fix = "joulemarkd --probe says what they answer; until the first value no energy is known"
        value = f"no value yet: {said['unread']}"
        yield Finding("instruments", WARNING, f"joulemarkd of {site.node}", value, fix)
    if said.get("cores") == "0":
        fix = "slurmd tells it, by slurmctld's word: its log says why it does not"
        value = "does not know how many cores Slurm gives to jobs"
        yield Finding("cores", WARNING, f"joulemarkd of {site.node}", value, fix)
    if said.get("blind") == "1":
        fix = "hidepid=2,gid=GROUP, and SupplementaryGroups=GROUP in joulemarkd's unit"
        value = (
            "hidepid= hides other users' slurmstepd from joulemarkd: no job of theirs is charged"
        )
        yield Finding("daemon", ERROR, "/proc", value, fix)
    if said.get("lifeless"):
        fix = "charged nothing while so; PrologFlags=Contain keeps a process there between steps"
        value = f"open without a living process: jobs {said['lifeless']}"
        yield Finding("accounts", WARNING, f"joulemarkd of {site.node}", value, fix)


def privileges(site: Site) -> Iterator[Finding]:
    """An ordinary user with the one capability that RAPL needs, and no other."""
    pid, uid = _daemon_process(site)
    if not pid:
        return
    if uid == 0:
        fix = "run it as SlurmUser with CAP_DAC_READ_SEARCH (share/joulemark/joulemarkd.service)"
        yield Finding("privileges", WARNING, f"joulemarkd, process {pid}", "runs as root", fix)
        return
    more = _capabilities(pid) & ~DAC_READ_SEARCH
    if more:
        fix = "give it CAP_DAC_READ_SEARCH alone"
        value = f"capabilities {_capabilities(pid):#x}"
        yield Finding("privileges", WARNING, f"joulemarkd, process {pid}", value, fix)


def sensors(site: Site) -> Iterator[Finding]:
    """RAPL's counters are root's to read (CVE-2020-8694)."""
    pid, uid = _daemon_process(site)
    if not pid or uid == 0 or _capabilities(pid) & DAC_READ_SEARCH:
        return
    for root in _rapl_roots(site.config_file):
        for counter in sorted(root.glob("*/energy_uj"))[:1]:
            if not _may(counter, uid, stat.S_IROTH, stat.S_IRUSR):
                fix = "give joulemarkd CAP_DAC_READ_SEARCH (AmbientCapabilities= of its unit)"
                value = f"{_mode(counter)}, not for {owner_name(uid)}"
                yield Finding("sensors", ERROR, str(counter), value, fix)


def gpus(site: Site) -> Iterator[Finding]:
    """What is in the node is in an instrument, by `auto` or an entry of its own."""
    found = Counter(filter(None, map(_maker_of_gpu, PCI.glob("*"))))
    if not site.is_node or not found:
        return
    words = ("--describe", "-c", site.config_file, "-N", site.node)
    answer = ask(site.program("joulemarkd"), *words)
    if not answer.good:
        return  # another check's to say
    channels = [json.loads(line) for line in answer.out.splitlines()]
    if any(channel["domain"] == "gpu" for channel in channels):
        return
    meters = [one for one in channels if one["domain"] == "node" and one["method"] != "model"]
    for vendor, count in sorted(found.items()):
        maker, instrument = GPUS[vendor]
        value = "their energy is in no job's"
        if meters:
            value = f"{meters[0]['instrument']} may have them, and who uses none pays for them"
        fix = f"add `- {{type: {instrument}}}` to instruments, inside what holds it (`parent`)"
        where = f"{count} GPU{'s' * (count > 1)} of {maker}"
        yield Finding("gpus", WARNING, where, f"no channel reads them: {value}", fix)


def folders(site: Site) -> Iterator[Finding]:
    """The daemon's alone to write, and there."""
    _, uid = _daemon_process(site)
    has_records = site.is_controller or not site.by_broker
    for key in ["record_dir"] * has_records + ["state_dir"] * site.is_node:
        text = site.key(key)
        if not text:
            continue
        path = Path(text)
        try:
            is_there = stat.S_ISDIR(os.stat(path).st_mode)
        except PermissionError:
            yield Finding("folders", WARNING, f"{key}: {path}", "not for you to see", AS_ROOT)
            continue
        except OSError:
            is_there = False
        if not is_there:
            fix = f"make it, owned by {site.slurm_user}, mode 0750"
            yield Finding("folders", ERROR, f"{key}: {path}", "no such folder", fix)
            continue
        mode = path.stat().st_mode
        if mode & (stat.S_IWGRP | stat.S_IWOTH):
            fix = "chmod go-w: other users can put records there"
            yield Finding("folders", ERROR, f"{key}: {path}", _mode(path), fix)
        if uid and not _may(path, uid, stat.S_IWOTH, stat.S_IWUSR):
            fix = f"chown {owner_name(uid)}: joulemarkd cannot write there"
            value = f"{_mode(path)}, owner {owner_name(path.stat().st_uid)}"
            yield Finding("folders", ERROR, f"{key}: {path}", value, fix)
        if key == "state_dir" and _file_system(path) in NETWORK_FILE_SYSTEMS:
            fix = "keep the ledger on a local disk"
            yield Finding("folders", ERROR, f"{key}: {path}", f"on {_file_system(path)}", fix)


def heaps(site: Site) -> Iterator[Finding]:
    """Files that nobody took."""
    records, state = site.key("record_dir"), site.key("state_dir")
    log = f"see {records}/epilogslurmctld.log"
    places = [
        (records, "*.json", f"EpilogSlurmctld does not merge them: {log}"),
        (f"{state}/ended", "[!.]*", f"their jobs are not merged: {log}"),
        (f"{records}/ended", "[!.]*", f"their jobs are not merged: {log}"),
        (f"{records}/rejected", "*.json*", "rejected.log says what is wrong with them"),
        (f"{records}/comments", "*[0-9]", f"slurmdbd refuses them: {log}"),
    ]
    if site.is_node:
        outbox = f"{state}/outbox"
        places.append((outbox, "*.json", "they do not get to record_dir: see joulemarkd's log"))
    closed = []
    for folder, pattern, fix in places:
        least_s = 0 if folder.endswith("rejected") else OLD_S
        try:
            files = _older(Path(folder), pattern, least_s) if folder.startswith("/") else []
        except PermissionError:
            closed.append(folder)
            continue
        if files:
            value = f"{len(files)} files wait, such as {files[0].name}"
            yield Finding("heaps", WARNING, folder, value, fix)
    if closed:
        yield Finding("heaps", WARNING, ", ".join(closed), "not for you to see", AS_ROOT)


def clock(site: Site) -> Iterator[Finding]:
    """Steps' ends on several nodes are compared; munge refuses what is minutes off."""
    del site
    buffer = ctypes.create_string_buffer(
        struct.calcsize("@q") * 32
    )  # struct timex, zero: only ask
    state = ctypes.CDLL(None).adjtimex(buffer)
    if state < 0:
        yield Finding("clock-sync", WARNING, "adjtimex", "does not answer", "see `timedatectl`")
    if state == TIME_ERROR:
        fix = "run chrony or ntpd"
        yield Finding("clock-sync", WARNING, "adjtimex", "the clock is not synchronised", fix)


CHECKS = (configuration, daemon, privileges, sensors, gpus, folders, heaps, clock)


# -- what they ask -------------------------------------------------------------------------------


def _daemon_process(site: Site) -> tuple[int, int]:
    """(pid, uid) of who listens on the daemon's socket, from the kernel; (0, 0): nobody."""
    path = site.key("socket") if site.is_node else ""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.settimeout(2)
        try:
            client.connect(path)
        except OSError:
            return 0, 0
        peer = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", peer)
    return pid, uid


def _capabilities(pid: int) -> int:
    try:
        found = re.search(
            r"^CapEff:\s+(\w+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE
        )
    except OSError:
        return 0
    return int(found[1], 16) if found else 0


def _rapl_roots(config_file: Path) -> list[Path]:
    """Where the configured powercap instruments look; `auto` looks in the usual place."""
    text = config_file.read_text(errors="replace") if config_file.exists() else ""
    kinds = set(re.findall(r"\btype:\s*[\"']?(\w+)", text))
    roots = [Path(root) for root in re.findall(r"\broot:\s*[\"']?([^\"'\s,}]+)", text)]
    if not kinds & {"powercap", "auto"}:
        return []
    return roots or [Path("/sys/class/powercap")]


def _maker_of_gpu(device: Path) -> str | None:
    """PCI's vendor of a GPU; None: it is another device, or no physical one."""
    try:
        kind, vendor = ((device / name).read_text().strip() for name in ("class", "vendor"))
    except OSError:
        return None
    is_gpu = vendor in GPUS and kind.startswith(GPU_CLASSES) and not (device / "physfn").exists()
    return vendor if is_gpu else None


def _may(path: Path, uid: int, others: int, owners: int) -> bool:
    found = path.stat()
    return bool(found.st_mode & (owners if found.st_uid == uid else others))


def _mode(path: Path) -> str:
    return f"mode {stat.S_IMODE(path.stat().st_mode):04o}"


def _file_system(path: Path) -> str:
    """Of the mount that holds the path: the longest that leads to it."""
    best, kind = "", ""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, point, this, *_ = line.split()
        inside = os.path.commonpath([point, path.resolve()]) == point
        if inside and len(point) >= len(best):
            best, kind = point, this
    return kind


def _older(folder: Path, pattern: str, least_s: float) -> list[Path]:
    """Files of the folder, if it is there; PermissionError where we may not look."""
    try:
        names = fnmatch.filter(sorted(os.listdir(folder)), pattern)
    except (FileNotFoundError, NotADirectoryError):
        return []
    now = time.time()
    found = (folder / name for name in names if (folder / name).is_file())
    return [path for path in found if now - path.stat().st_mtime >= least_s]
