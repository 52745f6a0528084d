"""What joulemarkd's own pollers read from an instrument that a test configures."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.cluster import wait_for
from tests.peers.joulemarkd import NODE
from tests.peers.peer import Peer

FOREVER = 1000000


class Readings:
    """Of `joulemarkd --probe`: a line of JSON each, and what else it said."""

    output: str
    errors: str

    @property
    def said(self) -> str:
        return self.output + self.errors

    @property
    def readings(self) -> list[dict]:
        """All of them; a line may be half written."""
        lines = self.output.splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def _of(self, channel: str | None) -> list[dict]:
        """The readings of one channel or of all."""
        return [one for one in self.readings if channel in (None, one["channel"])]

    def values(self, channel: str | None = None) -> list[float]:
        """The good values."""
        return [one["value"] for one in self._of(channel) if one["fault"] is None]

    def times(self, channel: str | None = None) -> list[float]:
        """Theirs."""
        return [one["time"] for one in self._of(channel) if one["fault"] is None]

    def faults(self, channel: str | None = None) -> list[str]:
        return [one["fault"] for one in self._of(channel) if one["fault"] is not None]


class Probe(Readings):
    """One run that has ended, and its exit status."""

    def __init__(self, done: subprocess.CompletedProcess) -> None:
        self.status, self.output, self.errors = done.returncode, done.stdout, done.stderr


class Watch(Peer, Readings):
    """A run that goes on while the test changes the instrument's peer."""

    def __init__(self, program: Path, config: Path) -> None:
        self.program, self.config = program, config
        self.output_file, self.log_file = config.with_name("readings"), config.with_name("errors")

    def command(self) -> list[object]:
        return [self.program, "-N", NODE, "-c", self.config, "--probe", FOREVER]

    def start(self) -> Watch:
        for file in (self.output_file, self.log_file):
            file.unlink(missing_ok=True)  # an earlier watch's
        return self.launch()

    @property
    def output(self) -> str:
        return self.output_file.read_text()

    @property
    def errors(self) -> str:
        return self.log()

    def wait_fault(self, part: str = "", channel: str | None = None, after: int = 0) -> str:
        """Until there is one behind the channel's first ones; see new_fault()."""

        def found() -> str | None:
            return next((fault for fault in self.faults(channel)[after:] if part in fault), None)

        def what() -> str:
            return f"a fault of {channel} with '{part}'; there are {self.faults()[-5:]}"

        return wait_for(found, what=what)

    @contextlib.contextmanager
    def new_fault(self, part: str = "", channel: str | None = None) -> Iterator[None]:
        """What is done within must bring one: one that was there before counts for nothing."""
        before = len(self.faults(channel))
        yield
        self.wait_fault(part, channel, before)

    def wait_value(self, value: float | None = None, channel: str | None = None) -> None:
        """Until there was this value; any without one."""
        wait_for(
            lambda: any(value in (None, one) for one in self.values(channel)),
            what=lambda: f"the value {value}; the last ones are {self.values(channel)[-5:]}",
        )

    def wait_last(self, value: float, channel: str | None = None) -> None:
        """Until this is the newest value."""
        wait_for(
            lambda: self.values(channel)[-1:] == [value],
            what=lambda: f"{value} at last; the last ones are {self.values(channel)[-5:]}",
        )

    def wait_more(self, count: int = 1, channel: str | None = None) -> None:
        """Until there are so many values more than now."""
        enough = len(self.values(channel)) + count
        wait_for(lambda: len(self.values(channel)) >= enough, what=f"{enough} values")
