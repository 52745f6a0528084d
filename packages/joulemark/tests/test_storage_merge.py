# Tests of joulemark.accounting.storagework: what jobs did at storage servers, to the byte.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import itertools
import json
import re

import builders
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joulemark.accounting import storagework
from joulemark.accounting.runs import Run

S = 10**9
WORK = ("BytesRead", "BytesWritten", "MetadataOps")


def line(begin_s, end_s, unread=0, **jobs):
    """As joulemark.storage.journal writes it; jobs are `j12_0` and `nobody`."""
    named = {name[1:].replace("_", ".") if name[0] == "j" else "": of for name, of in jobs.items()}
    start_ns = builders.START_NS
    return {
        "time_ns": start_ns + round(end_s * S),
        "from_ns": start_ns + round(begin_s * S),
        "total": [sum(one) for one in zip(*named.values(), [0, 0, 0])],
        "unread": unread,
        "jobs": named,
    }


def write(site, *lines, server="oss1"):
    path = site.records / "io" / f"{server}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a", encoding="utf-8") as file:
        file.write("".join(f"{json.dumps(one)}\n" for one in lines))


def job(site, number=12, start_s=0, seconds=100, steps=("0", "batch"), node="n1", **more):
    times = {"seconds": seconds, "start_s": start_s}
    accounts = [builders.account(step, **times) for step in ("job", *steps)]
    site.leave(number, node, accounts, **more)


def merged(site, number=12):
    assert site.run("merge")[0] == 0
    return site.job(number)


def work(row):
    return tuple(row[name] for name in WORK)


def test_a_job_has_its_steps_work_at_all_servers(site):
    write(site, line(-30, 0), line(0, 60, j12_0=(1, 2, 3), nobody=(9, 9, 9)), line(60, 250))
    write(site, line(-9, 40, j12_0=(10, 0, 0), j12_batch=(0, 5, 0)), line(40, 250), server="mds1")
    job(site)
    rows = merged(site)
    assert work(rows["12"]) == (11, 7, 3)
    assert work(rows["12.0"]) == (11, 2, 3)
    assert work(rows["12.batch"]) == (0, 5, 0)
    assert rows["12"]["Notes"] is None


def test_other_jobs_of_like_numbers_are_others(site):
    write(site, line(-30, 130, j112_0=(1, 1, 1), j12_0=(5, 0, 0), j1=(7, 7, 7)))
    job(site)
    assert work(merged(site)["12"]) == (5, 0, 0)


def test_no_server_is_not_zero(site):
    job(site)
    assert work(merged(site)["12"]) == (None, None, None)
    write(site, line(-30, 130))
    job(site, 13)
    assert work(merged(site, 13)["13"]) == (0, 0, 0)


def test_jobs_without_steps_names(site):
    """Where clients say `jobid_var=SLURM_JOB_ID`."""
    write(site, {**line(-30, 130), "jobs": {"12.": [4, 5, 6]}})
    job(site)
    rows = merged(site)
    assert work(rows["12"]) == (4, 5, 6)
    assert work(rows["12.0"]) == (None, None, None)


def test_pages_that_are_written_back_late_are_the_jobs(site, monkeypatch):
    """Its columns are empty until they have settled."""
    monkeypatch.setattr("time.time_ns", lambda: builders.START_NS + 200 * S)
    write(site, line(-30, 90, j12_0=(0, 1, 0)))
    job(site)
    row = merged(site)["12"]
    assert work(row) == (None, None, None) and row["Notes"] is None
    write(site, line(90, 130, j12_0=(0, 20, 0)), line(130, 225, j12_0=(0, 300, 0)))
    row = merged(site)["12"]
    assert row["BytesWritten"] == 321 and row["Notes"] is None
    write(site, line(225, 260, j12_0=(0, 4000, 0)))  # a later job's of the same number
    assert merged(site)["12"]["BytesWritten"] == 321


def test_a_server_that_is_silent_is_not_waited_for(site, monkeypatch):
    monkeypatch.setattr("time.time_ns", lambda: builders.START_NS + 4000 * S)
    write(site, line(-30, 3900, j12_0=(1, 0, 0)))
    write(site, line(-30, 20, j12_0=(10, 0, 0)), server="oss2")
    job(site)
    row = merged(site)["12"]
    assert row["BytesRead"] == 11
    assert row["Notes"] == "storage servers: not all that oss2 did is known"


def test_where_nobody_looked_is_not_zero(site):
    write(site, line(-900, -600))
    job(site)
    row = merged(site)["12"]
    assert work(row) == (None, None, None)


def test_what_has_the_jobs_number_and_is_no_step_of_its_is_anothers(site):
    """Of a program that a user has named so: Lustre adds his number."""
    write(site, line(-30, 240, j12_0=(1, 0, 0), j12_1000=(10**15, 0, 0)))
    job(site)
    rows = merged(site)
    assert work(rows["12"]) == work(rows["12.0"]) == (1, 0, 0)
    assert work(rows["12.batch"]) == (0, 0, 0)


def test_servers_that_cannot_be_read_cost_their_columns_and_not_the_merge(site):
    (site.records / "io").mkdir()
    (site.records / "io" / "oss1.jsonl").symlink_to("nowhere")
    job(site)
    code, _, err = site.run("merge")
    assert code == 0
    assert err.endswith(
        "oss1.jsonl: No such file or directory: what jobs did there is not known\n"
    )
    assert work(site.job(12)["12"]) == (None, None, None)


def written_by_two_runs(site, first, **second):
    """A run of 40 s, at whose merge it had written so much, and one after it: nothing is said."""
    job(site, seconds=40, run=0)
    assert merged(site)["12"]["BytesWritten"] == first
    job(site, run=1, **second)
    assert site.run("merge")[0] == 0
    rows = [row for row in site.rows(12) if row["Step"] == "job"]
    assert [row["Notes"] for row in rows] == [None, None]
    return [row["BytesWritten"] for row in rows]


def test_two_runs_share_nothing(site):
    """A round that saw both is the earlier's."""
    rounds = [line(t, t + 30, j12_0=(0, 10 ** (t // 30), 0)) for t in range(0, 270, 30)]
    write(site, *rounds)
    written = written_by_two_runs(site, 111111, start_s=100, seconds=60)
    assert written == [1111, 111110000]


def test_a_run_long_after_another_has_its_first_round(site):
    write(site, *(line(t, t + 30, j12_0=(0, 1, 0)) for t in range(0, 1200, 30)))
    # until 120 s beyond its end
    assert written_by_two_runs(site, 6, start_s=610, seconds=80) == [6, 7]


def test_unread_entries_and_unsound_lines_are_said(site):
    write(site, line(-30, 60, unread=2), {"time_ns": 1}, line(60, 240, unread=1))
    job(site)
    assert merged(site)["12"]["Notes"] == (
        "storage servers: entries that may have been gone unread: 3, unsound lines: 1"
    )


def test_a_nodes_lines_are_of_the_jobs_that_it_ran(site):
    """And what other nodes' jobs did through mounts that nobody reads is not known, and not 0."""
    write(site, line(-30, 240, j12_=(5, 6, 7), j13_=(1, 1, 1)), server="nodes/n1")
    job(site, 12)
    job(site, 13, node="n2")
    rows = merged(site)
    assert work(rows["12"]) == (5, 6, 7) and rows["12"]["Notes"] is None
    assert work(site.job(13)["13"]) == (None, None, None)


def test_a_node_of_a_jobs_whose_mounts_nobody_reads_is_said(site):
    write(site, line(-30, 240, unread=1, j12_=(5, 6, 7)), server="nodes/n1")
    for node in ("n1", "n2"):
        job(site, 12, node=node)
    row = merged(site)["12"]
    assert work(row) == (5, 6, 7)
    assert row["Notes"] == (
        "storage servers: not all that n2 did is known, entries that may have been gone unread: 1"
    )


def test_a_node_that_left_no_record_has_done_its_work_all_the_same(site):
    for node, done in (("n1", 1), ("n3", 10)):
        write(site, line(-30, 240, j12_=(done, 0, 0)), server=f"nodes/{node}")
    job(site)
    assert site.run("merge", "--job", "12", "--nodes", "n1,n3", "--wait", "0")[0] == 0
    assert site.job(12)["12"]["BytesRead"] == 11


def test_a_job_waits_for_lines_of_a_node_that_left_no_record(site, monkeypatch):
    monkeypatch.setattr("time.time_ns", lambda: builders.START_NS + 300 * S)
    write(site, line(-30, 240, j12_=(1, 0, 0)), server="nodes/n1")
    write(site, line(-30, 90, j12_=(10, 0, 0)), server="nodes/n3")
    job(site)
    assert site.run("merge", "--job", "12", "--nodes", "n1,n3", "--wait", "0")[0] == 0
    assert work(site.job(12)["12"]) == (None, None, None)
    write(site, line(90, 240, j12_=(100, 0, 0)), server="nodes/n3")
    assert merged(site)["12"]["BytesRead"] == 111


def test_other_nodes_that_are_silent_hold_up_no_job(site):
    write(site, line(-30, 240, j12_=(5, 6, 7)), server="nodes/n1")
    write(site, line(-30, 20, unread=3), server="nodes/n2")
    job(site)
    row = merged(site)["12"]
    assert work(row) == (5, 6, 7) and row["Notes"] is None


def test_it_is_shown(site):
    write(site, line(-30, 240, j12_0=(16_777_216, 8_388_608, 42)))
    job(site)
    merged(site)
    shown = site.out("job", "12")
    for line_of in (r"Read +16\.8 MB", r"Written +8\.39 MB", "Metadata ops +42"):
        assert re.search(line_of, shown)
    [told] = json.loads(site.out("job", "12", "--json"))
    assert (told["read_bytes"], told["metadata_ops"]) == (16_777_216, 42)
    [told] = json.loads(site.out("report", "jobs", "--all", "--json"))
    assert told["written_bytes"] == 8_388_608


def test_users_sums_have_it(site):
    """Of whose jobs it is known: job 13 did nothing that any server told of."""
    write(site, line(-30, 240, j12_0=(16_777_216, 8_388_608, 42), j14_0=(10**6, 0, 1)))
    for number in (12, 14):
        job(site, number)
    merged(site)
    (site.records / "io" / "oss1.jsonl").unlink()
    job(site, 13)
    merged(site)
    [told] = json.loads(site.out("report", "usage", "--json"))
    sums = (told["read_bytes"], told["written_bytes"], told["metadata_ops"])
    assert sums == (17_777_216, 8_388_608, 43)
    assert (told["work_jobs"], told["jobs"], told["storage_jobs"]) == (2, 3, 0)
    assert told["storage_uj"] is None and told["storage_error_j"] is None
    shown = site.out("report", "usage")
    assert re.search(r"17\.8 \(2 of 3\) +8\.39 \(2 of 3\) +43 \(2 of 3\)", shown)
    assert "Storage [" not in shown and re.search(r"Read \[MB\] +Written \[MB\]", shown)
    text = site.out("export", "prometheus")
    assert re.search(r'^joulemark_storage_bytes{.*direction="read"} 17777216$', text, re.M)
    assert re.search(r"^joulemark_storage_metadata_operations{.*} 43$", text, re.M)
    assert re.search(r'^joulemark_covered_jobs{.*sum="work"} 2$', text, re.M)


cuts = st.lists(st.integers(1, 90), min_size=1, max_size=12)
spans = st.lists(st.tuples(st.integers(0, 300), st.integers(5, 60)), min_size=1, max_size=4)


@settings(max_examples=100)
@given(cuts, spans)
def test_each_round_is_of_one_run(tmp_path_factory, cuts, spans):
    """However rounds and runs lie: of the first that it can be of."""
    folder = tmp_path_factory.mktemp("records")
    (folder / "io").mkdir()
    ends = list(itertools.accumulate(cuts, initial=0))
    rounds = list(zip(ends, ends[1:]))
    texts = [
        json.dumps(line(*one, j12_0=(1 << number, 0, 0))) for number, one in enumerate(rounds)
    ]
    (folder / "io" / "oss1.jsonl").write_text("\n".join(texts) + "\n")
    runs, at_s = [], 0
    for pause_s, length_s in spans:
        runs.append((at_s + pause_s, at_s + pause_s + length_s))
        at_s += pause_s + length_s
    servers = storagework.Storage(folder, (), builders.START_NS + 10**6 * S)
    found = []
    for number, (start_s, end_s) in enumerate(runs):
        start_ns, end_ns = (builders.START_NS + s * S for s in (start_s, end_s))
        before = [end * S + builders.START_NS for _, end in runs[:number]]
        after = [start * S + builders.START_NS for start, _ in runs[number + 1 :]]
        accounts = [builders.account(step) for step in ("job", "0")]
        run = Run(
            number,
            [builders.record(accounts=accounts)],
            before_ns=before[-1] if before else None,
            next_ns=after[0] if after else None,
        )
        row = {"Step": "job", "Start_ns": start_ns, "End_ns": end_ns}
        found.append(servers.of(row, run)[0]["BytesRead"] or 0)
    for number, (begin_s, until_s) in enumerate(rounds):
        of = [bool(bits >> number & 1) for bits in found]
        settle_s = storagework.SETTLE_NS // S
        starts = [start for start, _ in runs[1:]] + [10**9]
        may = [
            until_s > start and begin_s < min(end + settle_s, later)
            for (start, end), later in zip(runs, starts)
        ]
        assert of == [one and not any(may[:at]) for at, one in enumerate(may)]


@pytest.mark.parametrize("text", [b"", b"{}", b"[]", b'{"time_ns": 1}', b"\xff"])
def test_what_is_no_line(tmp_path, text):
    with pytest.raises(ValueError, match="is no line of `joulemark io collect`"):
        storagework.Server(tmp_path / "oss1.jsonl").parse(text)
