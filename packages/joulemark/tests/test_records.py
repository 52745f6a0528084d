# Malformed record files: each error names the file, the key, and what would be right.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import json
import math

import builders
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from joulemark.accounting import jobrecord, noderecord, runs

BROKEN_RECORD = {
    "schema": (2, "schema: 2: must be 1"),
    "cluster": ("", 'cluster: "": must be a text'),
    "JobIDRaw": ("12", 'JobIDRaw: "12": must be a whole number'),
    "node": (None, "node: null: must be a text"),
    "uid": (-1, "uid: -1: must be a whole number"),
    "split_policy": (7, "split_policy: 7: must be a text"),
    "missing": (False, "missing: false: must be a text that is not empty, or null"),
    "accounts": ({}, "accounts: {}: must be a list"),
}
BROKEN_ACCOUNT = {
    "step": (0, "accounts[0].step: 0: must be a text"),
    "start_ns": (1.5, "accounts[0].start_ns: 1.5: must be a whole number"),
    "end_ns": (1, "accounts[0].end_ns: 1: must not be before start_ns"),
    "energy_uj": (1.0, "accounts[0].energy_uj: 1.0: must be a whole number >= 0, or null"),
    "idle_uj": (True, "accounts[0].idle_uj: true: must be a whole number"),
    "overhead_uj": (None, "accounts[0].overhead_uj: null: must be a whole number"),
    "domains_uj": ({"cpu": 1}, "accounts[0].domains_uj: they sum to 1: must sum to energy_uj"),
    "peak_w": (float("nan"), "accounts[0].peak_w: NaN: must be a number from 0"),
    "uncertainty_systematic_uj": (-1.0, "accounts[0].uncertainty_systematic_uj: -1.0: must be"),
    "uncertainty_common_uj": (-1.0, "accounts[0].uncertainty_common_uj: -1.0: must be"),
    "uncertainty_random_uj": ("x", 'accounts[0].uncertainty_random_uj: "x": must be'),
    "method": ("guess", 'accounts[0].method: "guess": must be one of counter, integrated, model'),
    "estimated": (1, "accounts[0].estimated: 1: must be true or false"),
    "samples": (-2, "accounts[0].samples: -2: must be a whole number"),
    "gap_seconds": (None, "accounts[0].gap_seconds: null: must be a number from 0"),
    "cpus": ("2", 'accounts[0].cpus: "2": must be a whole number'),
    "notes": (None, "accounts[0].notes: null: must be a list of texts"),
    "regions": (5, "accounts[0].regions: 5: must be a list"),
}


def problems_of(tmp_path, record):
    path = builders.write(tmp_path, record)
    with pytest.raises(noderecord.RecordError) as caught:
        noderecord.read(path)
    assert all(problem.startswith(f"{path}: ") for problem in caught.value.problems)
    return str(caught.value)


@pytest.mark.parametrize("key", BROKEN_RECORD)
def test_broken_key_of_a_record_is_named(tmp_path, key):
    value, expected = BROKEN_RECORD[key]
    assert expected in problems_of(tmp_path, builders.record(**{key: value}))


@pytest.mark.parametrize("key", BROKEN_RECORD)
def test_missing_key_of_a_record_is_named(tmp_path, key):
    record = builders.record()
    del record[key]
    path = tmp_path / "demo.12.n1.json"
    path.write_text(json.dumps(record))
    with pytest.raises(noderecord.RecordError, match=f"{key}: (missing|None): must be"):
        noderecord.read(path)


@pytest.mark.parametrize("key", BROKEN_ACCOUNT)
def test_broken_key_of_an_account_is_named(tmp_path, key):
    value, expected = BROKEN_ACCOUNT[key]
    broken = builders.record(accounts=[builders.account(**{key: value})])
    assert expected in problems_of(tmp_path, broken)


def test_every_problem_is_told_at_once(tmp_path):
    text = problems_of(tmp_path, builders.record(uid=-1, node="", cluster=""))
    assert text.count("must be") == 3


REGION = {
    **{"name": "a/b", "count": 1, "seconds": 1.0, "energy_uj": 5, "uncertainty_uj": 1.0},
    **{"parent": "a", "exclusive_seconds": 0.5, "exclusive_uj": 2, "exclusive_uncertainty_uj": 1},
}


@pytest.mark.parametrize(
    ("accounts", "problem"),
    [
        (
            [builders.account(domains_uj={"fan": 100_000_000})],
            "accounts[0].domains_uj.fan: must be one of cpu, dram, gpu, rest",
        ),
        (
            [builders.account(method="model", estimated=False)],
            "accounts[0].estimated: false: must be true, for method is model",
        ),
        ([builders.account(), builders.account()], "accounts: step job is there twice"),
        ([builders.account("batch")], "accounts: no step `job`"),
        (
            [builders.account(regions=[{**REGION, "energy_uj": -1}])],
            "accounts[0].regions[0].energy_uj: -1: must be",
        ),
    ],
    ids=["unknown domain", "model that claims to be measured", "step twice", "no job", "region"],
)
def test_what_is_wrong_with_accounts_is_named(tmp_path, accounts, problem):
    assert problem in problems_of(tmp_path, builders.record(accounts=accounts))


def test_a_time_is_no_count_of_restarts(tmp_path):
    """Of a record without times it would be the time of its run."""
    text = problems_of(tmp_path, builders.record(restart=2 * 10**12, accounts=[], missing="x"))
    assert "restart: 2000000000000: must be a whole number from 0 to 4294967295" in text


def test_file_under_a_wrong_name_is_named(tmp_path):
    path = builders.write(tmp_path, builders.record())
    wrong = path.rename(tmp_path / "demo.13.n1.json")
    with pytest.raises(noderecord.RecordError, match=r"demo\.12\.n1\.json: rename it"):
        noderecord.read(wrong)


NOT_RECORDS = [b"", b"{", b"\xff\xfe", b"[]", b"null", b'{"schema": 1}', b"[" * 100_000]


@pytest.mark.parametrize("content", NOT_RECORDS, ids=range(len(NOT_RECORDS)))
def test_no_content_breaks_the_reader(tmp_path, content):
    path = tmp_path / "demo.1.n1.json"
    path.write_bytes(content)
    with pytest.raises(noderecord.RecordError, match=r"must|not JSON"):
        noderecord.read(path)


def test_energy_that_is_not_known_needs_no_parts(tmp_path):
    account = builders.account(energy_uj=0)
    for key in noderecord.MEASURED_KEYS:
        account[key] = None
    account["energy_uj"] = None
    record = builders.record(accounts=[account], missing="joulemarkd was dead: all of it")
    assert noderecord.read(str(builders.write(tmp_path, record)))[2] == record


VALUES = st.one_of(
    st.sampled_from([None, True, False, 0, -1, 1 << 62, 1 << 80, 0.0, -0.5, 1e308, "", "model"]),
    st.sampled_from([math.nan, math.inf, -math.inf, "\0", "\ud800", [], [1], {}, {"cpu": 1}]),
    st.sampled_from([["\ud800"], [None], ["said"], "s" * 300]),
)


@given(st.sampled_from(sorted(builders.account())), VALUES, st.booleans(), st.data())
def test_the_quick_look_at_an_account_passes_no_unsound_one(key, value, is_in_domains, data):
    account = builders.account()
    if is_in_domains:
        account["domains_uj"][data.draw(st.sampled_from(["cpu", "dram", "fan"]))] = value
    else:
        account[key] = value
    if noderecord._is_plain(account):
        assert not noderecord._check_account(account, "")


def test_the_quick_look_passes_the_usual_account():
    assert noderecord._is_plain(builders.account())
    assert not any(noderecord._is_plain(other) for other in (None, 5, [], {}, "text"))


@given(st.sampled_from([*builders.account(), *REGION]), VALUES, st.booleans())
@example("notes", ["said"], False)
def test_a_job_can_be_made_of_whatever_passes_and_of_no_more(key, value, without):
    """Else one node's record would stop every later merge: the store keeps it, and tries again."""
    account, region = builders.account(regions=[]), dict(REGION)
    changed = region if key in region and key not in ("energy_uj", "uncertainty_uj") else account
    changed[key] = value
    if without:
        del changed[key]
    if changed is region:
        account["regions"] = [region]
    made = [builders.record(node=node, accounts=[account]) for node in ("n1", "n2")]
    if any(map(noderecord.check, made)):
        return
    rows = jobrecord.summarise(runs.Run(0, made))
    for record in made:
        jobrecord.drop_details(record)
    assert jobrecord.summarise(runs.Run(0, made)) == rows
    for row in rows:
        for cell in row.values():
            assert not isinstance(cell, int) or cell < 1 << 63
            assert not isinstance(cell, float) or math.isfinite(cell * cell)
            assert not isinstance(cell, str) or ("\0" not in cell and cell.encode() is not None)
        assert len(row["Step"]) <= 255
