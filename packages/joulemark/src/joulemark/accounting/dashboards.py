# Grafana's dashboards of what `joulemark export prometheus` writes; joulemark.shell installs them.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import json
from dataclasses import dataclass

VARIABLES = ("cluster", "account", "user", "partition")
SELECTED = ",".join(f'{name}=~"${name}"' for name in VARIABLES)
OF_CLUSTER = 'cluster=~"$cluster"'
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
CHOICE_OF_SOURCE = {
    "name": "datasource",
    "type": "datasource",
    "label": "Prometheus",
    "query": "prometheus",
}
RANGE, STEP = "$__range", "$__interval"
SCHEMA = 39  # of Grafana 10.4 and 11; later ones read it
WIDTH = 24  # Grafana's columns
J, GRAMS, COUNT, MONEY, PART = "joule", "massg", "short", "none", "percentunit"  # its units
WATTS, SECONDS, BYTES = "watt", "s", "decbytes"  # likewise
LICENSE = "SPDX-License-Identifier: Apache-2.0 OR MIT"


@dataclass(frozen=True)
class Query:
    """name: a column's head, or a legend; in `bars` and `top` it is of labels."""

    name: str
    expr: str
    unit: str = COUNT


@dataclass(frozen=True)
class Panel:
    """kind: of PANELS."""

    kind: str
    title: str
    about: str
    queries: tuple[Query, ...]
    width: int = WIDTH
    height: int = 8


@dataclass(frozen=True)
class Dashboard:
    name: str  # of the file, and in the address
    about: str
    panels: tuple[Panel, ...]


def series(metric: str, more: str = "") -> str:
    """A node's are of all its jobs."""
    selected = OF_CLUSTER if metric.startswith("node_") else SELECTED
    return f"joulemark_{metric}{{{selected}{more}}}"


def ever(metric: str, by: str = "", more: str = "") -> str:
    """The sum over all jobs of the store."""
    return f"sum by ({by}) ({series(metric, more)})"


def ended(metric: str, by: str = "", more: str = "", over: str = RANGE) -> str:
    """Of jobs that ended in the time before: what there is now less what there was.

    increase() and rate() take a refund for a restart from 0, delta() leaves out a user's first
    jobs, whose series is new. Nothing where a cluster's export is missing at one end.
    """
    now = series(metric, more)
    both = f'({now} or label_replace(-{now} offset {over}, "at", "start", "", ""))'
    exported = "and on (cluster) joulemark_jobs"
    return f"sum by ({by}) ({both} {exported} {exported} offset {over})"


def unknown(by: str = "", over: str = RANGE) -> str:
    """Jobs whose energy is not known."""
    jobs = ended("jobs", by, over=over)
    known = ended("covered_jobs", by, ',sum="energy"', over)
    return f"{jobs} - ({known} or 0 * {jobs})"


def job_power_w(of: str = "cluster,node") -> str:
    """Of nodes: what jobs used there over their time, so that it is of one job."""
    return f"{ended('node_energy_joules', of)} / ({ended('node_job_seconds', of)} > 0)"


ENDED = "Of jobs that ended in the time shown. "
SINCE = "Of all jobs in the store, whatever the time shown. "
PARTIAL = "A sum is of the jobs of which it is known; how many those are, stands beside it. "
AT_STEP = "Each bar is of the jobs that ended in it, with all they used since they began. "
AT_MOST = (
    "+-: k=2; the groups' uncertainties are added, which is the most that it can be together. "
)

OF_NODES = (
    "Power a job: energy over the jobs' time, two at once having two seconds in a second; it "
    "compares nodes that run as many jobs at once, not what nodes draw. What no job used is not "
    "in it. All users' jobs, whoever is chosen. "
)

ENERGY = Panel(
    "stat",
    "Energy",
    ENDED + "Overhead: their part of shared channels, such as cooling; storage: what file servers "
    "drew for them; neither is in the energy.",
    (
        Query("energy", ended("energy_joules"), J),
        Query("overhead", ended("overhead_joules"), J),
        Query("storage", ended("storage_joules"), J),
    ),
    width=6,
)

USAGE = Dashboard(
    "joulemark-usage",
    "Who used how much energy: ended jobs by user and account",
    (
        Panel(
            "stat",
            "Jobs",
            ENDED + PARTIAL,
            (
                Query("ended", ended("jobs")),
                *(
                    Query(f"with {name}", ended("covered_jobs", "", f',sum="{name}"'))
                    for name in ("energy", "overhead", "carbon", "cost")
                ),
            ),
            width=10,
        ),
        ENERGY,
        Panel(
            "stat",
            "CO2e",
            ENDED + "Of the energy, by the site's factor.",
            (Query("CO2e", ended("carbon_grams"), GRAMS),),
            width=4,
        ),
        Panel(
            "stat",
            "Cost",
            ENDED + "Of the energy, by currency.",
            (Query("{{currency}}", ended("cost", "currency"), MONEY),),
            width=4,
        ),
        Panel(
            "bars",
            "Energy by account",
            AT_STEP,
            (Query("{{account}}", ended("energy_joules", "account", over=STEP), J),),
        ),
        Panel(
            "top",
            "Ten users with the most energy",
            ENDED,
            (Query("{{user}}", f"topk(10, {ended('energy_joules', 'user')})", J),),
            width=12,
        ),
        Panel(
            "top",
            "Ten accounts with the most energy",
            ENDED,
            (Query("{{account}}", f"topk(10, {ended('energy_joules', 'account')})", J),),
            width=12,
        ),
        Panel(
            "table",
            "Users and accounts",
            ENDED + PARTIAL,
            (
                Query("Jobs", ended("jobs", "account,user")),
                Query("With energy", ended("covered_jobs", "account,user", ',sum="energy"')),
                Query("Estimated", ended("estimated_jobs", "account,user")),
                Query("Record missing", ended("incomplete_jobs", "account,user")),
                Query("Energy", ended("energy_joules", "account,user"), J),
                Query("Overhead", ended("overhead_joules", "account,user"), J),
                Query("CO2e", ended("carbon_grams", "account,user"), GRAMS),
            ),
            height=10,
        ),
        Panel(
            "table",
            "What file servers did",
            ENDED + PARTIAL,
            (
                Query("Read", ended("storage_bytes", "account,user", ',direction="read"'), BYTES),
                Query(
                    "Written", ended("storage_bytes", "account,user", ',direction="write"'), BYTES
                ),
                Query("Metadata", ended("storage_metadata_operations", "account,user")),
                Query("Energy", ended("storage_joules", "account,user"), J),
            ),
            height=8,
        ),
        Panel(
            "table",
            "Cost",
            ENDED + PARTIAL,
            (
                Query("Cost", ended("cost", "account,user,currency"), MONEY),
                Query("Of jobs", ended("cost_jobs", "account,user,currency")),
            ),
            width=12,
            height=10,
        ),
        Panel(
            "table",
            "Users and accounts since the store began",
            SINCE + PARTIAL + AT_MOST,
            (
                Query("Jobs", ever("jobs", "account,user")),
                Query("With energy", ever("covered_jobs", "account,user", ',sum="energy"')),
                Query("Energy", ever("energy_joules", "account,user"), J),
                Query("+-", ever("energy_uncertainty_joules", "account,user"), J),
            ),
            width=12,
            height=10,
        ),
    ),
)

OPERATORS = Dashboard(
    "joulemark-operators",
    "Whether the books are whole: jobs without energy or a node's record, estimates, uncertainty; "
    "and nodes compared",
    (
        Panel(
            "stat",
            "Jobs",
            ENDED + "What is missing of the rest, `joulemark report jobs` and `doctor` say.",
            (
                Query("ended", ended("jobs")),
                Query("energy not known", unknown()),
                Query("a node's record missing", ended("incomplete_jobs")),
                Query("estimated by a model", ended("estimated_jobs")),
            ),
            width=10,
        ),
        ENERGY,
        Panel(
            "stat",
            "Jobs that a sum is of",
            SINCE + "The part whose energy, overhead, carbon and cost are known.",
            (
                Query(
                    "{{sum}}",
                    f"{ever('covered_jobs', 'sum')} / on () group_left {ever('jobs')}",
                    PART,
                ),
            ),
            width=8,
        ),
        Panel(
            "bars",
            "Energy by partition",
            AT_STEP,
            (
                Query(
                    "{{cluster}} {{partition}}",
                    ended("energy_joules", "cluster,partition", over=STEP),
                    J,
                ),
            ),
            width=12,
        ),
        Panel(
            "bars",
            "Jobs with something missing",
            "Each bar is of the jobs that ended in it; a job may be in several. ",
            (
                Query("energy not known", unknown(over=STEP)),
                Query("a node's record missing", ended("incomplete_jobs", over=STEP)),
                Query("estimated by a model", ended("estimated_jobs", over=STEP)),
            ),
            width=12,
        ),
        Panel(
            "table",
            "Partitions",
            ENDED,
            (
                Query("Jobs", ended("jobs", "cluster,partition")),
                Query("Energy not known", unknown("cluster,partition")),
                Query("Record missing", ended("incomplete_jobs", "cluster,partition")),
                Query("Estimated", ended("estimated_jobs", "cluster,partition")),
                Query("Energy", ended("energy_joules", "cluster,partition"), J),
                Query("Overhead", ended("overhead_joules", "cluster,partition"), J),
            ),
        ),
        Panel(
            "table",
            "Whose jobs lack a node's record",
            ENDED,
            (
                Query(
                    "Record missing",
                    f"{ended('incomplete_jobs', 'cluster,partition,account,user')} > 0",
                ),
                Query("Jobs", ended("jobs", "cluster,partition,account,user")),
            ),
            width=12,
        ),
        Panel(
            "top",
            "Uncertainty of the energy",
            SINCE + AT_MOST,
            (
                Query(
                    "{{cluster}} {{partition}}",
                    f"{ever('energy_uncertainty_joules', 'cluster,partition')}"
                    f" / ({ever('energy_joules', 'cluster,partition')} > 0)",
                    PART,
                ),
            ),
            width=12,
        ),
        Panel(
            "top",
            "Twenty nodes with the highest power a job",
            ENDED + OF_NODES,
            (Query("{{cluster}} {{node}}", f"topk(20, {job_power_w()})", WATTS),),
            width=10,
            height=12,
        ),
        Panel(
            "table",
            "Nodes",
            ENDED + OF_NODES + PARTIAL,
            (
                Query("Jobs", ended("node_jobs", "cluster,node")),
                Query("With energy", ended("node_covered_jobs", "cluster,node")),
                Query("Energy", ended("node_energy_joules", "cluster,node"), J),
                Query("Jobs' time", ended("node_job_seconds", "cluster,node"), SECONDS),
                Query("Power a job", job_power_w(), WATTS),
                Query("Energy ever", ever("node_energy_joules", "cluster,node"), J),
                Query("+-", ever("node_energy_uncertainty_joules", "cluster,node"), J),
            ),
            width=14,
            height=12,
        ),
    ),
)
DASHBOARDS = (USAGE, OPERATORS)


# -- as Grafana's JSON ---------------------------------------------------------------------------

STACKED = {"drawStyle": "bars", "fillOpacity": 80, "stacking": {"mode": "normal", "group": "A"}}
LAST = {"calcs": ["lastNotNull"], "fields": "", "values": False}
# a kind's type, options, custom fields, and whether it is of one time, the end of the range
PANELS = {
    "stat": ("stat", {"reduceOptions": LAST, "graphMode": "none"}, {}, True),
    "top": (
        "bargauge",
        {"reduceOptions": LAST, "orientation": "horizontal", "displayMode": "basic"},
        {},
        True,
    ),
    "table": ("table", {}, {}, True),
    "bars": (
        "timeseries",
        {
            "legend": {"displayMode": "list", "placement": "bottom", "calcs": []},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        STACKED,
        False,
    ),
}
LEAST_STEP = "10m"  # of bars: exports come every few minutes


def files() -> dict[str, str]:
    """Each dashboard's text by its file's name."""
    return {
        f"{one.name}.json": json.dumps(_dashboard(one), indent=2, ensure_ascii=False) + "\n"
        for one in DASHBOARDS
    }


def _dashboard(one: Dashboard) -> dict:
    return {
        "uid": one.name,
        "title": one.name.replace("-", " ").capitalize(),
        "description": f"{one.about}. {LICENSE}",
        "tags": ["joulemark"],
        "schemaVersion": SCHEMA,
        "editable": True,
        "time": {"from": "now-7d", "to": "now"},
        "refresh": "",
        "links": [],
        "annotations": {"list": []},
        "templating": {"list": [CHOICE_OF_SOURCE, *map(_variable, VARIABLES)]},
        "panels": _panels(one.panels),
    }


def _variable(name: str) -> dict:
    return {
        "name": name,
        "type": "query",
        "label": name.capitalize(),
        "datasource": SOURCE,
        "query": {"query": f"label_values(joulemark_jobs, {name})", "refId": name},
        "includeAll": True,
        "allValue": ".*",
        "multi": True,
        "current": {"text": ["All"], "value": ["$__all"]},
        "refresh": 2,  # with the range of time
        "sort": 1,
    }


def _panels(panels: tuple[Panel, ...]) -> list[dict]:
    """From left to right, in lines as high as their first."""
    found, x, y, below = [], 0, 0, 0
    for number, one in enumerate(panels, 1):
        if x + one.width > WIDTH:
            x, y = 0, below
        place = {"x": x, "y": y, "w": one.width, "h": one.height}
        x, below = x + one.width, y + one.height
        found.append({"id": number, "gridPos": place, **_panel(one)})
    return found


def _panel(one: Panel) -> dict:
    kind, options, custom, instant = PANELS[one.kind]
    more = {"interval": LEAST_STEP} if not instant else {}
    if kind == "table":
        hide = {"id": "organize", "options": {"excludeByName": {"Time": True}}}
        more["transformations"] = [{"id": "merge", "options": {}}, hide]
    return {
        "type": kind,
        "title": one.title,
        "description": one.about.strip(),
        "datasource": SOURCE,
        "fieldConfig": {
            "defaults": {"unit": one.queries[0].unit, "custom": custom},
            "overrides": [_column(*item) for item in _lettered(one)] if kind == "table" else [],
        },
        "options": options,
        "targets": [_target(letter, query, kind, instant) for letter, query in _lettered(one)],
        **more,
    }


def _lettered(one: Panel) -> list[tuple[str, Query]]:
    return list(zip("ABCDEFGH", one.queries))


def _column(letter: str, query: Query) -> dict:
    head = {"id": "displayName", "value": query.name}
    unit = {"id": "unit", "value": query.unit}
    return {"matcher": {"id": "byName", "options": f"Value #{letter}"}, "properties": [head, unit]}


def _target(letter: str, query: Query, kind: str, instant: bool) -> dict:
    return {
        "refId": letter,
        "datasource": SOURCE,
        "expr": query.expr,
        "legendFormat": query.name,
        "format": "table" if kind == "table" else "time_series",
        "instant": instant,
        "range": not instant,
    }
