"""Folders of sysfs as real machines have them, whose counters a test makes run and wrap."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
import struct
from pathlib import Path

from tests.cluster import Waited, wait_for
from tests.peers.joulemarkd import Daemon


def write_files(folder: Path, files: dict[str, object]) -> None:
    """One file a name, each with a line's end, as the kernel writes them."""
    for name, value in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")


class Counter:
    """A file of microjoules that runs from `start_uj` and begins anew behind `range_uj`.

    The number is written in place and in one piece, for the reader keeps the file open.
    """

    def __init__(self, path: Path, range_uj: int, start_uj: int) -> None:
        self.range_uj, self.start_uj, self.total_uj = range_uj, start_uj, 0
        self.file = os.open(path, os.O_CREAT | os.O_WRONLY)
        self.advance(0)

    def advance(self, energy_uj: int) -> None:
        self.total_uj += energy_uj
        raw_uj = (self.start_uj + self.total_uj) % (self.range_uj + 1)
        os.pwrite(self.file, b"%020d\n" % raw_uj, 0)

    @property
    def wraps(self) -> int:
        return (self.start_uj + self.total_uj) // (self.range_uj + 1)


class Rapl:
    """/sys/class/powercap with zones {"intel-rapl:0:1": (name, max_energy_range_uj)}; limits: of
    their power, which Intel's have and AMD's have not."""

    def __init__(
        self,
        folder: Path,
        zones: dict[str, tuple[str, int]],
        before_wrap_uj: int,
        limits: bool = True,
    ) -> None:
        self.root = folder / "class" / "powercap"
        self.counters: dict[str, Counter] = {}
        self.root.mkdir(parents=True)
        for zone, (name, range_uj) in zones.items():
            control, *numbers = zone.split(":")
            place = folder / "devices" / "virtual" / "powercap" / control
            if not place.exists():
                write_files(place, {"enabled": 1})
                (self.root / control).symlink_to(place)
            for depth in range(len(numbers)):
                place /= ":".join([control, *numbers[: depth + 1]])
            write_files(place, {"name": name, "max_energy_range_uj": range_uj, "enabled": 1})
            constraint = {"name": "long_term", "power_limit_uw": 0, "time_window_us": 999424}
            set_to = {f"constraint_0_{key}": value for key, value in constraint.items()}
            if limits:
                write_files(place, set_to)
            start_uj = range_uj - before_wrap_uj
            self.counters[zone] = Counter(place / "energy_uj", range_uj, start_uj)
            (self.root / zone).symlink_to(place)


INTEL_CLIENT = {
    "intel-rapl:0": ("package-0", 262143328850),
    "intel-rapl:0:0": ("core", 262143328850),
    "intel-rapl:0:1": ("uncore", 262143328850),
    "intel-rapl:0:2": ("dram", 262143328850),
    "intel-rapl:1": ("psys", 262143328850),
    "intel-rapl-mmio:0": ("package-0", 262143328850),
}
INTEL_SERVER = {
    "intel-rapl:0": ("package-0", 262143328850),
    "intel-rapl:0:0": ("dram", 65712999613),
    "intel-rapl:1": ("package-1", 262143328850),
    "intel-rapl:1:0": ("dram", 65712999613),
}
AMD = {
    "intel-rapl:0": ("package-0", 65532610987),
    "intel-rapl:0:0": ("core", 65532610987),
}


def add_device(root: Path, number: int, name: str, files: dict[str, object]) -> Path:
    folder = root / f"hwmon{number}"
    write_files(folder, {"name": name, "uevent": "", **files})
    return folder


def rail(number: int, label: str, millivolts: int, milliamperes: int) -> dict[str, object]:
    """As the driver ina3221 shows one of its three inputs."""
    return {
        f"in{number}_label": label,
        f"in{number}_enable": 1,
        f"in{number}_input": millivolts,
        f"curr{number}_input": milliamperes,
        f"curr{number}_crit": 32760,
        f"shunt{number}_resistor": 5000,
    }


def make_jetson(root: Path) -> Path:
    """Orin: the second chip's rails are not the node's input, shunt voltages are no rails."""
    add_device(root, 0, "tmp451", {"temp1_input": 41000})
    rails = rail(1, "VDD_GPU_SOC", 20000, 300) | rail(2, "VDD_CPU_CV", 20000, 150)
    shunts = {f"in{number}_input": 1 for number in (4, 5, 6)}
    sums = {"in7_input": 15, "in7_label": "sum of shunt voltages", "curr4_input": 450}
    chip = add_device(
        root, 1, "ina3221", rails | rail(3, "VIN_SYS_5V0", 5000, 500) | shunts | sums
    )
    nothing = rail(1, "NC", 0, 0) | rail(2, "VDDQ_VDD2_1V8AO", 5000, 120) | rail(3, "NC", 0, 0)
    add_device(root, 2, "ina3221", nothing)
    return chip


def add_acpi_meter(root: Path, number: int, info: str, power_w: float, *, old: bool) -> Path:
    """As Linux before its commit 16746ce8adfe (old) and after shows one of Grace's: its oem_info,
    accuracy and interval are edk2-nvidia's (428f5cb, BpmpSsdtSocket0.asl of TH500)."""
    device = root.parent / "devices" / "LNXSYSTM:00" / "LNXSYBUS:00" / f"ACPI000D:0{number}"
    hwmon = device / "hwmon" / f"hwmon{number}"
    files = {
        "name": "power_meter",
        "power1_average": int(power_w * 1e6),
        "power1_average_interval": 50,
        "power1_average_interval_min": 50,
        "power1_average_interval_max": 1000,
        "power1_accuracy": "100.0%",
        "power1_is_battery": 0,
        "power1_model_number": "",
        "power1_oem_info": info,
    }
    hwmon.mkdir(parents=True)
    write_files(hwmon, {"uevent": ""})
    write_files(device if old else hwmon, files)
    (hwmon / "device").symlink_to("../..")
    root.mkdir(exist_ok=True)
    (root / hwmon.name).symlink_to(hwmon)
    return (device if old else hwmon) / "power1_average"


def add_gpu(root: Path, number: int, address: str, name: str, files: dict[str, object]) -> Path:
    """As a driver registers it: hwmonN of the card's PCI device (linux, i915_hwmon.c: of a tile,
    too), to which `device` leads."""
    card = root.parent / "devices" / "pci0000:37" / address
    hwmon = card / "hwmon" / f"hwmon{number}"
    write_files(hwmon, {"name": name, "uevent": "", **files})
    (hwmon / "device").symlink_to("../..")
    root.mkdir(exist_ok=True)
    (root / hwmon.name).symlink_to(hwmon)
    return hwmon / "energy1_input"


MI300A, MI300X, MI250X, NAVI31 = 0x74A0, 0x74A1, 0x740C, 0x744C
#: content revision, bytes, place of the energy; their source: slurm-plugins/tests/test_amdgpu.c
V1_3, V1_5, V1_6 = (3, 120, 24), (5, 360, 88), (6, 1664, 16)


def metrics(layout: tuple[int, int, int], units: int) -> bytes:
    """A gpu_metrics of format 1; what a card does not support is all ones, as in the driver."""
    content, length, offset = layout
    table = bytearray(b"\xff" * length)
    struct.pack_into("<HBB", table, 0, length, 1, content)
    struct.pack_into("<Q", table, offset, units)
    return bytes(table)


class Accumulator:
    """A card's gpu_metrics, whose energy runs in units of 2^-16 J."""

    def __init__(self, path: Path, layout: tuple[int, int, int], units: int) -> None:
        self.layout, self.units, self.total_uj = layout, units, 0
        self.file = os.open(path, os.O_CREAT | os.O_WRONLY)
        self.advance(0)

    def advance(self, energy_uj: int) -> None:
        """Whole units only: 1024 of them are 15625 uJ."""
        steps = -(-energy_uj // 15625)
        self.units += 1024 * steps
        self.total_uj += 15625 * steps
        os.pwrite(self.file, metrics(self.layout, self.units), 0)


def add_card(root: Path, number: int, device_id: int, hwmon: dict[str, object]) -> Path:
    folder = root / f"card{number}" / "device"
    write_files(folder, {"vendor": "0x1002", "device": f"{device_id:#06x}"})
    write_files(folder / "hwmon" / f"hwmon{number + 3}", {"name": "amdgpu", **hwmon})
    write_files(root / f"card{number}-DP-1", {"status": "disconnected"})
    return folder


class Books:
    """Compares a daemon's books with counters: each must have the gain to the microjoule.

    The daemon's first reading may fall on any of the totals that the counters had until it showed
    its first gain; these are whole joules, and the later gains are not.
    """

    PATIENCE_S, NUDGES = 0.5, 60

    def __init__(self, daemon: Daemon, counters: dict[str, Counter]) -> None:
        self.daemon, self.counters = daemon, counters
        self.begins_uj = [0]
        wait_for(self._begun, what="the books to show a first gain", poll_s=0.2)

    def _begun(self) -> bool:
        if all(total_uj > 0 for total_uj in self.daemon.books().values()):
            return True
        for counter in self.counters.values():
            counter.advance(1_000_000)
        self.begins_uj.append(self.begins_uj[-1] + 1_000_000)
        return False

    def missing_uj(self) -> dict[str, int]:
        """What the books lack of each counter's gain since the test began."""
        totals = self.daemon.books()
        assert totals.keys() == self.counters.keys()
        return {name: counter.total_uj - totals[name] for name, counter in self.counters.items()}

    def agree(self) -> bool:
        return all(missing_uj in self.begins_uj for missing_uj in self.missing_uj().values())

    def seen(self) -> bool:
        return all(missing <= self.begins_uj[-1] for missing in self.missing_uj().values())

    def check(self) -> None:
        """Where a reading came late the last power stood in for it: the next gain settles that."""
        for _ in range(self.NUDGES):
            try:
                wait_for(self.agree, self.PATIENCE_S)
                return
            except Waited:
                for counter in self.counters.values():
                    counter.advance(1_234_567)
        raise AssertionError(f"the books lack {self.missing_uj()} uJ, not one of {self.begins_uj}")
