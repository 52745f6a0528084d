# Days of a site's clock, and jobs that see several: `timezone:`, `report usage --by day,month`.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import datetime
import json
import math

import builders
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joulemark import config, store
from joulemark.errors import UserError
from joulemark.store import days, jobs, zones

NS = 10**9
DAY_S = 86_400
# Midnights that do not exist, that come twice, a day that was left out, a quarter of an hour.
ZONES = ("UTC", "Europe/Berlin", "America/Havana", "Asia/Beirut", "America/St_Johns")
ZONES += ("Pacific/Apia", "Asia/Kathmandu", "Atlantic/Azores")


@given(st.sampled_from(ZONES), st.integers(0, 2**61))
def test_a_moment_lies_in_its_day_alone(name, time_ns):
    zone = days.Zone(name)
    day = zone.day(time_ns)
    assert zone.begin_ns(day) <= time_ns < zone.begin_ns(day + 1)


@given(st.sampled_from(ZONES), st.integers(0, 30_000))
def test_days_follow_each_other(name, day):
    zone = days.Zone(name)
    hours = (zone.begin_ns(day + 1) - zone.begin_ns(day)) / NS / 3600
    # St. John's had double summer time in 1988
    assert 22 <= hours <= 26 or (name == "Pacific/Apia" and hours in (0, 48))


@pytest.mark.parametrize(
    ("name", "day", "hours"),
    [
        ("Europe/Berlin", "2026-03-29", 23),
        ("Europe/Berlin", "2026-10-25", 25),
        ("Asia/Beirut", "2026-03-29", 23),
        ("UTC", "2026-10-25", 24),
    ],
)
def test_the_days_on_which_clocks_change(name, day, hours):
    number = datetime.date.fromisoformat(day).toordinal() - days.EPOCH
    zone = days.Zone(name)
    assert zone.begin_ns(number + 1) - zone.begin_ns(number) == hours * 3600 * NS


def test_months():
    number = datetime.date(2026, 12, 31).toordinal() - days.EPOCH
    assert (days.month(number), days.month(number + 1)) == (202612, 202701)
    assert days.next_month(number) == days.next_month(number - 30) == number + 1


def test_a_zone_that_is_not_known_is_named(site):
    for name in ("Europe/Atlantis", "../../etc/passwd", "Europe"):
        text = site.yaml.read_text()
        site.configure(f"timezone: {name}\n")
        assert f"joulemark.yaml:5: timezone: '{name}' is not known here" in site.refuses("merge")
        site.yaml.write_text(text)


def test_only_a_merge_needs_the_zone(site):
    """A login node may lack tzdata: the days of what is stored are in the store."""
    site.leave(1)
    site.out("merge")
    site.configure("timezone: Europe/Atlantis\n")
    for words in (("report", "usage"), ("report", "jobs"), ("export", "prometheus")):
        assert "uid 1000" in site.out(*words)


def test_days_of_another_zone_than_the_sites_are_said_to_be(site):
    """Mistyped, or not yet merged by: the days are UTC's, and are not taken for the site's."""
    site.leave(1)
    site.out("merge")
    site.configure("timezone: Mars/Base\n")
    said = (
        "joulemark: days of demo are those of UTC, and joulemark.yaml has timezone: Mars/Base: "
        "the next merge puts them right, or refuses a zone that is not known\n"
    )
    for words in (("--by", "month"), ("--since", "2020-01-01", "--json")):
        assert site.run("report", "usage", *words)[::2] == (0, said)
    assert site.run("report", "usage")[2] == ""


def at(text):
    """Seconds after the builders' first moment."""
    return int(datetime.datetime.fromisoformat(text).timestamp()) - builders.START_NS // NS


def used(site, job, begin, end, energy_uj=10**9, **changes):
    seconds = at(end) - at(begin)
    account = builders.account(energy_uj=energy_uj, seconds=seconds, start_s=at(begin))
    site.leave(job, accounts=[{**account, **changes}])


def records(site, *words):
    return json.loads(site.out("report", "usage", "--format", "json", *words))


@pytest.fixture
def berlin(site):
    """A job of three days and two months, four hours of the first, and one within a day."""
    site.configure("timezone: Europe/Berlin\ncarbon_g_per_kwh: 360\n")
    used(site, 1, "2026-10-30T20:00:00+01:00", "2026-11-01T04:00:00+01:00", 32 * 10**9 + 1)
    used(site, 2, "2026-10-31T23:30:00+01:00", "2026-11-01T00:00:00+01:00", 5)
    site.out("merge")
    return site


def test_days_of_pruned_jobs_stay_those_of_another_zone_and_it_is_said(site):
    used(site, 1, "2025-01-31T23:30:00+00:00", "2025-01-31T23:40:00+00:00")
    used(site, 2, "2025-02-02T12:00:00+00:00", "2025-02-02T12:10:00+00:00")
    site.out("merge")
    kept = datetime.date.today() - datetime.date(2025, 2, 1)
    site.out("store", "prune", "--keep", f"{kept.days}d")
    assert "Days and months are UTC; a job" in site.out("report", "usage", "--by", "day")
    site.configure("timezone: Europe/Berlin\n")
    site.out("merge")
    said = "Days and months are Europe/Berlin (of jobs that were pruned: UTC, too); a job"
    for words in (("report", "usage", "--by", "day"), ("report", "html")):
        assert said in " ".join(site.out(*words).split())
    assert [one["day"] for one in records(site, "--by", "day")] == ["2025-01-31", "2025-02-02"]


def test_a_job_is_charged_to_each_day_that_it_saw(berlin):
    found = {one["day"]: one for one in records(berlin, "--by", "day")}
    uj = {day: one["energy_uj"] for day, one in found.items()}
    assert uj == {
        "2026-10-30": 4 * 10**9,
        "2026-10-31": 24 * 10**9 + 5,
        "2026-11-01": 4 * 10**9 + 1,
    }
    assert [one["jobs"] for one in found.values()] == [1, 2, 1]
    first = found["2026-10-30"]
    assert first["carbon_g"] == pytest.approx(4000 / 3.6e6 * 360)
    # of the job's random error, 0.1 % of 32 kJ, an eighth of the time has an eighth of the square
    random_j = 0.001 * 32_000 * (1 / 8) ** 0.5
    assert first["energy_error_j"] == pytest.approx(2 * math.hypot(0.01 * 4000, random_j))


def test_a_job_is_charged_to_each_month_that_it_saw(berlin):
    found = {one["month"]: one for one in records(berlin, "--by", "month")}
    assert {month: one["energy_uj"] for month, one in found.items()} == {
        "2026-10": 28 * 10**9 + 5,
        "2026-11": 4 * 10**9 + 1,
    }


def test_what_lies_between_two_days_is_a_part_of_a_job(berlin):
    (one,) = records(berlin, "--since", "2026-10-31", "--until", "2026-10-31")
    assert (one["jobs"], one["energy_uj"]) == (2, 24 * 10**9 + 5)
    (one,) = records(berlin, "--since", "2026-11-01")
    assert (one["jobs"], one["energy_uj"]) == (1, 4 * 10**9 + 1)
    assert records(berlin, "--since", "2026-11-02") == []
    (one,) = records(berlin)
    assert (one["jobs"], one["energy_uj"]) == (2, 32 * 10**9 + 6)


def test_the_table_says_whose_days_it_has(berlin):
    assert "Days and months are Europe/Berlin" in berlin.out("report", "usage", "--by", "day")
    assert "Days and months" not in berlin.out("report", "usage")


@pytest.fixture
def lost(berlin):
    """And two of which no node told."""
    for job in (3, 4):
        berlin.leave(job, accounts=[], missing="joulemarkd is dead")
    berlin.out("merge")
    return berlin


SAID = "Jobs of unknown time and energy, of none of these days: 2."


@pytest.mark.parametrize("by", ["user", "day"])
def test_jobs_of_unknown_time_are_told_where_days_leave_them_out(lost, by):
    words = ("report", "usage", "--by", by, "--since", "2026-10-31")
    assert lost.out(*words).splitlines()[-1] == SAID
    code, out, err = lost.run(*words, "--format", "csv")
    assert (code, err) == (0, f"joulemark: {SAID}\n") and SAID not in out
    lost.leave(5, cluster="other")
    lost.at("other", "merge")
    assert SAID in lost.out(*words, "-M", "demo") and SAID not in lost.out(*words, "-M", "other")
    page = lost.folder / "page.html"
    for day in ("2026-10-31", "2999-01-01"):
        lost.out("report", "html", "--since", day, "--out", str(page))
        assert SAID in page.read_text()


def test_sums_of_all_days_have_jobs_of_unknown_time(lost):
    assert SAID not in lost.out("report", "usage")
    assert [one["jobs"] for one in records(lost)] == [4]
    assert [one["jobs"] for one in records(lost, "--by", "month")] == [2, 1, 2]


def test_another_cluster_s_zone_need_not_be_known_here(berlin):
    with store.writing(config.load(berlin.yaml).store) as session:
        session.insert("time_zone", ("Cluster", "Name"), [("far", "Moon/Tycho")])
    assert len(records(berlin, "--by", "day")) == 3
    used(berlin, 3, "2026-10-31T10:00:00+01:00", "2026-10-31T11:00:00+01:00")
    berlin.out("merge")
    with store.writing(config.load(berlin.yaml).store) as session:
        zones.set_zone(session, "far", "UTC")
        assert zones.Zones(session)["far"].name == "UTC"
        session.insert("time_zone", ("Cluster", "Name"), [("further", "Moon/Tycho")])
        with pytest.raises(UserError, match="days of further are those of Moon/Tycho"):
            zones.Zones(session)["further"]


def test_another_zone_moves_the_jobs_that_are_there(berlin):
    text = berlin.yaml.read_text()
    berlin.yaml.write_text(text.replace("Europe/Berlin", "Asia/Tokyo"))  # eight hours later
    berlin.out("merge")
    found = {one["day"]: one["energy_uj"] for one in records(berlin, "--by", "day")}
    assert found == {"2026-10-31": 20 * 10**9, "2026-11-01": 12 * 10**9 + 1 + 5}
    berlin.yaml.write_text(text)
    berlin.out("merge")
    assert [one["jobs"] for one in records(berlin, "--by", "day")] == [1, 2, 1]


def test_what_is_not_known_of_a_split_job_stays_so(site):
    used(site, 1, "2026-10-30T20:00:00+00:00", "2026-10-31T04:00:00+00:00")
    site.leave(1, node="n2", accounts=[], missing="joulemarkd is dead")
    site.out("merge")
    for one in records(site, "--by", "day"):
        assert (one["incomplete_jobs"], one["carbon_g"], one["overhead_uj"]) == (1, None, None)
        assert (one["energy_jobs"], one["carbon_jobs"]) == (1, 0)


@given(
    st.lists(st.tuples(st.integers(0, 40 * DAY_S), st.integers(1, 9 * DAY_S)), max_size=8),
    st.sampled_from(ZONES),
    st.integers(0, 50),
)
def test_days_and_months_balance(tmp_path_factory, jobs_seen, zone, middle):
    """All parts are all there is, to the microjoule, however the time is cut."""
    from joulemark.store.sums import Chosen, uses

    place = store.Place.parse(str(tmp_path_factory.mktemp("store") / "store.sqlite"))
    clock = days.Zone(zone)
    first = clock.day(builders.START_NS)
    with store.writing(place) as session:
        session.insert(
            "payer",
            ("id", "Cluster", "Uid", "UserName", "Account", "PartitionName", "Currency"),
            [(1, "demo", 1, "u", "a", "p", "")],
        )
        session.insert("time_zone", ("Cluster", "Name"), [("demo", zone)])
        rows = []
        for job, (begin_s, length_s) in enumerate(jobs_seen):
            start_ns = builders.START_NS + begin_s * NS + job
            end_ns = start_ns + length_s * NS
            row = dict.fromkeys(jobs.NAMES) | dict.fromkeys(
                ("Uid", "NNodes", "Estimated", "Incomplete", "Samples", "GapSeconds", "Run"), 0
            )
            row |= dict.fromkeys(("Nodes", "SplitPolicy", "Faults", "Regions"), "")
            row |= {"Cluster": "demo", "Job": job, "Step": "job", "Payer": 1}
            row |= {"Start_ns": start_ns, "End_ns": end_ns, "ConsumedEnergy_uj": 10**9 + 7 * job}
            rows.append(tuple({**row, **clock.columns(start_ns, end_ns, "job")}.values()))
        session.insert("job_run", jobs.NAMES, rows)
    total_uj = sum(10**9 + 7 * job for job in range(len(jobs_seen)))
    with store.reading(place) as session:
        cut = first + middle
        for parts in (
            uses(session, None, Chosen()),
            uses(session, "day", Chosen()),
            uses(session, "month", Chosen()),
            uses(session, None, Chosen(None, cut)) + uses(session, None, Chosen(cut)),
            uses(session, "day", Chosen(None, cut)) + uses(session, "month", Chosen(cut)),
        ):
            assert sum(one.energy_uj for one in parts) == total_uj
