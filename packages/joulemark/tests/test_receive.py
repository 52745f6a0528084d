# Tests of `joulemark receive` without a broker: what is taken, what lands on disk.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import json
import os
import time
from pathlib import Path
from types import SimpleNamespace

import builders
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joulemark import config, secret
from joulemark.accounting import receive
from joulemark.accounting.receive import Arrived, Refused
from joulemark.broker import PROGRAMS, Broker
from joulemark.errors import UserError
from joulemark.store import session

CLUSTER = "c1"


def record(job: int = 12, node: str = "n1", **more: object) -> bytes:
    excuse = {"missing": "joulemarkd does not answer", "accounts": []}
    return json.dumps(builders.record(job, node, cluster=CLUSTER, **{**excuse, **more})).encode()


def arrived(payload: bytes, replaces: bool = True) -> Arrived:
    """A message for the file c1.12.n1.json."""
    return Arrived("n1", "c1.12.n1.json", payload, replaces)


def understand(topic: str, payload: bytes) -> Arrived:
    return receive.understand(topic, payload, "joulemark", CLUSTER)


def test_a_record_gets_the_name_that_joulemarkd_gives_it():
    found = understand("joulemark/c1/record/n1/12", record())
    assert found.name == "c1.12.n1.json" and found.node == "n1"
    assert not found.replaces  # it only says that there is none


def test_a_profile_goes_beside_its_record():
    named = "profiles/c1.12.n1.x.profile.jsonl"
    assert understand(f"joulemark/c1/profile/n1.x/{named}", b"x").node == "n1.x"
    for name in ("profiles/c1.12.n1.csv", "c1.12.n1.profile.jsonl"):
        assert understand(f"joulemark/c1/profile/n1/{name}", b"x").name == name


@pytest.mark.parametrize(
    "topic",
    [
        "joulemark/c2/record/n1/12",
        "joulemark/c1/record/n2/12",
        "joulemark/c1/record/n1/13",
        "joulemark/c1/record/n1/012",
        "joulemark/c1/record/../12",
        "joulemark/c1/record/n1/../../etc/passwd",
        "joulemark/c1/receipt/n1",
        "other",
    ],
)
def test_a_record_under_another_topic_is_refused(topic):
    with pytest.raises(Refused):
        understand(topic, record())


@pytest.mark.parametrize("name", PROGRAMS)
def test_who_looks_at_nodes_is_none_that_sends_records(name):
    """By the access list each client may write as the node of its name."""
    with pytest.raises(Refused, match="is no node's name"):
        understand(f"joulemark/c1/record/{name}/12", record(node=name))
    with pytest.raises(Refused, match="is no node's name"):
        understand(f"joulemark/c1/profile/{name}/c1.12.{name}.csv", b"x")


@pytest.mark.parametrize("payload", [b"", b"{", b"[]", b"{}", b"\xff", b"[" * 100000])
def test_what_is_no_record_is_refused(payload):
    with pytest.raises(Refused):
        understand("joulemark/c1/record/n1/12", payload)


@pytest.mark.parametrize(
    "name",
    [
        "c1.12.n1.json",
        "c1.12.n1.x.json",
        "profiles/c1.12.n1.x.profile.jsonl",
        "c1.12.n1.json.2",
        "profiles/c1.12.n1.json.2",
        "c1.12.n2.csv",
        "c2.12.n1.csv",
        "../c1.12.n1.csv",
        "profiles/../c1.12.n1.csv",
        "/etc/c1.12.n1.csv",
        "c1.12.n1.csv/x",
        "c1.12.n1.",
        "c1.12.n1.a..b",
        "profiles/profiles/c1.12.n1.csv",
        "",
    ],
)
def test_a_profile_of_another_name_is_refused(name):
    with pytest.raises(Refused):
        understand(f"joulemark/c1/profile/n1/{name}", b"x")


@given(topic=st.text(max_size=60), payload=st.binary(max_size=60))
def test_no_message_leaves_the_folder(topic, payload):
    for kind in ("record", "profile"):
        try:
            found = understand(f"joulemark/c1/{kind}/{topic}", payload)
        except Refused:
            continue
        path = Path("/records") / found.name
        assert path.parent in (Path("/records"), Path("/records/profiles"))
        assert path.name.startswith("c1.") and "\0" not in found.name


@pytest.mark.parametrize("name", ["c1.12.n1.json", "profiles/c1.12.n1.profile.jsonl"])
def test_writing_twice_is_writing_once(tmp_path, name):
    one = Arrived("n1", name, b"one", True)
    assert receive.write(tmp_path, one) is None
    assert receive.write(tmp_path, one) == "was there already"
    path = tmp_path / name
    (path.parent / "merged").mkdir()
    path.rename(path.parent / "merged" / path.name)
    assert receive.write(tmp_path, one) == "was there already"
    assert [found.name for found in path.parent.iterdir()] == ["merged"]


def test_a_later_version_replaces_an_earlier_one(tmp_path):
    for payload in (b"one", b"two"):
        assert receive.write(tmp_path, arrived(payload)) is None
    assert (tmp_path / "c1.12.n1.json").read_bytes() == b"two"


def test_another_runs_record_stays_beside_it(tmp_path):
    """Requeued before anything was merged; each comes twice, the second run's in two versions."""
    name = "c1.12.n1.json"

    def payload(start_ns: int, energy_uj: int) -> bytes:
        accounts = [{"step": "job", "start_ns": start_ns, "end_ns": 9, "energy_uj": energy_uj}]
        return json.dumps({"accounts": accounts}).encode()

    for start_ns, energy_uj in ((1, 10), (2, 20), (1, 10), (2, 21), (3, 30), (2, 21)):
        receive.write(tmp_path, arrived(payload(start_ns, energy_uj)))
    kept = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    versions = payload(1, 10), payload(2, 21), payload(3, 30)
    assert kept == dict(zip((name, f"{name}.2", f"{name}.3"), versions))


def test_a_record_of_a_run_that_ends_later_stays(tmp_path):
    """A ledger that a power failure threw back tells of the job's beginning alone."""

    def payload(end_ns: int) -> bytes:
        return json.dumps(
            {"accounts": [{"step": "job", "start_ns": 1, "end_ns": end_ns}]}
        ).encode()

    for end_ns, why in ((5, None), (4, receive.LATER), (6, None), (5, receive.LATER)):
        assert receive.write(tmp_path, arrived(payload(end_ns))) == why
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [payload(6)]


def profile(start_ns: int, end_ns: int) -> Arrived:
    """Of that run, with a sample; end_ns 0: cut off."""
    lines = [{"start_ns": start_ns}, {"t": start_ns, "e": [1]}, {"end": end_ns, "e": [2]}]
    lines = lines if end_ns else lines[:2]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    return Arrived("n1", "profiles/c1.12.n1.profile.jsonl", text.encode(), True)


def test_so_does_its_profile(tmp_path):
    """Each job has one, of its last run."""
    comes = (1, 5), (1, 4), (1, 6), (1, 0), (2, 0), (1, 7), (2, 3), (1, 7)
    stays = (1, 5), (1, 5), (1, 6), (1, 6), (2, 0), (2, 0), (2, 3), (2, 3)
    for one, kept in zip(comes, stays):
        why = receive.write(tmp_path, profile(*one))
        assert why == (None if one == kept else receive.LATER)
        found = [path.read_bytes() for path in (tmp_path / "profiles").iterdir()]
        assert found == [profile(*kept).payload]


@pytest.fixture
def take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Gives a receiver messages as fast as the broker does, on a disk whose first file is slow."""
    pytest.importorskip("paho.mqtt.client")
    sync, waits = os.fsync, iter((0.3,))

    def slow_sync(descriptor: int) -> None:
        time.sleep(next(waits, 0))
        sync(descriptor)

    monkeypatch.setattr(receive.os, "fsync", slow_sync)
    broker = Broker("localhost", 1883, "joulemark", None, None, False, None, None, None)
    place = config.Place.parse(str(tmp_path / "store"))
    receiver = receive.Receiver(config.Config(CLUSTER, tmp_path, place), broker)

    def messages(*payloads: bytes) -> None:
        topic = f"joulemark/{CLUSTER}/record/n1/12"
        for payload in payloads:
            message = SimpleNamespace(topic=topic, payload=payload)
            receiver._on_message(None, None, message)
        for writer in receiver.writers:
            writer.shutdown()

    return messages


def test_what_comes_at_once_is_written_one_after_the_other(take, tmp_path):
    """After an outage a node sends all it has: two runs of a job, an excuse after the record."""
    runs = [record(missing=None, restart=run, accounts=[account(run)]) for run in (0, 1)]
    take(*runs, record())
    kept = {path.name: path.read_bytes() for path in tmp_path.glob("*.json*")}
    assert kept == {"c1.12.n1.json": runs[0], "c1.12.n1.json.2": runs[1]}


def test_of_two_versions_the_later_one_stays(take, tmp_path, capsys):
    """And the log says of one that is not taken what is there."""
    versions = [record(missing=None, uid=uid, accounts=[account(0)]) for uid in (1, 2)]
    earlier = record(missing=None, accounts=[{**account(0), "end_ns": 2 * 10**18 - 1}])
    take(*versions, versions[1], earlier, record())
    assert (tmp_path / "c1.12.n1.json").read_bytes() == versions[1]
    said = [line.partition(" bytes")[2] for line in capsys.readouterr().out.splitlines()]
    reasons = ("was there already", receive.LATER, "a record is there, and stays")
    assert said == ["", "", *(f": {reason}" for reason in reasons)]


def account(run: int) -> dict:
    return builders.account(start_ns=builders.START_NS + run * 10**12, end_ns=2 * 10**18)


def test_that_there_is_none_never_replaces_a_record(tmp_path):
    (tmp_path / "c1.12.n1.json").write_bytes(b"real")
    assert receive.write(tmp_path, arrived(b"none", False)) == "a record is there, and stays"
    assert (tmp_path / "c1.12.n1.json").read_bytes() == b"real"


def test_a_failed_writing_leaves_nothing(tmp_path):
    (tmp_path / "c1.12.n1.json").mkdir()
    with pytest.raises(OSError):
        receive.write(tmp_path, arrived(b"x"))
    assert [path.name for path in tmp_path.iterdir()] == ["c1.12.n1.json"]


def test_a_link_is_replaced_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    records_dir = tmp_path / "records"
    records_dir.mkdir()
    (records_dir / "c1.12.n1.json").symlink_to(victim)
    assert receive.write(records_dir, arrived(b"x")) is None
    assert victim.read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("user", "given", "expected"),
    [
        (None, None, ("node", "/etc/secret")),
        (None, "own", ("node", "own")),
        ("me", "own", ("me", "own")),
        ("me", None, ("me", None)),
    ],
)
def test_a_user_or_a_password_of_our_own_goes_before_the_nodes(tmp_path, user, given, expected):
    path = tmp_path / "joulemark.yaml"
    path.write_text("mqtt: {host: h, user: node, password_file: /etc/secret}\n")
    broker = Broker.load(path, "joulemark-top", user, given)
    file = broker.password_file
    assert (broker.user, str(file) if file else None) == expected


@pytest.mark.parametrize("end", ["", "\n"], ids=["no newline", "newline"])
def test_a_password_file_may_lack_its_last_newline(tmp_path, end):
    path = tmp_path / "password"
    path.write_text(f"open sésame {end}", encoding="utf-8")
    path.chmod(0o600)
    broker = Broker("localhost", 1883, "joulemark", "u", str(path), False, *[None] * 3)
    assert broker.password() == "open sésame "
    assert session.read_password(config.Place.parse("mysql://u@host/db", path)) == "open sésame "


@pytest.mark.parametrize(
    ("content", "mode", "said"),
    [
        (b"\xff\n", 0o600, "is not UTF-8"),
        (b"\n", 0o600, "no password in its first line"),
        (b"secret\n", 0o640, "others may read it: `chmod 600"),
        (None, 0, "No such file"),
    ],
)
def test_a_password_that_cannot_be_read_is_one_line(tmp_path, content, mode, said):
    path = tmp_path / "password"
    if content is not None:
        path.write_bytes(content)
        path.chmod(mode)
    with pytest.raises(UserError) as caught:
        secret.read(path)
    assert str(caught.value).startswith(f"{path}: ") and said in str(caught.value)
    assert "secret" not in str(caught.value)
