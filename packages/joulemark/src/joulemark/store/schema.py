# The store's tables, and how a store of an earlier version becomes one of this.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Energies are exact integers in microjoules (_uj); names are sacct's own where it has the field.
{name}, {text}, {id}, {table}, {rows} and {of_job_run} are each database's own words for a type, a
table or whose an index is."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from typing import Callable, Union

from joulemark.errors import UserError
from joulemark.storage.work import COLUMNS as WORK
from joulemark.storage.work import Work
from joulemark.store import nodes, zones
from joulemark.store.days import Zone
from joulemark.store.session import Session

Step = Union[str, Callable[[Session], None]]

FIRST: list[Step] = [
    """CREATE TABLE node_record (
        cluster {name} NOT NULL, job BIGINT NOT NULL, node {name} NOT NULL,
        complete BIGINT NOT NULL, end_ns BIGINT NOT NULL, body {text} NOT NULL,
        PRIMARY KEY (cluster, job, node)) {table}""",
    """CREATE TABLE job_node (
        cluster {name} NOT NULL, job BIGINT NOT NULL, node {name} NOT NULL,
        PRIMARY KEY (cluster, job, node)) {table}""",
    """CREATE TABLE job_record (
        Cluster {name} NOT NULL, JobIDRaw {name} NOT NULL, Job BIGINT NOT NULL,
        Step {name} NOT NULL,
        Uid BIGINT NOT NULL, NNodes BIGINT NOT NULL, Nodes {text} NOT NULL,
        Start_ns BIGINT, End_ns BIGINT, ElapsedRaw BIGINT,
        ConsumedEnergyRaw BIGINT, ConsumedEnergy_uj BIGINT,
        EnergyCPU_uj BIGINT, EnergyDRAM_uj BIGINT, EnergyGPU_uj BIGINT, EnergyRest_uj BIGINT,
        EnergyIdle_uj BIGINT, EnergyOverhead_uj BIGINT,
        AveWatts DOUBLE PRECISION, PeakWatts DOUBLE PRECISION,
        UncertaintySystematic_uj DOUBLE PRECISION, UncertaintyRandom_uj DOUBLE PRECISION,
        UncertaintyJoules DOUBLE PRECISION,
        Method {name}, Estimated BIGINT NOT NULL, Samples BIGINT NOT NULL,
        GapSeconds DOUBLE PRECISION NOT NULL, SplitPolicy {text} NOT NULL, Missing {text},
        Regions {text} NOT NULL,
        PRIMARY KEY (Cluster, JobIDRaw)) {table}""",
    "CREATE INDEX job_record_job ON job_record (Cluster, Job)",
]

# A job's row and its steps' rows, for each time that Slurm started it.
JOB_RUN_KEY = {"Cluster": "{name}", "Job": "BIGINT", "Run": "BIGINT", "Step": "{name}"}
JOB_RUN_NEEDED = {
    "Uid": "BIGINT",
    "NNodes": "BIGINT",
    "Nodes": "{text}",
    "Estimated": "BIGINT",
    "Incomplete": "BIGINT",
    "Samples": "BIGINT",
    "GapSeconds": "DOUBLE PRECISION",
    "SplitPolicy": "{text}",
    "Faults": "{text}",
    "Regions": "{text}",
}
JOB_RUN_KNOWN = {
    "Payer": "BIGINT",  # of steps NULL: their energy is in the job's
    "Month": "BIGINT",  # of the start, in the cluster's time zone: 202611
    "Day": "BIGINT",  # likewise, since 1970
    "LastDay": "BIGINT",  # of a job that saw more than one
    "LastMonth": "BIGINT",  # likewise
    "Start_ns": "BIGINT",
    "End_ns": "BIGINT",
    "ElapsedRaw": "BIGINT",
    "ConsumedEnergyRaw": "BIGINT",
    "ConsumedEnergy_uj": "BIGINT",
    "EnergyCPU_uj": "BIGINT",
    "EnergyDRAM_uj": "BIGINT",
    "EnergyGPU_uj": "BIGINT",
    "EnergyRest_uj": "BIGINT",
    "EnergyIdle_uj": "BIGINT",
    "AveWatts": "DOUBLE PRECISION",
    "PeakWatts": "DOUBLE PRECISION",
    "UncertaintySystematic_uj": "DOUBLE PRECISION",
    "UncertaintyRandom_uj": "DOUBLE PRECISION",
    "UncertaintyJoules": "DOUBLE PRECISION",  # of all its energy, k=2
    "Method": "{name}",
    "Missing": "{text}",
    "Notes": "{text}",
    "EnergyOverhead_uj": "BIGINT",
    "OverheadSystematic_uj": "DOUBLE PRECISION",
    "OverheadRandom_uj": "DOUBLE PRECISION",
    "OverheadJoules": "DOUBLE PRECISION",  # its uncertainty, k=2
    "Carbon_g": "DOUBLE PRECISION",
    "CarbonError_g": "DOUBLE PRECISION",
    "CarbonOverhead_g": "DOUBLE PRECISION",
    "Cost": "DOUBLE PRECISION",
    "CostError": "DOUBLE PRECISION",
    "CostOverhead": "DOUBLE PRECISION",
    "Currency": "{name}",
    "BytesRead": "BIGINT",  # of storage servers, as they counted it
    "BytesWritten": "BIGINT",
    "MetadataOps": "BIGINT",
    "EnergyStorage_uj": "BIGINT",
    "StorageSystematic_uj": "DOUBLE PRECISION",
    "StorageRandom_uj": "DOUBLE PRECISION",
    "StorageJoules": "DOUBLE PRECISION",  # its uncertainty, k=2
}
JOB_RUN = {**JOB_RUN_KEY, **JOB_RUN_NEEDED, **JOB_RUN_KNOWN}
# What `report usage` sums, so that the database reads nothing else of a million jobs.
USAGE_INDEX = (
    "Payer, Month, Day, ConsumedEnergy_uj, UncertaintySystematic_uj, UncertaintyRandom_uj, "
    "EnergyOverhead_uj, OverheadSystematic_uj, OverheadRandom_uj, "
    "Carbon_g, CarbonError_g, Cost, CostError, Estimated, Incomplete"
)
ADDED_BY_THIRD = ("LastDay", "LastMonth")
ADDED_BY_TENTH = (
    *WORK,
    *("EnergyStorage_uj", "StorageSystematic_uj", "StorageRandom_uj", "StorageJoules"),
)
USAGE_INDEX_OF_TENTH = (
    f"{USAGE_INDEX}, LastDay, LastMonth, EnergyStorage_uj, StorageSystematic_uj, StorageRandom_uj,"
    f" {', '.join(WORK)}"
)


def _job_run_table() -> str:
    columns = [
        f"{name} {kind} NOT NULL" for name, kind in {**JOB_RUN_KEY, **JOB_RUN_NEEDED}.items()
    ]
    later = [name for name in JOB_RUN_KNOWN if name in (*ADDED_BY_THIRD, *ADDED_BY_TENTH)]
    columns += [f"{name} {kind}" for name, kind in JOB_RUN_KNOWN.items() if name not in later]
    return (
        f"CREATE TABLE job_run ({', '.join(columns)}, PRIMARY KEY ({', '.join(JOB_RUN_KEY)})) "
        "{table}"
    )


BATCH = 1000


def _copy_node_records(session: Session) -> None:
    """Version 1 kept one record of a job on a node, and its own guesses among them."""
    last = ("", -1, "")
    while True:
        rows = session.rows(
            "SELECT cluster, job, node, body FROM node_record WHERE complete > 0 AND ("
            " cluster > ? OR (cluster = ? AND (job > ? OR (job = ? AND node > ?))))"
            f" ORDER BY cluster, job, node LIMIT {BATCH}",
            (last[0], last[0], last[1], last[1], last[2]),
        )
        if not rows:
            return
        found = [
            nodes.Found.of(body, json.loads(body), nodes.digest_of(body)) for *_, body in rows
        ]
        columns = nodes.FIRST_COLUMNS
        parts = [one.row()[: len(columns)] for one in found]
        session.upsert("node_run", columns, nodes.KEY, parts)
        last = rows[-1][:3]


def _copy_expected_nodes(session: Session) -> None:
    named: dict[tuple[str, int], list[str]] = {}
    for cluster, job, node in session.rows("SELECT cluster, job, node FROM job_node"):
        named.setdefault((cluster, job), []).append(node)
    rows = [
        (*key, 0, ",".join(sorted(found)), nodes.NO_RECORD, "", "", "")
        for key, found in named.items()
    ]
    session.upsert("slurm_run", nodes.RUN_COLUMNS, nodes.RUN_KEY, rows)


def _copy_jobs(session: Session) -> None:
    same = [name for name in JOB_RUN if name in _FIRST_COLUMNS]
    session.run(
        f"INSERT INTO job_run ({', '.join(same)}, Run, Incomplete, Faults)"
        f" SELECT {', '.join(same)}, 0, CASE WHEN Missing IS NULL THEN 0 ELSE 1 END, '[]'"
        " FROM job_record WHERE NOT EXISTS (SELECT 1 FROM job_run WHERE"
        " job_run.Cluster = job_record.Cluster AND job_run.Job = job_record.Job"
        " AND job_run.Step = job_record.Step)"
    )
    payers = "SELECT DISTINCT Cluster, Uid FROM job_run WHERE Step = 'job' AND Payer IS NULL"
    for cluster, uid in session.rows(payers):
        session.run(
            "UPDATE job_run SET Payer = ? WHERE Cluster = ? AND Uid = ? AND Step = 'job'",
            (nodes.payer(session, cluster, uid), cluster, uid),
        )


_FIRST_COLUMNS = set(FIRST[2].replace("(", " ").replace(",", " ").split())

SECOND: list[Step] = [
    """CREATE TABLE node_run (
        cluster {name} NOT NULL, job BIGINT NOT NULL, node {name} NOT NULL,
        run_key BIGINT NOT NULL, complete BIGINT NOT NULL, end_ns BIGINT NOT NULL,
        digest CHAR(32) NOT NULL, body {text} NOT NULL,
        PRIMARY KEY (cluster, job, node, run_key)) {rows}""",
    """CREATE TABLE slurm_run (
        cluster {name} NOT NULL, job BIGINT NOT NULL, restart BIGINT NOT NULL,
        nodes {text} NOT NULL, why {text} NOT NULL,
        UserName {name} NOT NULL, Account {name} NOT NULL, PartitionName {name} NOT NULL,
        PRIMARY KEY (cluster, job, restart)) {table}""",
    """CREATE TABLE payer (
        id {id}, Cluster {name} NOT NULL, Uid BIGINT NOT NULL, UserName {name} NOT NULL,
        Account {name} NOT NULL, PartitionName {name} NOT NULL, Currency {name} NOT NULL)
        {rows}""",
    """CREATE TABLE pending (
        cluster {name} NOT NULL, job BIGINT NOT NULL, tries BIGINT NOT NULL,
        PRIMARY KEY (cluster, job)) {table}""",
    _job_run_table(),
    _copy_node_records,
    _copy_expected_nodes,
    _copy_jobs,
    f"CREATE INDEX job_run_usage ON job_run ({USAGE_INDEX})",
    "CREATE INDEX job_run_energy ON job_run (ConsumedEnergy_uj)",
    "DROP TABLE IF EXISTS job_record",
    "DROP TABLE IF EXISTS job_node",
    "DROP TABLE IF EXISTS node_record",
]


def _find_days(session: Session) -> None:
    """Until a merge says another zone, days are UTC's."""
    for (cluster,) in session.rows("SELECT DISTINCT Cluster FROM job_run"):
        zones.renew(session, cluster, Zone())


SUMS_INDEX_OF_THIRD = f"CREATE INDEX job_run_sums ON job_run ({USAGE_INDEX}, LastDay, LastMonth)"
THIRD: list[Step] = [
    *(f"ALTER TABLE job_run ADD COLUMN {name} {JOB_RUN_KNOWN[name]}" for name in ADDED_BY_THIRD),
    """CREATE TABLE time_zone (
        Cluster {name} NOT NULL, Name {name} NOT NULL, PRIMARY KEY (Cluster)) {table}""",
    _find_days,
    SUMS_INDEX_OF_THIRD,
    "CREATE INDEX job_run_last ON job_run (LastDay, LastMonth)",
    "DROP INDEX job_run_usage{of_job_run}",
]

# What store.sums sums: of pruned jobs only this is left. Energies may be too great for 63 bits.
KEPT_OF_FOURTH = {
    **dict.fromkeys(("Payer", "FirstDay", "LastDay", "Day"), "BIGINT"),
    **dict.fromkeys(("energy_uj", "overhead_uj"), "{name}"),
    **dict.fromkeys(("systematic_uj", "random_uj2"), "DOUBLE PRECISION"),
    **dict.fromkeys(("overhead_systematic_uj", "overhead_random_uj2"), "DOUBLE PRECISION"),
    **dict.fromkeys(("carbon_g", "carbon_error_g", "cost", "cost_error"), "DOUBLE PRECISION"),
    **dict.fromkeys(("jobs", "estimated", "incomplete", "energy_jobs"), "BIGINT"),
    **dict.fromkeys(("overhead_jobs", "carbon_jobs", "cost_jobs"), "BIGINT"),
}
KEPT_ADDED_BY_TENTH = {
    **dict.fromkeys(("storage_uj", *Work._fields), ("{name}", "'0'")),
    **dict.fromkeys(("storage_systematic_uj", "storage_random_uj2"), ("DOUBLE PRECISION", "0")),
    **dict.fromkeys(("storage_jobs", "work_jobs"), ("BIGINT", "0")),
}
KEPT = (*KEPT_OF_FOURTH, *KEPT_ADDED_BY_TENTH)
KEPT_KEY = ("Payer", "FirstDay", "LastDay", "Day")


def _sums_table(table: str, columns: dict[str, str], key: tuple[str, ...]) -> str:
    texts = [f"{name} {kind} NOT NULL" for name, kind in columns.items()]
    return f"CREATE TABLE {table} ({', '.join(texts)}, PRIMARY KEY ({', '.join(key)})) {{table}}"


# What somebody decided of a job's charge; the last one holds, the others are its history.
FOURTH: list[Step] = [
    """CREATE TABLE correction (
        Cluster {name} NOT NULL, Job BIGINT NOT NULL, Number BIGINT NOT NULL,
        Made_ns BIGINT NOT NULL, Author {name} NOT NULL, Share DOUBLE PRECISION,
        Energy_uj BIGINT, Why {text} NOT NULL, PRIMARY KEY (Cluster, Job, Number)) {table}""",
    _sums_table("kept", KEPT_OF_FOURTH, KEPT_KEY),
    """CREATE TABLE held (
        Cluster {name} NOT NULL, Account {name} NOT NULL, GrpJobs {name} NOT NULL,
        PRIMARY KEY (Cluster, Account)) {table}""",
    """CREATE TABLE pruned (
        Cluster {name} NOT NULL, End_ns BIGINT NOT NULL, PRIMARY KEY (Cluster)) {table}""",
]


def _bodies(session: Session) -> Iterator[list[tuple]]:
    """nodes.KEY and the body of each node record, a thousand at once."""
    key, last = nodes.KEY, ("", -1, "", -1)
    while True:
        after, begin = session.after(key, last)
        rows = session.rows(
            f"SELECT {', '.join(key)}, body FROM node_run WHERE {after}"
            f" ORDER BY {', '.join(key)} LIMIT {BATCH}",
            begin,
        )
        if not rows:
            return
        yield rows
        last = rows[-1][: len(key)]


def _update(session: Session, columns: Sequence[str], rows: list[tuple]) -> None:
    """rows: values of these columns of node_run, and of nodes.KEY."""
    session.go_on()
    sets = ", ".join(f"{name} = ?" for name in columns)
    where = " AND ".join(f"{name} = ?" for name in nodes.KEY)
    session.many(f"UPDATE node_run SET {sets} WHERE {where}", rows)


def _find_uses(session: Session) -> None:
    for rows in _bodies(session):
        found = [(*nodes.Found.of(body, json.loads(body), "").use, *at) for *at, body in rows]
        _update(session, nodes.USE_COLUMNS, found)


def _pack_bodies(session: Session) -> None:
    """JSON has braces, what is packed has none: an upgrade may have been cut off."""
    for rows in _bodies(session):
        plain = [(nodes.packed(body), *at) for *at, body in rows if "{" in body]
        _update(session, ("body",), plain)


# What store.node_sums sums; of pruned jobs the second table is left.
NODE_USE = {
    **dict.fromkeys(nodes.USE_COLUMNS, "DOUBLE PRECISION"),
    **dict.fromkeys(("energy_uj", "estimated"), "BIGINT"),
}
KEPT_NODE_KEY = ("cluster", "node", "day")
KEPT_NODE = {
    **{"cluster": "{name}", "node": "{name}", "day": "BIGINT"},
    **dict.fromkeys(("jobs", "energy_jobs", "energy_high", "energy_low"), "BIGINT"),
    **{name: kind for name, kind in NODE_USE.items() if name != "energy_uj"},
}
FIFTH: list[Step] = [
    *(f"ALTER TABLE node_run ADD COLUMN {name} {kind}" for name, kind in NODE_USE.items()),
    _find_uses,
    f"CREATE INDEX node_run_use ON node_run (cluster, node, end_ns, {', '.join(NODE_USE)})",
    _sums_table("kept_node", KEPT_NODE, KEPT_NODE_KEY),
]

SIXTH: list[Step] = [
    f"UPDATE {table} SET Account = '' WHERE Account = '{nodes.NO_ACCOUNT}'"
    for table in ("slurm_run", "payer")
]

SEVENTH: list[Step] = [_pack_bodies]

# Whose energies are in `kept`, and before when their runs ended: numbers are given again. In which
# time zones their days are.
EIGHTH: list[Step] = [
    """CREATE TABLE pruned_job (
        cluster {name} NOT NULL, job BIGINT NOT NULL, end_ns BIGINT NOT NULL,
        PRIMARY KEY (cluster, job)) {table}""",
    """CREATE TABLE pruned_zone (
        cluster {name} NOT NULL, name {name} NOT NULL, PRIMARY KEY (cluster, name)) {table}""",
]

# Of a correction what its job's runs were charged without it, as JSON.
NINTH: list[Step] = ["ALTER TABLE correction ADD COLUMN Measured {text}"]

TENTH: list[Step] = [
    *(f"ALTER TABLE job_run ADD COLUMN {name} {JOB_RUN_KNOWN[name]}" for name in ADDED_BY_TENTH),
    "DROP INDEX job_run_sums{of_job_run}",
    f"CREATE INDEX job_run_sums ON job_run ({USAGE_INDEX_OF_TENTH})",
    *(
        f"ALTER TABLE kept ADD COLUMN {name} {kind} DEFAULT {of_none} NOT NULL"
        for name, (kind, of_none) in KEPT_ADDED_BY_TENTH.items()
    ),
]

VERSIONS = [FIRST, SECOND, THIRD, FOURTH, FIFTH, SIXTH, SEVENTH, EIGHTH, NINTH, TENTH]


def check(session: Session) -> int:
    """The store's version; one that a newer joulemark wrote is refused."""
    found = version(session)
    if found > len(VERSIONS):
        raise UserError(
            f"{session.place}: written by a newer joulemark (store version {found}, "
            f"this one knows {len(VERSIONS)}): update joulemark"
        )
    return found


def version(session: Session) -> int:
    """0 where there is nothing yet."""
    if not session.has_table("migration"):
        return 0
    return session.value("SELECT coalesce(max(version), 0) FROM migration")


def migrate(session: Session, known: int = len(VERSIONS)) -> None:
    """Brings a store to version `known`, in place; a run that was interrupted is taken up."""
    if check(session) >= known:
        return
    session.prepare()
    session.begin()
    try:
        _make_tables_of_progress(session)
        for number in range(version(session) + 1, known + 1):
            _apply(session, number)
    except BaseException:
        session.rollback()
        raise
    session.commit()


def _make_tables_of_progress(session: Session) -> None:
    table = session.types["table"]
    for statement in (
        "CREATE TABLE IF NOT EXISTS migration"
        " (version BIGINT PRIMARY KEY, applied {name} NOT NULL)",
        "CREATE TABLE IF NOT EXISTS migration_step (version BIGINT NOT NULL, step BIGINT NOT NULL,"
        f" PRIMARY KEY (version, step)) {table}",
    ):
        session.run(statement.format_map(session.types))


def _apply(session: Session, number: int) -> None:
    """Notes each step that is done, for databases that cannot undo a schema's change."""
    done = {
        step
        for (step,) in session.rows("SELECT step FROM migration_step WHERE version = ?", [number])
    }
    for index, step in enumerate(VERSIONS[number - 1]):
        if index not in done:
            _do(session, step)
            session.run("INSERT INTO migration_step VALUES (?, ?)", (number, index))
    applied = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
    session.run("INSERT INTO migration VALUES (?, ?)", (number, applied))


def _do(session: Session, step: Step) -> None:
    if callable(step):
        step(session)
        return
    try:
        session.run(step.format_map(session.types))
    except session.driver_error as error:
        if not session.is_done_before(error):
            raise
