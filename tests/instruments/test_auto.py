"""`auto` on the trees of machines as their drivers show them: which channels it takes, which of
them make the node's total, and so what a job that has the node is charged."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.peers.machines import (
    AMD,
    INTEL_CLIENT,
    INTEL_SERVER,
    MI250X,
    MI300A,
    MI300X,
    V1_3,
    V1_6,
    Accumulator,
    Rapl,
    add_acpi_meter,
    add_card,
    add_gpu,
    make_jetson,
    write_files,
)

GPU_UJ, WRAP_UJ = 5_000_000, 20_000_000


class Machine:
    """Its sys and proc, and the library of NVIDIA's driver."""

    def __init__(self, root: Path, gpus: Callable[..., None]) -> None:
        self.root, self.nvidia = root, gpus
        write_files(root, {"proc/stat": "cpu  1 2 3 4 5 0 0 0 0 0"})

    def rapl(self, zones: dict[str, tuple[str, int]], limits: bool = True) -> None:
        Rapl(self.root / "sys", zones, WRAP_UJ, limits)

    def bind(self, driver: str, address: str, device: Path) -> None:
        """As PCI's drivers have their devices."""
        folder = self.root / "sys/bus/pci/drivers" / driver
        write_files(folder, {"new_id": ""})
        device.mkdir(parents=True, exist_ok=True)
        (folder / address).symlink_to(device)

    def nvidias(self, count: int) -> None:
        for number in range(count):
            address = f"0000:{number + 1:02x}:00.0"
            self.bind("nvidia", address, self.root / "sys/devices/pci0000:00" / address)
        self.nvidia(*((number, 0, 5000, 61000, 0) for number in range(count)))

    def amds(self, count: int, device_id: int, layout: tuple[int, int, int] = V1_6) -> None:
        for number in range(count):
            card = add_card(self.root / "sys/class/drm", number, device_id, {})
            Accumulator(card / "gpu_metrics", layout, 5 << 16)
            self.bind("amdgpu", f"0000:{number + 3:02x}:00.0", card)

    def intels(self, count: int) -> None:
        """Max: two tiles each."""
        for number in range(count):
            address = f"0000:{number + 0x3A:02x}:00.0"
            for tile, name in enumerate(("i915", "i915_gt0", "i915_gt1")):
                energy = {"energy1_input": GPU_UJ}
                root = self.root / "sys/class/hwmon"
                file = add_gpu(root, 10 * number + tile, address, name, energy)
            self.bind("i915", address, file.parents[2])


def intel_server(machine: Machine) -> None:
    machine.rapl(INTEL_SERVER)


def intel_server_with_h100(machine: Machine) -> None:
    machine.rapl(INTEL_SERVER)
    machine.nvidias(2)


def amd_server(machine: Machine) -> None:
    machine.rapl(AMD, limits=False)


def amd_server_with_mi300x(machine: Machine) -> None:
    machine.rapl(AMD, limits=False)
    machine.amds(2, MI300X)


def mi300a(machine: Machine) -> None:
    machine.rapl(AMD, limits=False)
    machine.amds(1, MI300A)


def grace_hopper(machine: Machine) -> None:
    """Firmware since October 2024: no module's meter."""
    (machine.root / "sys/class").mkdir(parents=True)
    for number, (part, power_w) in enumerate((("CPU", 70), ("SysIO", 30), ("Grace", 120))):
        info = f"{part} Power Socket 0"
        add_acpi_meter(machine.root / "sys/class/hwmon", number, info, power_w, old=False)
    machine.nvidias(1)


def grace_hopper_with_a_module(machine: Machine) -> None:
    grace_hopper(machine)
    root = machine.root / "sys/class/hwmon"
    add_acpi_meter(root, 3, "Module Power Socket 0", 400, old=False)


def cray_ex_with_mi250x(machine: Machine) -> None:
    """The blade's controller measures each card itself, which is two devices to its driver."""
    stems = ("", "cpu_", "memory_", "accel0_", "accel1_")
    files = {f"{stem}energy": "1000 J 1700000000000000 us" for stem in stems}
    static = {"raw_scan_hz": 10, "version": 2, "generation": 4, "freshness": 7}
    write_files(machine.root / "sys/cray/pm_counters", files | static)
    machine.rapl(AMD, limits=False)
    machine.amds(4, MI250X, V1_3)


def cray_ex_with_mi300x(machine: Machine) -> None:
    cray_ex_with_mi250x(machine)
    for number in (2, 3):
        (machine.root / f"sys/bus/pci/drivers/amdgpu/0000:{number + 3:02x}:00.0").unlink()


def intel_max(machine: Machine) -> None:
    machine.rapl(INTEL_SERVER)
    machine.intels(2)


def jetson(machine: Machine) -> None:
    make_jetson(machine.root / "sys/class/hwmon")


def laptop(machine: Machine) -> None:
    """Its GPU is the processor's, whose energy the package has."""
    machine.rapl(INTEL_CLIENT)
    machine.bind("i915", "0000:00:02.0", machine.root / "sys/devices/pci0000:00/0000:00:02.0")


def laptop_with_an_apu(machine: Machine) -> None:
    machine.rapl(AMD, limits=False)
    card = add_card(machine.root / "sys/class/drm", 0, 0x1681, {"power1_input": 9_000_000})
    (card / "gpu_metrics").write_bytes(struct.pack("<HBB", 136, 2, 3) + b"\xff" * 132)
    machine.bind("amdgpu", "0000:64:00.0", card)


def virtual_machine(machine: Machine) -> None:
    """Nothing: an estimate, which is said."""


def virtual_machine_with_a_gpu(machine: Machine) -> None:
    machine.nvidias(1)


RAPL = {"auto/package-0", "auto/package-1", "auto/dram-0", "auto/dram-1"}
METER = "auto/power_meter-"
#: the outermost channels, then those inside them
EXPECTED = {
    intel_server: (RAPL, set()),
    intel_server_with_h100: (RAPL | {"nvml/gpu-0", "nvml/gpu-1"}, set()),
    amd_server: ({"auto/package-0"}, set()),
    amd_server_with_mi300x: ({"auto/package-0", "amdgpu/gpu-0", "amdgpu/gpu-1"}, set()),
    mi300a: ({"amdgpu/gpu-0"}, {"auto/package-0"}),
    grace_hopper: (
        {f"{METER}Grace_Power_Socket_0", "nvml/gpu-0"},
        {f"{METER}CPU_Power_Socket_0", f"{METER}SysIO_Power_Socket_0"},
    ),
    grace_hopper_with_a_module: (
        {f"{METER}Module_Power_Socket_0"},
        {f"{METER}{part}_Power_Socket_0" for part in ("Grace", "CPU", "SysIO")} | {"nvml/gpu-0"},
    ),
    cray_ex_with_mi250x: (
        {"auto/node"},
        {"auto/cpu", "auto/memory", "auto/gpu-0.1-pair", "auto/gpu-2.3-pair"},
    ),
    cray_ex_with_mi300x: (
        {"auto/node"},
        {"auto/cpu", "auto/memory", "auto/gpu-0", "auto/gpu-1"},
    ),
    intel_max: (
        RAPL | {"hwmon/gpu-0", "hwmon/gpu-1"},
        {f"hwmon/gpu-{gpu}-gt{tile}" for gpu in (0, 1) for tile in (0, 1)},
    ),
    jetson: (
        {
            "auto/ina3221-VDD_GPU_SOC",
            "auto/ina3221-VDD_CPU_CV",
            "auto/ina3221-VIN_SYS_5V0",
            "auto/ina3221-VDDQ_VDD2_1V8AO",
        },
        set(),
    ),
    laptop: ({"auto/psys"}, {"auto/package-0", "auto/dram", "auto/core", "auto/uncore"}),
    laptop_with_an_apu: ({"auto/package-0"}, set()),
    virtual_machine: ({"auto/model"}, set()),
    virtual_machine_with_a_gpu: ({"auto/model", "nvml/gpu-0"}, set()),
}


@pytest.fixture
def machine(tmp_path: Path, gpus: Callable[..., None]) -> Machine:
    return Machine(tmp_path / "machine", gpus)


def text_of(machine: Machine, more: str = "") -> str:
    return f"  - {{type: auto, root: {machine.root}{more}}}\nperiod_s: 0.2\n"


@pytest.mark.parametrize("make", EXPECTED, ids=lambda make: make.__name__)
def test_each_machines_channels(make, machine, described):
    make(machine)
    outermost, inside = EXPECTED[make]
    channels = described(text_of(machine))
    assert {name for name, line in channels.items() if line["outermost"]} == outermost
    assert {name for name, line in channels.items() if not line["outermost"]} == inside


@pytest.mark.parametrize("make", [mi300a, grace_hopper, intel_max], ids=lambda make: make.__name__)
def test_a_node_is_charged_its_outermost_channels(make, machine, daemon):
    make(machine)
    outermost, inside = EXPECTED[make]
    with daemon(text_of(machine)) as running:
        books = running.books()
        assert books.keys() == outermost | inside
        low_uj, node_uj = sum(books[name] for name in outermost), running.node_uj()
        books = running.books()
        assert low_uj <= node_uj <= sum(books[name] for name in outermost)
