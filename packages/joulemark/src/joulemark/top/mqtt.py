# What nodes use now, by MQTT: they are asked to tell it, again and again, and are heard.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A node tells nothing at rest, and stops LASTS_S after nobody asks any more: an operator who has
suspended his terminal is told nothing, either."""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Iterator

from joulemark.broker import Broker, is_refusal
from joulemark.errors import UserError

QOS = 0  # what comes late is of no use
RENEW_S, LASTS_S = 5.0, 15.0
INTERVAL_MOST_S = 60.0  # delivery/watch.h: who asks for a longer one is told as often
PATIENCE_S = 10.0  # with a broker that does not answer, and with nodes of which none does
SIZE_MAX = 4096
NAMES_MAX = 511  # protocol/protocol.h: JM_VALUE_MAX without the end
WITHOUT = "Without the broker: --no-mqtt"
NODE = r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}"
FIGURE = r"(?!node=)[a-z_]{1,23}=[0-9]{1,20}(\.[0-9]{1,9})?"


def understand(topic: str, payload: bytes, head: str) -> tuple[str, str] | None:
    """A node and the line that it told of itself; None: nothing. Trusts no byte of it."""
    node = topic[len(head) :]
    if not topic.startswith(head) or not re.fullmatch(NODE, node) or len(payload) > SIZE_MAX:
        return None
    line = payload.decode("ascii", "replace")
    return (node, line) if re.fullmatch(f"node={re.escape(node)}( {FIGURE})*", line) else None


def requests(interval_s: float, named: list[str] | None) -> list[str]:
    """To all nodes, or to those that are named: in as few as their names fit into."""
    request = f"watch interval_ms={interval_s * 1e3:.0f} lasts_ms={LASTS_S * 1e3:.0f}"
    if named is None:
        return [request]
    lists: list[str] = []
    for name in named:
        if lists and len(lists[-1]) + len(name) < NAMES_MAX:
            lists[-1] += f",{name}"
        else:
            lists.append(name)
    return [f"{request} nodes={names}" for names in lists]


class Live:
    """Of each node the last line that came: nothing piles up before who is slow."""

    def __init__(
        self,
        broker: Broker,
        cluster: str,
        interval_s: float,
        away: dict[str, str],
        named: list[str] | None = None,
    ) -> None:
        """away: nodes that may well not tell, and why; named: who is asked, None: all."""
        self.broker, self.head = broker, f"{broker.topic}/{cluster}"
        self._requests = requests(interval_s, named)
        self._away = away
        self._heard = [f"{self.head}/live/{name}" for name in named or ["+"]]
        self.refused = 0  # messages that no node tells of itself
        self._messages: dict[str, bytes] = {}  # the last of each topic
        self._state = ""  # "up", or why it is not
        self._changed = threading.Condition()  # either of the two
        self._asked_s = 0.0
        # with all nodes; one that was told another a moment ago tells us after the interval
        self._patient_until_s = time.monotonic() + PATIENCE_S + min(interval_s, INTERVAL_MOST_S)
        self._client = broker.client("")
        self._client.on_connect = self._on_connect
        self._client.on_subscribe = self._on_subscribe
        self._client.on_message = self._on_message

    def __enter__(self) -> Live:
        try:
            self._client.connect(self.broker.host, self.broker.port, keepalive=10)
        except (OSError, ValueError) as error:
            raise self._down(str(error)) from None
        self._client.loop_start()
        with self._changed:
            self._changed.wait_for(lambda: self._state, PATIENCE_S)
        if self._state != "up":
            self.__exit__()
            raise self._down(self._state or f"no answer in {PATIENCE_S:.0f} s")
        return self

    def __exit__(self, *_: object) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def until(self, moment_s: float) -> Iterator[tuple[str, str]]:
        """Nodes and their lines, up to a moment of time.monotonic(). The nodes are asked here."""
        yield from self._away.items()
        self._away = {}
        left_s = 1.0
        while left_s > 0:
            if time.monotonic() - self._asked_s >= RENEW_S:
                self._ask()
            left_s = moment_s - time.monotonic()
            with self._changed:
                self._changed.wait_for(lambda: self._messages, min(max(left_s, 0), RENEW_S))
                waiting = len(self._messages)
            for _ in range(waiting):
                yield from self._next()
            self._look_for_silence()

    def _next(self) -> Iterator[tuple[str, str]]:
        with self._changed:
            topic = next(iter(self._messages))  # that waits for longest
            payload = self._messages.pop(topic)
        found = understand(topic, payload, f"{self.head}/live/")
        if found:
            self._patient_until_s = math.inf
            yield found
        else:
            self.refused += 1

    def _look_for_silence(self) -> None:
        if time.monotonic() > self._patient_until_s:
            raise UserError(
                f"no node tells its energy though it was asked by {self.head}/watch: does "
                "joulemarkd run there, with `transport: mqtt`, and does the broker let us write "
                f"that and read {self.head}/live/+ (mosquitto.acl)? {WITHOUT}"
            )

    def _ask(self) -> None:
        self._asked_s = time.monotonic()
        for request in self._requests:
            self._client.publish(f"{self.head}/watch", request, qos=QOS)

    def _down(self, why: str) -> UserError:
        where = f"broker {self.broker.host}:{self.broker.port}"
        check = "check `mqtt:` in joulemark.yaml, and who we are to it"
        return UserError(f"{where}: {why}: {check}. {WITHOUT}")

    # -- called by paho's thread -----------------------------------------------------------------

    def _on_connect(self, client, _data, _flags, reason, _properties) -> None:
        if is_refusal(reason):
            self._note(str(reason))
        else:
            client.subscribe([(topic, QOS) for topic in self._heard])

    def _on_subscribe(self, _client, _data, _id, reasons, _properties) -> None:
        answers = zip(self._heard, reasons)
        refusal = next((f"{topic}: {one}" for topic, one in answers if is_refusal(one)), "")
        self._note(refusal or "up")
        if not refusal:
            self._ask()

    def _note(self, state: str) -> None:
        with self._changed:
            self._state = state
            self._changed.notify()

    def _on_message(self, _client, _data, message) -> None:
        if message.retain:
            return  # of whenever it was
        with self._changed:
            self._messages[message.topic] = message.payload
            self._changed.notify()
