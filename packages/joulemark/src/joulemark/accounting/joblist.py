# `joulemark report jobs`: job records as a table for people, and as records for programs.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import datetime
from dataclasses import replace
from functools import lru_cache

from joulemark.accounting import usage
from joulemark.accounting.columns import BY_NAME, seen
from joulemark.accounting.job import used
from joulemark.layout import LEGEND_ESTIMATED, Text
from joulemark.store.session import Session
from joulemark.store.sums import COLUMNS, Chosen, unmeasured
from joulemark.units import NS_PER_S, UJ_PER_J

# ---- for people ----

KEYS = ["raw id", "user", "account", "partition", "nodes"]
JOBS = len(KEYS)  # the column of `report usage` that is 1 of each job
MEAN = JOBS + 2  # behind the energy and its error
LEGEND = (
    "+-: uncertainty, k=2. Overhead (shared channels) is not in Energy; carbon and cost are of "
    "Energy alone. Raw id: sacct's JobIDRaw, an array's own is that of one task; `joulemark job` "
    "sums arrays. -: not known."
)


def as_text(rows: list[dict]) -> Text:
    """One line a job: the columns of `report usage`, its mean power and faults."""
    text = usage.as_text([replace(used([row]), keys=_who(row)) for row in rows], KEYS)
    lines = [(text.heads, "Mean [W]", "Faults")]
    lines += [(cells, _mean(row), _faults(row)) for row, (_, cells) in zip(rows, text.body)]
    has_faults = any(faults for _, _, faults in lines[1:])
    heads, *body = (
        [*cells[:JOBS], *cells[JOBS + 1 : MEAN + 1], mean, *cells[MEAN + 1 :]]
        + [faults] * has_faults
        for cells, mean, faults in lines
    )
    # What a narrow terminal is not shown, the first ones first; id, user and energy always are.
    names = ("partition", "nodes", "account")
    optional = (*text.optional, *((KEYS.index(name),) for name in names), (MEAN,))
    optional = ((len(heads) - 1,), *optional) if has_faults else optional
    return Text("Jobs by energy", heads, [("value", cells) for cells in body], optional)


def _who(row: dict) -> dict[str, str]:
    run = f" (run {row['Run']})" if row["Run"] else ""
    user = row["UserName"] or f"uid {row['Uid']}"
    place = [row[name] or "-" for name in ("Account", "PartitionName")]
    return dict(zip(KEYS, (f"{row['JobIDRaw']}{run}", user, *place, str(row["NNodes"]))))


def _mean(row: dict) -> str:
    return usage.told(row["AveWatts"], "W", used([row]))


def _faults(row: dict) -> str:
    return BY_NAME["faults"].cell(row, False)


def notes(rows: list[dict]) -> list[str]:
    """What must be known to read the table."""
    lacking = [
        f"Raw id {row['JobIDRaw']} lacks {row['Missing']}." for row in rows if row["Missing"]
    ]
    estimated = [LEGEND_ESTIMATED] if any(row["Estimated"] for row in rows) else []
    return [LEGEND, *estimated, *lacking]


def unlisted(session: Session, chosen: Chosen) -> list[str]:
    """What a list by energy cannot have."""
    count = unmeasured(session, chosen)
    return [f"Jobs without a known energy, which are not listed: {count}."] if count else []


# ---- for programs ----


def as_records(rows: list[dict]) -> list[dict]:
    """Plain numbers by the names of `report usage` and `joulemark job`; null: not known."""
    return [_record(row) for row in rows]


def columns() -> list[str]:
    """The keys of as_records() also where there is no row."""
    return list(_record(dict.fromkeys(COLUMNS)))


def _record(row: dict) -> dict:
    return {
        **{"cluster": row["Cluster"], "job_id_raw": row["Job"], "run": row["Run"]},
        **{"step": row["Step"], "user": row["UserName"], "uid": row["Uid"]},
        **{"account": row["Account"], "partition": row["PartitionName"]},
        **{"nodes": row["NNodes"], "node_list": row["Nodes"]},
        **{"start_ns": row["Start_ns"], "end_ns": row["End_ns"]},
        **{"day": _date(row["Day"]), "last_day": _date(row["LastDay"]), "time_s": _time_s(row)},
        **_joules("energy", row["ConsumedEnergy_uj"]),
        "energy_error_j": row["UncertaintyJoules"],
        "energy_systematic_uj": row["UncertaintySystematic_uj"],
        "energy_random_uj": row["UncertaintyRandom_uj"],
        **_joules("energy_cpu", row["EnergyCPU_uj"]),
        **_joules("energy_dram", row["EnergyDRAM_uj"]),
        **_joules("energy_gpu", row["EnergyGPU_uj"]),
        **_joules("energy_rest", row["EnergyRest_uj"]),
        **_joules("energy_idle", row["EnergyIdle_uj"]),
        **{"mean_w": row["AveWatts"], "peak_bound_w": row["PeakWatts"]},
        **_joules("overhead", row["EnergyOverhead_uj"]),
        "overhead_error_j": row["OverheadJoules"],
        "overhead_systematic_uj": row["OverheadSystematic_uj"],
        "overhead_random_uj": row["OverheadRandom_uj"],
        **{"carbon_g": row["Carbon_g"], "carbon_error_g": row["CarbonError_g"]},
        "carbon_overhead_g": row["CarbonOverhead_g"],
        **{"cost": row["Cost"], "cost_error": row["CostError"]},
        **{"cost_overhead": row["CostOverhead"], "currency": row["Currency"]},
        **_joules("storage", row["EnergyStorage_uj"]),
        "storage_error_j": row["StorageJoules"],
        **{"read_bytes": row["BytesRead"], "written_bytes": row["BytesWritten"]},
        "metadata_ops": row["MetadataOps"],
        "method": row["Method"],
        **{"estimated": bool(row["Estimated"]), "incomplete": bool(row["Incomplete"])},
        **{"samples": seen(row, "Samples"), "gap_s": seen(row, "GapSeconds")},
        **{"split_policy": row["SplitPolicy"], "missing": row["Missing"]},
        **{"faults": row["Faults"], "regions": row["Regions"], "notes": row["Notes"]},
    }


def _joules(name: str, value_uj: int | None) -> dict[str, float | int | None]:
    in_j = None if value_uj is None else value_uj / UJ_PER_J
    return {f"{name}_j": in_j, f"{name}_uj": value_uj}


@lru_cache(maxsize=1024)
def _date(day: int | None) -> str | None:
    return None if day is None else (usage.EPOCH + datetime.timedelta(days=day)).isoformat()


def _time_s(row: dict) -> float | None:
    """ElapsedRaw, finer where the nodes' clocks can be compared."""
    whole_s = row["ElapsedRaw"]
    if None in (row["Start_ns"], row["End_ns"], whole_s):
        return whole_s
    fine_s = (row["End_ns"] - row["Start_ns"]) / NS_PER_S
    return fine_s if int(fine_s) == whole_s else float(whole_s)
