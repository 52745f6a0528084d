"""A serial power meter that speaks Yokogawa's published commands, on a pseudo terminal.

The commands of IM WT310-17EN chapter 6 and IM 760401-01E chapter 14 that a reader of one value
needs, long or abbreviated, with the error queue (`:STATus:ERRor?`) and the integrator's states.
"""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
import re
import time

from tests.peers.lines import Line, Listener

NO_ERROR, PARAMETER = (0, "No error"), (131, "Invalid")
UNDEFINED_HEADER = (113, "Undefined header")
INTEGRATING = (841, "Already in integration")


def command(published: str) -> re.Pattern[str]:
    """`:NUMeric[:NORMal]:VALue?` in all its spellings: the capitals are the abbreviation."""
    plain = published.lstrip(":").replace("?", r"\?").replace("[", "(?:").replace("]", ")?")
    return re.compile("^:?" + re.sub("([A-Z]+)([a-z]*)", r"\1(?:\2)?", plain) + "$", re.I)


class Wattmeter(Listener):
    """What every model has: remote mode, errors, the integrator.

    `mood` spoils the next answers: "mute", "garbage", "half" (no end of line), "late", "text".
    """

    def __init__(self) -> None:
        self.line = Line()
        super().__init__(self.line)
        self.path, self.received = self.line.path, b""
        self.watts, self.watt_hours = "230.5E+00", "1.5000E+03"
        self.mood = ""
        self.remote = False
        self.integrating = False
        self.items: list[str] = []
        self.errors: list[tuple[int, str]] = []
        self.heard: list[str] = []
        self.table = [
            (re.compile(r"^\*CLS$", re.I), lambda _: self.errors.clear()),
            (re.compile(r"^\*IDN\?$", re.I), lambda _: f"YOKOGAWA,{self.model},0,F1.01"),
            (command(":COMMunicate:REMote"), self._set_remote),
            (command(":STATus:ERRor?"), lambda _: self._error()),
            (command(":INTEGrate:STARt"), lambda _: self._start()),
        ]

    model = "WT"

    def _set_remote(self, words: list[str]) -> None:
        self.remote = words == ["ON"]

    def _start(self) -> None:
        if self.integrating:
            self.errors.append(INTEGRATING)
        self.integrating = True

    def _error(self) -> str:
        number, text = self.errors.pop(0) if self.errors else NO_ERROR
        return f'{number},"{text}"'

    def value(self, item: str) -> str:
        """What the display would show; there is no energy before the integrator runs."""
        if item in ("P", "W"):
            return self.watts
        return self.watt_hours if self.integrating else self.no_data

    no_data = "NAN"

    def answer(self, text: str) -> str | None:
        header, _, arguments = text.partition(" ")
        words = [word.strip().upper() for word in arguments.split(",") if word.strip()]
        for pattern, act in self.table:
            if pattern.match(header):
                return act(words)
        self.errors.append(UNDEFINED_HEADER)
        return None

    def take(self, end: int, text: bytes) -> None:
        *whole, self.received = (self.received + text).split(b"\n")
        for line in whole:
            self._take(line.decode("ascii", "replace").strip())

    def _take(self, text: str) -> None:
        self.heard.append(text)
        reply = self.answer(text)
        if reply is None or self.mood == "mute":
            return
        if self.mood == "late":
            time.sleep(0.4)
        spoilt = {"garbage": b"\x00\xff\x81\r\n", "half": reply.encode(), "text": b"WT310\r\n"}
        os.write(self.line.ours, spoilt.get(self.mood, f"{reply}\r\n".encode()))


class Wt310(Wattmeter):
    """Numbered items: `:NUMeric:NORMal:ITEM1 P,1`."""

    model = "WT310"

    def __init__(self) -> None:
        super().__init__()
        self.items = ["U", "I", "P", "S", "Q"]  # as it is delivered
        self.number = 3
        self.table += [
            (command(":NUMeric:FORMat"), lambda words: self._check(words == ["ASCII"])),
            (command(":NUMeric[:NORMal]:NUMber"), self._set_number),
            (command(":NUMeric[:NORMal]:ITEM1"), self._set_item),
            (command(":NUMeric[:NORMal]:VALue?"), lambda _: self._values()),
        ]

    def _check(self, good: bool) -> None:
        if not good or not self.remote:
            self.errors.append(PARAMETER)

    def _set_number(self, words: list[str]) -> None:
        self._check(len(words) == 1 and words[0].isdigit())
        self.number = int(words[0])

    def _set_item(self, words: list[str]) -> None:
        self._check(len(words) == 2 and words[0] in ("P", "WH") and words[1] == "1")
        self.items[0] = words[0]

    def _values(self) -> str:
        return ",".join(self.value(item) for item in self.items[: self.number])


class Wt230(Wattmeter):
    """Items switched on and off: `MEASure:NORMal:ITEM:W:ELEMent1 ON`."""

    model = "760502"
    no_data = "9.91E+37"

    def __init__(self) -> None:
        super().__init__()
        self.items = ["V", "A", "W"]
        switch = ":MEASure[:NORMal]:ITEM:{}:ELEMent1"
        self.switches = {item: command(switch.format(item)) for item in ("W", "WH")}
        self.table += [
            (command(":COMMunicate:HEADer"), lambda words: None),
            (command(":MEASure[:NORMal]:ITEM:PRESet"), lambda words: self.items.clear()),
            (command(":MEASure[:NORMal]:VALue?"), lambda _: ",".join(map(self.value, self.items))),
        ]

    def answer(self, text: str) -> str | None:
        for item, switch in self.switches.items():
            if switch.match(text.partition(" ")[0]):
                self.items.append(item)
                return None
        return super().answer(text)
