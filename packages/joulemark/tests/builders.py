# Builds sound node records, for tests to use or to break.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import json
import math
import time

START_NS = 1_790_000_000_000_000_000


def account(step="job", energy_uj=100_000_000, seconds=10, start_s=0, **changes):
    """An account of `seconds` at constant power, 60 % of it in the CPU, from START_NS or later."""
    start_ns = START_NS + int(start_s * 10**9)
    cpu_uj = energy_uj * 6 // 10
    systematic_uj, random_uj = energy_uj * 0.01, energy_uj * 0.001
    return {
        "step": step,
        "start_ns": start_ns,
        "end_ns": start_ns + seconds * 10**9,
        "energy_uj": energy_uj,
        "idle_uj": energy_uj // 4,
        "overhead_uj": 0,
        "domains_uj": {"cpu": cpu_uj, "dram": 0, "gpu": 0, "rest": energy_uj - cpu_uj},
        "average_w": energy_uj / 1e6 / seconds,
        "peak_w": energy_uj / 1e6 / seconds,
        "uncertainty_systematic_uj": systematic_uj,
        "uncertainty_common_uj": 0.0,
        "uncertainty_random_uj": random_uj,
        "uncertainty_uj": 2 * math.hypot(systematic_uj, random_uj),
        "method": "counter",
        "estimated": False,
        "samples": 11,
        "gap_seconds": 0.0,
        "cpus": 2,
        "notes": [],
        "channels": [],
        "regions": [],
        **changes,
    }


def unread(step="job", seconds=10):
    """As joulemarkd writes it where no instrument showed a value."""
    told = ("step", "start_ns", "end_ns", "estimated", "samples", "cpus", "notes", "channels")
    known = account(step, seconds=seconds)
    gap = {"energy_uj": None, "gap_seconds": float(seconds), "regions": []}
    return {key: known[key] for key in told} | gap


def record(job=12, node="n1", accounts=None, **changes):
    """A complete record of a job on a node."""
    return {
        "schema": 1,
        "cluster": "demo",
        "JobIDRaw": job,
        "node": node,
        "uid": 1000,
        "split_policy": "idle-by-share,rest-by-cpu-time",
        "missing": None,
        "accounts": [account()] if accounts is None else accounts,
        **changes,
    }


def kept_days():
    """For `store prune --keep`: what ended a month before START_NS goes, later jobs stay."""
    return f"{int(time.time() - START_NS / 10**9) // 86_400 + 31}d"


def write(folder, value):
    """Puts a record where joulemarkd would."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{value['cluster']}.{value['JobIDRaw']}.{value['node']}.json"
    part = path.with_name(f".{path.stem}.tmp")
    part.write_text(json.dumps(value))
    return part.rename(path)
