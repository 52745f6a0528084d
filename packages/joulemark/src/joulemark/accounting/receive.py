# `joulemark receive`: records that nodes publish over MQTT become files in record_dir.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Each file is written under the same name however often it comes, and the node is sent a receipt
once it is on disk; until then the node keeps it and sends it again."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from joulemark import config as site
from joulemark import folders
from joulemark.accounting import noderecord
from joulemark.broker import PROGRAMS, RECEIVER, Broker, is_refusal
from joulemark.errors import UsageError
from joulemark.output import printable
from joulemark.profile.node import is_later

QOS = 1
SESSION_S = 7 * 86400  # how long the broker keeps what comes while no receiver runs
WRITERS = 8  # fsyncs overlap
SIZE_MAX = 256 << 20
FILE_MODE = 0o640
NODE = r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}"
JOB = r"[1-9][0-9]{0,9}"
ENDING = r"(profile\.jsonl|[A-Za-z0-9]{1,32})"
LATER = "a later one is there, and stays"


class Refused(Exception):
    """Why a message is no file of ours."""


@dataclass(frozen=True)
class Arrived:
    """One message: the node that sent it, the file it is, its bytes."""

    node: str
    name: str  # relative to record_dir
    payload: bytes
    replaces: bool  # a record that only says that there is none replaces no other


# -- what a message is ---------------------------------------------------------------------------


def understand(topic: str, payload: bytes, prefix: str, cluster: str) -> Arrived:
    """The file that a message carries; Refused says why it is none. Trusts no byte of it."""
    head = f"{prefix}/{cluster}/"
    if not topic.startswith(head):
        raise Refused("another topic than ours")
    kind, _, rest = topic[len(head) :].partition("/")
    node, _, last = rest.partition("/")
    if not re.fullmatch(NODE, node):
        raise Refused("no node's name in its topic")
    if node in PROGRAMS:
        raise Refused(f"{node} is no node's name")
    if len(payload) > SIZE_MAX:
        raise Refused(f"{len(payload)} bytes")
    if kind == "record":
        return _record(node, last, payload, cluster)
    if kind == "profile":
        return _profile(node, last, payload, cluster)
    raise Refused("neither a record nor a profile")


def _record(node: str, job: str, payload: bytes, cluster: str) -> Arrived:
    if not re.fullmatch(JOB, job):
        raise Refused("no job's number in its topic")
    try:
        record = json.loads(payload)
    except (ValueError, RecursionError):
        raise Refused("no JSON") from None
    problems = noderecord.check(record)
    if problems:
        raise Refused(problems[0])
    said = (record["cluster"], record["JobIDRaw"], record["node"])
    if said != (cluster, int(job), node):
        raise Refused(f"a record of {said} under another's topic")
    name = noderecord.file_name(cluster, int(job), node)
    return Arrived(node, name, payload, replaces=record["missing"] is None)


def _profile(node: str, name: str, payload: bytes, cluster: str) -> Arrived:
    """A file beside a record; it may not pose as one, nor, of n1, as a file of a node n1.x."""
    own = rf"(profiles/)?{re.escape(cluster)}\.{JOB}\.{re.escape(node)}\.{ENDING}"
    if not re.fullmatch(own, name) or noderecord.is_record(name) or ".." in name:
        raise Refused("no name of this node's files")
    return Arrived(node, name, payload, replaces=True)


# -- files ---------------------------------------------------------------------------------------


def write(record_dir: Path, arrived: Arrived) -> str | None:
    """On disk when it returns None; else why it was left out.

    Over an earlier version of itself; a record beside another run's of the job, as NAME.2.
    """
    first = final = record_dir / arrived.name
    for place in (first, first.parent / "merged" / first.name):
        if any(one.read_bytes() == arrived.payload for one in _numbered(place) if one.is_file()):
            return "was there already"
        if place.is_file() and not arrived.replaces:
            return "a record is there, and stays"
    if noderecord.is_record(arrived.name):
        ours = _run_of(arrived.payload)
        for final in _numbered(first):
            there = _run_of(final.read_bytes()) if final.is_file() else None
            if not ours or not there or ours[0] == there[0]:
                break
        if ours and there and there[1] > ours[1]:
            return LATER
    elif is_later(final, arrived.payload):
        return LATER
    folders.make(final.parent, record_dir, 0o750)
    draft = final.with_name(f".{final.name}.{os.getpid()}.{id(arrived):x}.tmp")
    folders.replace(final, draft, arrived.payload, record_dir, FILE_MODE)
    folder = os.open(final.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return None


def _numbered(first: Path) -> Iterator[Path]:
    """NAME and, as far as there are such files, NAME.2, NAME.3 and the next, which is free."""
    yield first
    number, last = 2, first
    while last.is_file():
        last = first.with_name(f"{first.name}.{number}")
        number += 1
        yield last


def _run_of(payload: bytes) -> tuple[int, int] | None:
    """When the record's run of the job began and ended; None: this is no such record."""
    try:
        accounts = json.loads(payload)["accounts"]
        return next((one["start_ns"], one["end_ns"]) for one in accounts if one["step"] == "job")
    except (ValueError, TypeError, LookupError, StopIteration, RecursionError):
        return None


def log(line: str) -> None:
    """One line an event; control characters of others' making are made visible."""
    print(f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} {printable(line)}", flush=True)


# -- the broker ----------------------------------------------------------------------------------


class Receiver:
    """Subscribes, writes, sends receipts, until it is stopped."""

    def __init__(self, config: site.Config, broker: Broker) -> None:
        self.config, self.broker = config, broker
        self.writers = [ThreadPoolExecutor(1) for _ in range(WRITERS)]
        self.client = broker.client(f"{RECEIVER}-{config.cluster}")
        self.client.on_connect = self._on_connect
        self.client.on_disconnect = self._on_disconnect
        self.client.on_message = self._on_message
        self.stop, self.status = threading.Event(), 0

    def run(self) -> int:
        """Until SIGTERM or SIGINT."""
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        keep = Properties(PacketTypes.CONNECT)
        keep.SessionExpiryInterval = SESSION_S
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.stop.set())
        threading.excepthook = self._thread_failed
        where = (self.broker.host, self.broker.port)
        self.client.connect_async(*where, keepalive=10, clean_start=False, properties=keep)
        log(f"receiving from {where[0]}:{where[1]} into {self.config.record_dir}")
        # In a thread of its own: without one, publish() writes to the socket itself, and TLS
        # breaks where our writers do that at once.
        self.client.loop_start()
        self.stop.wait()
        self.client.disconnect()
        self.client.loop_stop()
        for writer in self.writers:
            writer.shutdown()
        return self.status

    def _thread_failed(self, failure: threading.ExceptHookArgs) -> None:
        sys.excepthook(failure.exc_type, failure.exc_value, failure.exc_traceback)
        self.status = 1
        self.stop.set()

    @property
    def _head(self) -> str:
        return f"{self.broker.topic}/{self.config.cluster}"

    def _on_connect(self, client, _data, _flags, reason, _properties) -> None:
        if is_refusal(reason):
            log(f"the broker refuses us: {reason}")
            return
        log("the broker takes us")
        client.subscribe([(f"{self._head}/{kind}/#", QOS) for kind in ("record", "profile")])

    def _on_disconnect(self, _client, _data, reason, _properties=None) -> None:
        log(f"not connected: {reason}")

    def _on_message(self, _client, _data, message) -> None:
        try:
            arrived = understand(
                message.topic, message.payload, self.broker.topic, self.config.cluster
            )
        except Refused as refused:
            log(f"refused: topic {message.topic[:200]!r}: {refused}")
            return
        self._writer_of(arrived.name).submit(self._take, arrived)

    def _writer_of(self, name: str) -> ThreadPoolExecutor:
        """The same for all of a name: each sees what the ones before it have put there."""
        return self.writers[zlib.crc32(name.encode()) % WRITERS]

    def _take(self, arrived: Arrived) -> None:
        try:
            left_out = write(self.config.record_dir, arrived)
        except Exception as error:  # of whatever kind: nobody else hears of it
            kind = type(error).__name__
            log(f"{arrived.name}: cannot be written, and comes again: {kind}: {error}")
            return
        receipt = f"{arrived.name} {zlib.crc32(arrived.payload):08x}"
        self.client.publish(f"{self._head}/receipt/{arrived.node}", receipt, qos=QOS)
        size = len(arrived.payload)
        log(f"{arrived.name}: {size} bytes" + (f": {left_out}" if left_out else ""))


def run(user: str | None, password_file: str | None) -> int:
    """`joulemark receive`; returns the exit code."""
    path = site.find()
    config = site.load(path)
    if not config.record_dir.is_dir():
        raise UsageError(f"{config.record_dir}: no such folder: is record_dir right?")
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    return Receiver(config, Broker.load(path, RECEIVER, user, password_file)).run()
