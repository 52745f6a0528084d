# Tests of joulemark.accounting.storagepower: what servers drew for jobs, against a server whose
# truth is computed here, second by second.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The server is as real ones are and our model is not: what it draws is not linear in the bytes,
pages are written seconds late and not evenly so, its noise lasts."""

import dataclasses
import itertools
import json
import math
import os
import random
import re

import builders
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joulemark.accounting import shared, storagemodel, storagepower
from joulemark.accounting.course import Course
from joulemark.storage.work import Work

S = 10**9
IDLE_W = 926.0  # an SSU of PRACE's, table 30
COSTS = (50e-9, 66e-9, 0.01)  # J a byte read, a byte written, an operation
LATE_S = 6  # mean, of an exponential decay
START_S = 86_400 * 3  # of the jobs, after a day of history
DAY = builders.START_NS // (86_400 * S)


class Server:
    """Second by second: what jobs ask of it, when it works on that, and what it draws."""

    def __init__(self, seconds, noise_w=6.0, seed=1, bend=0.15):
        self.seconds, self.bend = seconds, bend
        self.asked = {}  # by job: lists of (read, written, ops) of each second
        self._dice, self._noise = random.Random(seed), random.Random(f"noise {seed}")
        self._noise_w = noise_w

    def ask(self, job, begin_s, end_s, *rates):
        work = self.asked.setdefault(job, [(0, 0, 0)] * self.seconds)
        for second in range(begin_s, end_s):
            work[second] = tuple(a + round(b) for a, b in zip(work[second], rates))

    def ask_by_chance(self, job, begin_s, end_s):
        """An hour's mix of bursts."""
        second = begin_s
        while second < end_s:
            length = self._dice.randint(20, 400)
            kinds = [self._dice.random() < 0.5 for _ in COSTS]
            rates = [
                used * self._dice.uniform(0, most) for used, most in zip(kinds, (2e9, 2e9, 4e3))
            ]
            self.ask(job, second, min(end_s, second + length), *rates)
            second += length + self._dice.randint(0, 300)

    def run(self):
        """Power, and what of it above idle each job is the cause of."""
        cost = {job: self._costs(work) for job, work in self.asked.items()}
        self.power_w, noise_w = [], 0.0
        self.truth_j = dict.fromkeys(cost, 0.0)
        most_w = 300.0
        for second in range(self.seconds):
            load_w = sum(of_job[second] for of_job in cost.values())
            drawn_w = load_w * (1 - self.bend * load_w / most_w)
            noise_w = 0.9 * noise_w + self._noise.gauss(0, self._noise_w * (1 - 0.81) ** 0.5)
            self.power_w.append(IDLE_W + drawn_w + noise_w)
            for job, of_job in cost.items():
                self.truth_j[job] += drawn_w * of_job[second] / load_w if load_w else 0.0
        return self

    @staticmethod
    def _costs(work):
        """J a second; what is written wears off."""
        found, dirty = [], 0.0
        for read, written, ops in work:
            dirty += written
            flushed = dirty / LATE_S
            dirty -= flushed
            found.append(read * COSTS[0] + flushed * COSTS[1] + ops * COSTS[2])
        return found

    def write(self, site, line_s=60, round_s=30, gain=1.0, name="oss1"):
        """The gateway's lines and the collector's, whose moments are not the same."""
        begin_ns = builders.START_NS - START_S * S
        energy_uj, lines = 0, []
        for second, power_w in enumerate(self.power_w):
            if second % line_s == 0:
                lines.append(
                    {
                        "time_ns": begin_ns + second * S,
                        "energy_uj": energy_uj,
                        "systematic_uj": energy_uj * 0.01,
                        "random_uj": 0.0,
                        "nodes": name,
                        "split": "io",
                        "run": "a",
                    }
                )
            energy_uj += round(power_w * gain * 10**6)
        self.drawn_uj = lines[-1]["energy_uj"]
        put(site, "shared", f"{name}-power", lines)
        put(site, "io", name, self.rounds(begin_ns, round_s))

    def rounds(self, begin_ns, round_s=30):
        rounds = []
        for begin_s in range(7, self.seconds - round_s, round_s):
            jobs = {}
            for job, work in self.asked.items():
                total = [sum(one) for one in zip(*work[begin_s : begin_s + round_s])]
                if any(total):
                    jobs[job] = total
            rounds.append(
                {
                    "time_ns": begin_ns + (begin_s + round_s) * S,
                    "from_ns": begin_ns + begin_s * S,
                    "total": [sum(one) for one in zip(*jobs.values(), [0, 0, 0])],
                    "unread": 0,
                    "jobs": jobs,
                }
            )
        return rounds


def put(site, folder, name, lines):
    place = site.records / folder
    place.mkdir(exist_ok=True)
    (place / f"{name}.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in lines))


def run_jobs(site, server, spans):
    """Of each job number its begin and end, s after the first job's start."""
    for number, (begin_s, end_s) in spans.items():
        times = {"seconds": end_s - begin_s, "start_s": begin_s}
        accounts = [builders.account(step, **times) for step in ("job", "0")]
        site.leave(number, "n1", accounts)
    assert site.run("merge")[0] == 0
    return {number: site.job(number)[str(number)] for number in spans}


def three_jobs(site, history_s=86_400, seed=1, **of_server):
    """A reader, a writer and one that does all, at once, beside others, after a day of history."""
    server = Server(START_S + 1200, seed=seed, **of_server)
    server.ask_by_chance("", START_S - history_s, START_S - 600)
    server.ask("1.0", START_S + 60, START_S + 500, 1.2e9, 0, 0)
    server.ask("2.0", START_S + 100, START_S + 560, 0, 1.0e9, 0)
    server.ask("3.0", START_S + 30, START_S + 570, 0.4e9, 0.3e9, 2e3)
    server.ask("", START_S, START_S + 800, 0.2e9, 0.1e9, 100)
    server.run().write(site)
    return server, run_jobs(site, server, {1: (50, 510), 2: (90, 570), 3: (20, 580)})


@pytest.mark.parametrize("bend", [0.0, 0.15, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_three_jobs_at_once_within_their_errors(site, seed, bend):
    server, rows = three_jobs(site, seed=seed, bend=bend)
    for number, row in rows.items():
        truth_j, found_j = server.truth_j[f"{number}.0"], row["EnergyStorage_uj"] / 1e6
        assert row["StorageJoules"] <= 0.1 * found_j
        assert abs(found_j - truth_j) <= row["StorageJoules"], (number, found_j, truth_j)
        assert row["Notes"] is None


def test_a_job_that_did_nothing_is_charged_nothing(site):
    server = Server(START_S + 900)
    server.ask_by_chance("", 0, START_S - 600)
    server.run().write(site)
    rows = run_jobs(site, server, {1: (50, 510)})
    assert (rows[1]["EnergyStorage_uj"], rows[1]["StorageJoules"]) == (0, 0.0)


def test_a_merge_of_today_and_one_of_next_week_say_the_same(site):
    """The model is that of the day before; what comes later does not change it."""
    server, rows = three_jobs(site)
    kept = (site.records / "io" / "models" / f"oss1-power.{DAY}.json").read_text()
    again = Server(START_S + 7200)
    again.asked = {job: work + [(0, 0, 0)] * 6000 for job, work in server.asked.items()}
    again.ask_by_chance("9.0", START_S + 1500, START_S + 7200)
    again.run().write(site)  # the same dice: what was before is as it was
    assert site.run("merge", "--rebuild")[0] == 0
    for number, row in rows.items():
        assert site.job(number)[str(number)]["EnergyStorage_uj"] == row["EnergyStorage_uj"]
    assert (site.records / "io" / "models" / f"oss1-power.{DAY}.json").read_text() == kept


def test_a_server_of_today_has_a_model_of_today(site):
    server, rows = three_jobs(site, history_s=3 * 3600)
    for number, row in rows.items():
        truth_j, found_j = server.truth_j[f"{number}.0"], row["EnergyStorage_uj"] / 1e6
        assert abs(found_j - truth_j) <= 1.5 * row["StorageJoules"]  # k=3
        assert row["StorageJoules"] <= 0.1 * found_j


def test_energy_waits_for_the_lines_of_all_nodes_that_a_channel_names(site, monkeypatch):
    """What a job did is known by those of its own; not so what others did meanwhile."""
    server = Server(START_S + 1200)
    server.ask_by_chance("", START_S - 86_400, START_S - 600)
    server.ask("1.", START_S + 60, START_S + 500, 1.2e9, 0, 0)
    server.run().write(site)
    monkeypatch.setattr("time.time_ns", lambda: builders.START_NS + 1000 * S)
    power = site.records / "shared" / "oss1-power.jsonl"
    power.write_text(power.read_text().replace('"oss1"', '"n1,n2"'))
    nodes = site.records / "io" / "nodes"
    nodes.mkdir()
    (site.records / "io" / "oss1.jsonl").rename(nodes / "n1.jsonl")
    idle = [
        {**one, "total": [0, 0, 0], "jobs": {}}
        for one in server.rounds(builders.START_NS - START_S * S)
    ]
    put(site, "io", "nodes/n2", [one for one in idle if one["time_ns"] < builders.START_NS])
    row = run_jobs(site, server, {1: (50, 510)})[1]
    assert (row["BytesRead"], row["EnergyStorage_uj"], row["Notes"]) == (528 * 10**9, None, None)
    put(site, "io", "nodes/n2", idle)
    assert site.run("merge")[0] == 0
    row = site.job(1)["1"]
    found_j = row["EnergyStorage_uj"] / 1e6
    assert abs(found_j - server.truth_j["1."]) <= 1.5 * row["StorageJoules"]  # k=3
    assert row["Notes"] is None


def test_what_lacks_is_said(site):
    server = Server(1800)
    server.ask("1.0", 100, 900, 1e9, 0, 0)
    server.run().write(site, line_s=120)
    begin_s = -START_S
    rows = run_jobs(site, server, {1: (begin_s + 50, begin_s + 1000)})
    assert rows[1]["EnergyStorage_uj"] is None and rows[1]["BytesRead"] == 800 * 10**9
    assert rows[1]["Notes"] == "oss1-power: no energy of storage: its history is too short"
    server.write(site, name="oss2")
    (site.records / "io" / "oss2.jsonl").unlink()
    rows = run_jobs(site, server, {2: (begin_s + 50, begin_s + 1000)})
    assert "oss2-power: no energy of storage: what oss2 did is not known" in rows[2]["Notes"]


def test_it_is_no_overhead(site):
    _, rows = three_jobs(site)
    assert all(row["EnergyOverhead_uj"] is None for row in rows.values())


thousands = st.integers(0, 10**9).map(lambda number: 1000 * number)
amounts = st.tuples(thousands, thousands, st.integers(0, 1000).map(lambda number: 1000 * number))
MODEL = storagemodel.Model(IDLE_W, COSTS, ((0.0,) * 4,) * 4, 6.0, 1.0, 0.03, 5.0, (99,) * 3)


def course(works):
    return Course((30 * n * S, 30 * (n + 1) * S, Work(*one)) for n, one in enumerate(works))


@given(
    st.lists(st.lists(amounts, min_size=8, max_size=8), min_size=1, max_size=4),
    st.lists(st.integers(0, 2000), min_size=4, max_size=4),
)
def test_all_who_worked_have_together_what_one_would_have(jobs, watts):
    """No more and no less of what was above idle."""
    energies = list(itertools.accumulate((w * 60 * 10**6 for w in watts), initial=0))
    lines = [
        shared.Line(60 * n * S, energy_uj, 0.0, 0.0, "oss1", "io", "a", None)
        for n, energy_uj in enumerate(energies)
    ]
    segments = [shared.Segment(*pair, frozenset(["oss1"])) for pair in zip(lines, lines[1:])]
    whole = course([[sum(one) for one in zip(*works)] for works in zip(*jobs)])
    told = storagepower.History(segments, [whole])
    (of_all, *parts) = (
        storagepower.part_of(told, MODEL, [own]) for own in (whole, *map(course, jobs))
    )
    if all(part.energy_uj > 0 for part in parts):  # what is below 0 is charged to nobody
        assert abs(sum(part.energy_uj for part in parts) - of_all.energy_uj) <= 1e-9 * (
            of_all.energy_uj
        ) + len(jobs)


def test_it_is_shown(site):
    _, rows = three_jobs(site)
    energy_j, error_j = rows[1]["EnergyStorage_uj"] / 1e6, rows[1]["StorageJoules"]
    shown = site.out("job", "1")
    assert re.search(rf"Storage \[J\] +{energy_j:.0f} +{error_j:.0f}", shown)
    [told] = json.loads(site.out("job", "1", "--json"))
    assert told["storage_j"] == pytest.approx(energy_j)
    assert told["storage_error_j"] == pytest.approx(error_j)
    listed = {one["job_id_raw"]: one for one in json.loads(site.out("report", "jobs", "--json"))}
    assert listed[1]["storage_uj"] == rows[1]["EnergyStorage_uj"]


def test_users_sums_have_it(site):
    """Systematic parts of one user's jobs add, random ones in quadrature."""
    _, rows = three_jobs(site)
    total_uj = sum(row["EnergyStorage_uj"] for row in rows.values())
    systematic_uj = math.fsum(row["StorageSystematic_uj"] for row in rows.values())
    random_uj = math.hypot(*(row["StorageRandom_uj"] for row in rows.values()))
    [told] = json.loads(site.out("report", "usage", "--json"))
    assert (told["storage_uj"], told["storage_jobs"]) == (total_uj, 3)
    assert told["storage_error_j"] == pytest.approx(2e-6 * math.hypot(systematic_uj, random_uj))
    assert re.search(r"Storage \[k?J\] +\+- .*Metadata ops", site.out("report", "usage"))
    text = site.out("export", "prometheus")
    assert re.search(rf"^joulemark_storage_joules{{.*}} {total_uj / 1e6!r}$", text, re.M)


def lines_of(site, folder, name):
    path = site.records / folder / f"{name}.jsonl"
    return path, [json.loads(one) for one in path.read_text().splitlines()]


def without(site, folder, name, begin_s, end_s):
    """Lines that end in a time, s after the first job's start, were never written."""
    path, lines = lines_of(site, folder, name)
    begin_ns, end_ns = (builders.START_NS + s * S for s in (begin_s, end_s))
    kept = [one for one in lines if not begin_ns <= one["time_ns"] <= end_ns]
    path.write_text("".join(f"{json.dumps(one)}\n" for one in kept))


def test_time_without_rounds_is_not_idle(site):
    """Half of the day before: what is left tells the same."""
    _, before = three_jobs(site)
    without(site, "io", "oss1", -86_400, -50_000)
    for path in (site.records / "io" / "models").glob("*"):
        path.unlink()
    assert site.run("merge", "--rebuild")[0] == 0
    for number, row in before.items():
        found = site.job(number)[str(number)]
        assert found["EnergyStorage_uj"] == pytest.approx(row["EnergyStorage_uj"], rel=0.03)


@pytest.mark.parametrize(
    ("folder", "name", "begin_s", "note"),
    [
        ("shared", "oss1-power", -100, "no energy of storage: nothing is known of that time"),
        ("shared", "oss1-power", 200, "of 460.0 s not covered"),
        ("io", "oss1", -100, None),
    ],
)
def test_where_a_meter_or_a_collector_is_silent(site, folder, name, begin_s, note):
    _, before = three_jobs(site)
    without(site, folder, name, begin_s, 10**6)
    assert site.run("merge", "--rebuild")[0] == 0
    found = site.job(1)["1"]
    if note is None:
        assert found["BytesRead"] is None
    else:
        assert found["Notes"].startswith("oss1-power: ") and found["Notes"].endswith(note)
    whole = before[1]["EnergyStorage_uj"]
    assert found["EnergyStorage_uj"] is None or 0.1 * whole < found["EnergyStorage_uj"] < whole


def two_servers(site, seen=("oss1", "oss2")):
    """One channel for an OSS and an MDS; a job works at both, others at the second alone."""
    oss, mds = Server(START_S + 900, seed=1), Server(START_S + 900, seed=2)
    for server in (oss, mds):
        server.ask_by_chance("", START_S - 86_400, START_S - 600)
    oss.ask("1.0", START_S + 60, START_S + 500, 1.2e9, 0, 0)
    mds.ask("1.0", START_S + 60, START_S + 500, 0, 0, 1e3)
    mds.ask("", START_S + 60, START_S + 500, 0, 1e9, 2e3)
    for name, server in (("oss1", oss), ("oss2", mds)):
        server.run().write(site, name=name)
    both = [lines_of(site, "shared", f"{name}-power")[1] for name in ("oss1", "oss2")]
    whole = [
        {**one, "nodes": "oss[1-2]", "energy_uj": one["energy_uj"] + other["energy_uj"]}
        for one, other in zip(*both)
    ]
    for name in ("oss1", "oss2"):
        (site.records / "shared" / f"{name}-power.jsonl").unlink()
        if name not in seen:
            (site.records / "io" / f"{name}.jsonl").unlink()
    put(site, "shared", "rack", whole)
    truth_j = oss.truth_j["1.0"] + mds.truth_j["1.0"]
    return truth_j, run_jobs(site, oss, {1: (50, 510)})[1]


def test_a_channel_of_two_servers(site):
    truth_j, row = two_servers(site)
    assert abs(row["EnergyStorage_uj"] / 1e6 - truth_j) <= row["StorageJoules"] <= 0.1 * truth_j


def test_of_a_server_that_nobody_reads_others_are_not_charged(site):
    _, row = two_servers(site, seen=("oss1",))
    assert row["EnergyStorage_uj"] is None
    assert row["Notes"] == "rack: no energy of storage: what oss2 did is not known"


@pytest.mark.parametrize("line_s", [10, 60, 300])
def test_lines_of_any_length(site, line_s):
    server = Server(START_S + 1500)
    server.ask_by_chance("", START_S - 86_400, START_S - 600)
    server.ask("1.0", START_S, START_S + 100, 1.2e9, 0, 0)  # from its first second on
    server.ask("", START_S - 600, START_S + 1500, 0.2e9, 0.3e9, 100)
    server.run().write(site, line_s=line_s)
    row = run_jobs(site, server, {1: (0, 100)})[1]
    found_j, truth_j = row["EnergyStorage_uj"] / 1e6, server.truth_j["1.0"]
    assert abs(found_j - truth_j) <= max(row["StorageJoules"], 0.1 * truth_j)


def test_no_link_of_another_is_followed(site, tmp_path):
    """The folder is SlurmUser's, and root may merge."""
    models, victim = site.records / "io" / "models", tmp_path / "victim"
    models.mkdir(parents=True)
    victim.write_text("theirs")
    name = f"oss1-power.{DAY}.{os.uname().nodename}.{os.getpid()}"
    (models / name).symlink_to(victim)
    three_jobs(site)
    assert victim.read_text() == "theirs"


@given(
    st.lists(amounts, min_size=4, max_size=4),
    st.lists(amounts, min_size=4, max_size=4),
    st.lists(st.integers(900, 2000), min_size=2, max_size=2),
)
def test_the_model_moves_the_energy_as_its_errors_say(works, others, watts):
    """The derivative by each of its numbers, against a small step of it."""
    energies = list(itertools.accumulate((w * 60 * 10**6 for w in watts), initial=0))
    lines = [
        shared.Line(60 * n * S, energy_uj, 0.0, 0.0, "oss1", "io", "a", None)
        for n, energy_uj in enumerate(energies)
    ]
    segments = [shared.Segment(*pair, frozenset(["oss1"])) for pair in zip(lines, lines[1:])]
    total = [[a + b for a, b in zip(one, other)] for one, other in zip(works, others)]
    told, own = storagepower.History(segments, [course(total)]), [course(works)]

    def energy_uj(at, step):
        numbers = [MODEL.idle_w, *MODEL.costs]
        numbers[at] += step
        model = dataclasses.replace(MODEL, idle_w=numbers[0], costs=tuple(numbers[1:]))
        return storagepower.part_of(told, model, own).energy_uj

    for at, size in enumerate((IDLE_W, *COSTS)):
        step = size * 1e-5
        up, down = energy_uj(at, step), energy_uj(at, -step)
        if not up or not down:
            continue  # what would be below 0 is 0
        covariance = [[0.0] * 4 for _ in range(4)]
        covariance[at][at] = step**2
        model = dataclasses.replace(MODEL, covariance=tuple(map(tuple, covariance)), misfit=0.0)
        told_uj = storagepower.part_of(told, model, own).systematic_uj
        assert told_uj == pytest.approx(abs(up - down) / 2, rel=0.02, abs=10)
