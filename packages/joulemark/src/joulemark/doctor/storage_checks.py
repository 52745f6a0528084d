# Checks of storage: a client of Lustre's, and who collects on the servers what jobs did there.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import json
import re
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from joulemark.doctor.finding import ERROR, WARNING, Finding
from joulemark.doctor.site import Site, ask
from joulemark.storage.journal import FOLDER
from joulemark.storage.mounts import mounted
from joulemark.timed import from_end
from joulemark.units import NS_PER_S

LUSTRE = Path("/sys/fs/lustre")
MOUNTINFO = Path("/proc/self/mountinfo")
#: an OST, as a client has it; the MDS' own are SERVER-OST0000-osc-MDT0000
OST = re.compile(r"(?P<client>(?P<name>.+)-OST[0-9a-f]{4}-osc-(?!MDT)\S+)")
STATE = re.compile(r"^(?:osc|mdc)\.(\S+)\.state=\ncurrent_state: (\w+)", re.M)
WELL = {"FULL", "IDLE"}  # IDLE: disconnected for want of work, obdclass' idle_timeout
LEAST_CALLS = 8  # OBD_MAX_RIF_DEFAULT, lustre/include/obd.h
AHEAD_S = 2.0
SILENT_S = 3600.0  # as a merge, which waits no longer


def jobid(site: Site) -> Iterator[Finding]:
    """A client tells the servers whose requests these are, or nobody's I/O is known."""
    del site
    path = LUSTRE / "jobid_var"
    try:
        said = path.read_text().strip()
    except OSError:
        return  # no client of Lustre's
    fix = "lctl set_param jobid_var=session (on the MGS -P, for all): our SPANK plugin names steps"
    if said == "SLURM_JOB_ID":
        value = f"{said}: steps are not told apart; what clears its environment is nobody's"
        yield Finding("lustre", WARNING, str(path), value, fix)
    elif said != "session" or not (LUSTRE / "jobid_this_session").exists():
        value = f"{said or 'empty'}: Lustre's servers do not know jobs"
        yield Finding("lustre", WARNING, str(path), value, fix)


def servers(site: Site) -> Iterator[Finding]:
    """What waits for a server that is away hangs; only root may ask for the connections."""
    del site
    said = ask("lctl", "get_param", "osc.*.state", "mdc.*.state").out if LUSTRE.exists() else ""
    off = {path.parent.name for path in LUSTRE.glob("osc/*/active") if _read(path) == "0"}
    for name, state in STATE.findall(said):
        if state not in WELL and "-osc-MDT" not in name and name not in off:
            fix = "see whether its server and network are up; until then who needs it waits"
            yield Finding("lustre", WARNING, name, f"{state}: not connected", fix)
    for name in sorted(off):
        if OST.fullmatch(name):
            fix = f"lctl set_param osc.{name}.active=1, where it is well again"
            value = "0: files on it cannot be read"
            yield Finding("lustre", WARNING, f"{LUSTRE}/osc/{name}/active", value, fix)


def calls(site: Site) -> Iterator[Finding]:
    """One OST with fewer calls under way than others slows each file that is over all."""
    del site
    numbers: dict[str, dict[str, int]] = defaultdict(dict)
    for path in sorted(LUSTRE.glob("osc/*/max_rpcs_in_flight")):
        found, said = OST.fullmatch(path.parent.name), _read(path)
        if found and said.isdigit():
            numbers[found["name"]][found["client"]] = int(said)
    for name, of_osts in numbers.items():
        least, most = min(of_osts.values()), max(of_osts.values())
        where = f"osc.{name}-OST*.max_rpcs_in_flight"
        fix = (
            f"lctl set_param {where}={max(most, LEAST_CALLS)}; `joulemark io rpcs` finds the best"
        )
        if least != most:
            lower = [ost for ost, number in of_osts.items() if number < most]
            value = f"{least} to {most}: {len(lower)} OSTs have fewer, such as {lower[0]}"
            yield Finding("lustre", WARNING, where, value, f"unless their pools differ: {fix}")
        elif most < LEAST_CALLS:
            value = f"{most}: Lustre's own default is {LEAST_CALLS}"
            yield Finding("lustre", WARNING, where, value, fix)


def striping(site: Site) -> Iterator[Finding]:
    """By default over all OSTs, a small file asks all servers at each open and stat."""
    del site
    for mount in mounted(_read(MOUNTINFO)):
        if mount.kind != "lustre":
            continue
        plain = re.fullmatch(
            r"stripe_count:\s+(-?\d+)\s.*", ask("lfs", "getstripe", "-d", mount.point).out.strip()
        )
        osts = re.findall(r"^\d+: \S+ \w+", ask("lfs", "osts", mount.point).out, re.M)
        if plain and len(osts) > 1 and not 0 <= int(plain[1]) < len(osts):
            value = (
                f"stripe_count {plain[1]}: each file, however small, is on all {len(osts)} OSTs"
            )
            fix = f"lfs setstripe -E 256M -c 1 -E 16G -c 4 -E -1 -c -1 {mount.point}"
            yield Finding("lustre", WARNING, f"default of {mount.point}", value, fix)


def collectors(site: Site) -> Iterator[Finding]:
    """Which work was whose goes by the servers' clocks."""
    folder = site.key("record_dir")
    for path in sorted(Path(folder, FOLDER).glob("*.jsonl")) if folder.startswith("/") else []:
        try:
            with path.open("rb") as file:
                told_ns = int(json.loads(next(from_end(file), b"{}"))["time_ns"])
        except (OSError, ValueError, KeyError, TypeError):
            continue  # a merge tells of lines that are not sound
        since_s = (time.time_ns() - told_ns) / NS_PER_S
        if since_s < -AHEAD_S:
            value = f"its last line is of {-since_s:.0f} s from now: its clock, or ours, is wrong"
            fix = f"run chrony or ntpd on {path.stem} and here"
            yield Finding("storage", ERROR, str(path), value, fix)
        elif since_s > SILENT_S:
            value = f"its last line is {since_s / 3600:.0f} h old: jobs' bytes are not known there"
            fix = (
                f"start `joulemark io collect` on {path.stem}, or remove the file with the server"
            )
            yield Finding("storage", WARNING, str(path), value, fix)


CHECKS = (jobid, servers, calls, striping, collectors)


def _read(path: Path) -> str:
    """ "": it cannot be read."""
    try:
        return path.read_text(errors="surrogateescape").strip()
    except OSError:
        return ""
