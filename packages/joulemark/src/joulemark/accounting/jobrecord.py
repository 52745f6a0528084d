# Makes a job's record, and those of its steps, from its nodes' records.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import json
import math
from operator import itemgetter

from joulemark.accounting.noderecord import DOMAINS
from joulemark.accounting.runs import Run
from joulemark.units import NS_PER_S, UJ_PER_J, known_sum

UNREAD = "no instrument of the node's total showed a value"
SHOWN_NODES = 8  # of a list in a text for people
# What job records take of an account.
TAKEN = (
    *("step", "start_ns", "end_ns", "energy_uj", "idle_uj", "domains_uj", "peak_w", "method"),
    *("uncertainty_systematic_uj", "uncertainty_common_uj", "uncertainty_random_uj"),
    *("estimated", "samples", "gap_seconds", "cpus", "notes", "regions"),
)
_taken = itemgetter(*TAKEN)


def drop_details(record: dict) -> None:
    """Frees what no job record takes from a node's, which is half of it. Of ten thousand records
    each has the same objects for keys then: dicts find them without a look at their letters."""
    record["accounts"] = [_without_details(account) for account in record["accounts"]]


def _without_details(account: dict) -> dict:
    try:
        return dict(zip(TAKEN, _taken(account)))
    except KeyError:  # its energy is not known, or an earlier joulemarkd wrote it
        return {key: account[key] for key in TAKEN if key in account}


def summarise(run: Run) -> list[dict]:
    """The rows of one run of a job: itself first, then each step."""
    accounts: dict[str, list[tuple[dict, dict]]] = {"job": []}
    for record in run.records:
        for account in record["accounts"]:
            accounts.setdefault(account["step"], []).append((record, account))
    # A step's nodes may have had it one after the other; of a job none is over before all have it.
    at_one_time = _met([account for _, account in accounts["job"]])
    return [
        _row(step, accounts[step], run, at_one_time)
        for step in sorted(accounts, key=lambda step: (step != "job", step))
    ]


def _met(accounts: list[dict]) -> bool:
    """False: by their nodes' clocks, which then differ, they were never there together."""
    starts, ends = ([account[key] for account in accounts] for key in ("start_ns", "end_ns"))
    return not accounts or max(starts) <= min(ends)


def _row(step: str, pairs: list[tuple[dict, dict]], run: Run, at_one_time: bool) -> dict:
    of_whole_job = step == "job"
    concerned = run.records if of_whole_job else [record for record, _ in pairs]
    nodes = [record["node"] for record in concerned]
    missing = _missing(concerned, pairs)
    if of_whole_job:
        nodes = sorted([*nodes, *run.silent])
        missing.update(run.silent)
    accounts = [account for _, account in pairs]
    return {
        "Run": run.number,
        "Step": step,
        "Uid": max((record["uid"] for record in concerned), default=0),
        "NNodes": len(nodes),
        "Nodes": ",".join(nodes),
        **_energy(accounts, at_one_time),
        "Estimated": int(any([account["estimated"] for account in accounts])),
        "Samples": sum([account["samples"] for account in accounts]),
        "GapSeconds": max([float(account["gap_seconds"]) for account in accounts], default=0.0),
        "SplitPolicy": "; ".join(sorted(_known_policies(concerned))),
        "Missing": "; ".join(f"{node}: {missing[node]}" for node in sorted(missing)) or None,
        "Incomplete": int(bool(missing)),
        "Faults": json.dumps(_faults(concerned) if of_whole_job else []),
        "Notes": _notes(pairs),
        "Regions": json.dumps(_regions(accounts), sort_keys=True),
    }


def missing_nodes(run: Run) -> list[str]:
    """Those whose energy is in no sum of the job's."""
    pairs = [(one, a) for one in run.records for a in one["accounts"] if a["step"] == "job"]
    return sorted([*_missing(run.records, pairs), *run.silent])


def _missing(concerned: list[dict], pairs: list[tuple[dict, dict]]) -> dict[str, str]:
    """By node, why its energy is in no sum."""
    unread = [record["node"] for record, account in pairs if account["energy_uj"] is None]
    told = {one["node"]: one["missing"] for one in concerned if one["missing"] is not None}
    return dict.fromkeys(unread, UNREAD) | told


def _energy(accounts: list[dict], at_one_time: bool) -> dict:
    """Energies add, and systematic parts, and what nodes that act together err by alike; what each
    errs by itself adds in quadrature. The job's random part is both of these: over jobs, neither
    is alike."""
    measured = [account for account in accounts if account["energy_uj"] is not None]
    start_ns = min([account["start_ns"] for account in accounts], default=None)
    end_ns = max([account["end_ns"] for account in accounts], default=None)
    elapsed_ns = _elapsed_ns(accounts, at_one_time) if accounts else None
    energy_uj = _sum(measured, "energy_uj")
    systematic_uj = _sum(measured, "uncertainty_systematic_uj", math.fsum)
    random_uj = _random_uj(measured) if measured else None
    known, domains = bool(measured), [account["domains_uj"] for account in measured]
    mean_w = energy_uj / UJ_PER_J / (elapsed_ns / NS_PER_S) if known and elapsed_ns else None
    return {
        "Start_ns": start_ns,
        "End_ns": end_ns,
        "ElapsedRaw": elapsed_ns // NS_PER_S if accounts else None,
        "ConsumedEnergyRaw": (energy_uj + UJ_PER_J // 2) // UJ_PER_J if known else None,
        "ConsumedEnergy_uj": energy_uj,
        **{
            # A domain that no instrument tells apart is not zero: its energy is in the rest.
            f"Energy{label}_uj": known_sum([one.get(domain) for one in domains])
            for label, domain in zip(("CPU", "DRAM", "GPU", "Rest"), DOMAINS)
        },
        "EnergyIdle_uj": _sum(measured, "idle_uj"),
        "AveWatts": mean_w,
        # Nodes need not peak at the same moment: the sum is an upper bound.
        "PeakWatts": _sum(measured, "peak_w", math.fsum),
        "UncertaintySystematic_uj": systematic_uj,
        "UncertaintyRandom_uj": random_uj,
        "UncertaintyJoules": interval_j(systematic_uj, random_uj) if known else None,
        "Method": _method(measured),
    }


def _elapsed_ns(accounts: list[dict], at_one_time: bool) -> int:
    """Of all nodes; where their clocks cannot be compared, the longest."""
    if at_one_time:
        starts, ends = ([account[key] for account in accounts] for key in ("start_ns", "end_ns"))
        return max(ends) - min(starts)
    return max(account["end_ns"] - account["start_ns"] for account in accounts)


def _random_uj(measured: list[dict]) -> float:
    """A node's has a common part. An earlier joulemarkd did not tell it: all of it may be."""
    common_uj, own_uj = [], []
    for account in measured:
        all_uj = account["uncertainty_random_uj"]
        alike_uj = account.get("uncertainty_common_uj", all_uj)
        common_uj.append(alike_uj)
        own_uj.append(math.sqrt(max(0.0, all_uj - alike_uj)) * math.sqrt(all_uj + alike_uj))
    return math.hypot(math.fsum(common_uj), *sorted(own_uj))


def interval_j(systematic_uj: float, random_uj: float) -> float:
    """Half the interval with k=2, in joules."""
    return 2 * math.hypot(systematic_uj, random_uj) / UJ_PER_J


def _sum(parts: list[dict], key: str, add=sum):
    """None if nothing was measured, so that `not known` never looks like zero."""
    return add([part[key] for part in parts]) if parts else None


def _method(measured: list[dict]) -> str | None:
    methods = {account["method"] for account in measured}
    return "mixed" if len(methods) > 1 else next(iter(methods), None)


def _known_policies(records: list[dict]) -> set[str]:
    """A node that sent nothing split nothing."""
    return {record["split_policy"] for record in records if record["accounts"]}


def _faults(records: list[dict]) -> list[dict]:
    """What was wrong with instruments during the job: alike faults of many nodes are one."""
    alike: dict[tuple[str, str], dict] = {}
    for record in records:
        for instrument in record.get("instruments", ()):
            for fault in instrument["faults"]:
                name, what = instrument["name"], fault["what"]
                one = alike.setdefault(
                    (name, what),
                    {"instrument": name, "what": what, "count": 0, "seconds": 0.0, "nodes": []},
                )
                one["count"] += fault["count"]
                one["seconds"] = max(one["seconds"], fault["seconds"])
                one["nodes"].append(record["node"])
                one["last"] = fault.get("last", "")
    return [alike[key] for key in sorted(alike)]


def _notes(pairs: list[tuple[dict, dict]]) -> str | None:
    """The nodes' own words about an account, alike ones once."""
    said: dict[str, list[str]] = {}
    for record, account in pairs:
        for note in account.get("notes", ()):
            said.setdefault(note, []).append(record["node"])
    return "; ".join(f"{few(nodes)}: {note}" for note, nodes in sorted(said.items())) or None


def few(nodes: list[str]) -> str:
    """A list of nodes that is not too long for a line."""
    more = len(nodes) - SHOWN_NODES
    return ", ".join(nodes[:SHOWN_NODES]) + (f" and {more} more" if more > 0 else "")


def _regions(accounts: list[dict]) -> list[dict]:
    """A region that ran on several nodes at once: energies add, the longest time counts."""
    named: dict[str, list[dict]] = {}
    for account in accounts:
        for region in account.get("regions", ()):
            named.setdefault(region["name"], []).append(region)
    return [
        {
            "name": name,
            "count": max(part["count"] for part in parts),
            "seconds": max(part["seconds"] for part in parts),
            "energy_uj": known_sum([part["energy_uj"] for part in parts]),
            "uncertainty_uj": bound_uj(parts),
            **_own_part(parts),
        }
        for name, parts in sorted(named.items())
    ]


def bound_uj(parts: list[dict]) -> float | None:
    """Of regions' sum: systematic and random parts are not told apart, so bounds add linearly; one
    that is not known leaves the sum's unknown."""
    bounds = [part["uncertainty_uj"] for part in parts if part["energy_uj"] is not None]
    return sum(sorted(bounds)) if bounds and None not in bounds else None


def _own_part(parts: list[dict]) -> dict:
    """Of a region that others lie in: what was in none of those, and what it lies in itself."""
    parts = [part for part in parts if part["energy_uj"] is not None]
    if not parts or not all("exclusive_uj" in part for part in parts):
        return {}
    return {
        "parent": parts[0].get("parent"),
        "exclusive_seconds": max(part["exclusive_seconds"] for part in parts),
        "exclusive_uj": sum(part["exclusive_uj"] for part in parts),
        "exclusive_uncertainty_uj": sum(part["exclusive_uncertainty_uj"] for part in parts),
    }
