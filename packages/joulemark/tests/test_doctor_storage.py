# `joulemark doctor`: storage, by what a client of Lustre 2.17.57's says.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""No test machine has a Lustre: its files and what its commands say were those of a real one."""

import json
import time

import pytest
from joulemark.doctor import storage_checks
from joulemark.doctor.finding import ERROR, WARNING
from joulemark.doctor.site import Answer, Site
from joulemark.doctor.slurmconf import SlurmConf
from joulemark.units import NS_PER_S

CLIENT, OF_MDS = "osc-ff148287cadfa000", "osc-MDT0000"
STATES = """\
osc.lustre-OST0000-osc-MDT0000.state=
current_state: DISCONN
state_history:
 - [ 1796099186, CONNECTING ]
 - [ 1796099186, FULL ]
osc.lustre-OST0000-osc-ff148287cadfa000.state=
current_state: {}
state_history:
 - [ 1796099207, CONNECTING ]
mdc.lustre-MDT0000-mdc-ff148287cadfa000.state=
current_state: {}
state_history:
 - [ 1796099207, FULL ]
"""
PLAIN = "stripe_count:  {} stripe_size:   4194304 pattern:        stripe_offset: -1\n\n"
COMPOSITE = """\
  lcm_layout_gen:    0
  lcm_entry_count:   2
    lcme_id:             N/A
    lcme_extent.e_end:   268435456
      stripe_count:  1       stripe_size:   4194304       pattern:       raid0
    lcme_id:             N/A
    lcme_extent.e_end:   EOF
      stripe_count:  -1       stripe_size:   4194304       pattern:       raid0
"""
OSTS = "OBDS:\n0: lustre-OST0000_UUID ACTIVE\n1: lustre-OST0001_UUID ACTIVE\n"
MOUNTINFO = "207 27 0:40 / /mnt/mdt rw shared:83 - lustre lustre-wbcfs rw\n"
MOUNTINFO += "230 27 1273:181606 / /mnt/lustre rw shared:121 - lustre 10.0.2.15@tcp:/lustre rw\n"


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """/sys/fs/lustre of a client of two OSTs, on their MDS."""
    for device, number in ((CLIENT, 8), (OF_MDS, 1)):
        for ost in range(2):
            put(tmp_path, f"osc/lustre-OST000{ost}-{device}/max_rpcs_in_flight", number)
            put(tmp_path, f"osc/lustre-OST000{ost}-{device}/active", 1)
    monkeypatch.setattr(storage_checks, "LUSTRE", tmp_path)
    return tmp_path


def put(tree, name, value):
    path = tree / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{value}\n")


def answers(monkeypatch, **by_second_word):
    def ask(*words):
        assert words[1] != "get_param" or words[2:] == ("osc.*.state", "mdc.*.state")
        return Answer(0, by_second_word[words[1]]) if words[-1] != "/mnt/mdt" else Answer(22)

    monkeypatch.setattr(storage_checks, "ask", ask)


@pytest.mark.parametrize(
    ("said", "has_session", "value"),
    [
        (None, True, None),
        ("session", True, None),
        ("SLURM_JOB_ID", True, "steps are not told apart"),
        ("procname_uid", True, "Lustre's servers do not know jobs"),
        ("disable", True, "Lustre's servers do not know jobs"),
        ("session", False, "Lustre's servers do not know jobs"),
    ],
)
def test_what_a_client_tells_its_servers(tree, said, has_session, value):
    if said is not None:
        put(tree, "jobid_var", said)
    if has_session:
        put(tree, "jobid_this_session", "")
    found = list(storage_checks.jobid(None))
    assert len(found) == (value is not None)
    assert all(value in one.value and "jobid_var=session" in one.fix for one in found)


@pytest.mark.parametrize("state", ["FULL", "IDLE", "DISCONN"])
@pytest.mark.parametrize("of_mdt", ["FULL", "CONNECTING"])
def test_a_server_that_is_away(tree, monkeypatch, state, of_mdt):
    """What an MDS has of its OSTs is no client's."""
    answers(monkeypatch, get_param=STATES.format(state, of_mdt))
    found = {one.where: one.value for one in storage_checks.servers(None)}
    ost, mdt = f"lustre-OST0000-{CLIENT}", "lustre-MDT0000-mdc-ff148287cadfa000"
    assert found == {
        **({ost: "DISCONN: not connected"} if state == "DISCONN" else {}),
        **({mdt: "CONNECTING: not connected"} if of_mdt == "CONNECTING" else {}),
    }


def test_one_that_is_switched_off_is_told_once(tree, monkeypatch):
    answers(monkeypatch, get_param=STATES.format("NEW", "FULL"))
    put(tree, f"osc/lustre-OST0000-{CLIENT}/active", 0)
    (found,) = storage_checks.servers(None)
    assert found.where.endswith("/active")


def test_an_ost_that_is_switched_off(tree, monkeypatch):
    """Of an ordinary user, whom lctl tells nothing."""
    answers(monkeypatch, get_param="")
    put(tree, f"osc/lustre-OST0001-{CLIENT}/active", 0)
    put(tree, f"osc/lustre-OST0001-{OF_MDS}/active", 0)
    (found,) = storage_checks.servers(None)
    assert found.where == f"{tree}/osc/lustre-OST0001-{CLIENT}/active"


@pytest.mark.parametrize(
    ("numbers", "value"),
    [
        ((8, 8), None),
        ((32, 32), None),
        ((4, 4), "4: Lustre's own default is 8"),
        ((8, 32), f"8 to 32: 1 OSTs have fewer, such as lustre-OST0000-{CLIENT}"),
    ],
)
def test_calls_under_way(tree, numbers, value):
    put(tree, "osc/other-OST0000-osc-ff148287cadfb000/max_rpcs_in_flight", 16)
    for ost, number in enumerate(numbers):
        put(tree, f"osc/lustre-OST000{ost}-{CLIENT}/max_rpcs_in_flight", number)
    found = list(storage_checks.calls(None))
    assert [one.value for one in found] == [value] * (value is not None)
    assert all(f"OST*.max_rpcs_in_flight={max(8, *numbers)};" in one.fix for one in found)


@pytest.mark.parametrize(
    ("default", "osts", "is_found"),
    [
        (PLAIN.format(1), OSTS, False),
        (PLAIN.format(-1), OSTS, True),
        (PLAIN.format(2), OSTS, True),
        (PLAIN.format(-1), OSTS[: OSTS.index("1:")], False),
        (COMPOSITE, OSTS, False),
    ],
)
def test_a_default_of_all_osts(tmp_path, monkeypatch, default, osts, is_found):
    put(tmp_path, "mountinfo", MOUNTINFO)
    monkeypatch.setattr(storage_checks, "MOUNTINFO", tmp_path / "mountinfo")
    answers(monkeypatch, getstripe=default, osts=osts)
    found = list(storage_checks.striping(None))
    assert [one.where for one in found] == ["default of /mnt/lustre"] * is_found
    assert all("on all 2 OSTs" in one.value for one in found)


@pytest.mark.parametrize(
    ("ahead_s", "level", "value"),
    [
        (-30, None, None),
        (90, ERROR, "of 90 s from now"),
        (-7200, WARNING, "2 h old"),
    ],
)
def test_a_collector_whose_clock_is_wrong_or_that_is_silent(
    tmp_path, monkeypatch, ahead_s, level, value
):
    line = {"time_ns": time.time_ns() + ahead_s * NS_PER_S}
    put(tmp_path, "io/oss1.jsonl", json.dumps(line))
    put(tmp_path, "io/oss2.jsonl", "{torn")
    put(tmp_path, "io/oss3.jsonl", "")
    monkeypatch.setattr(Site, "key", lambda site, key: {"record_dir": str(tmp_path)}[key])
    conf = tmp_path / "slurm.conf"
    conf.write_text("ClusterName=demo\n")
    found = list(storage_checks.collectors(Site(SlurmConf(conf), "n1")))
    assert [one.level for one in found] == [level] * (level is not None)
    assert all(value in one.value and "oss1" in one.fix for one in found)


def test_where_no_lustre_is_nothing_is_asked(tmp_path, monkeypatch):
    monkeypatch.setattr(storage_checks, "LUSTRE", tmp_path / "none")
    answers(monkeypatch)
    for check in (storage_checks.jobid, storage_checks.servers, storage_checks.calls):
        assert not list(check(None))
