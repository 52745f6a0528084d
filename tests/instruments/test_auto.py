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
    Books,
    Counter,
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
        self.counters: dict[str, Counter | Accumulator] = {}  # by channel
        write_files(root, {"proc/stat": "cpu  1 2 3 4 5 0 0 0 0 0"})

    def rapl(self, zones: dict[str, tuple[str, int]], limits: bool = True) -> None:
        counters = Rapl(self.root / "sys", zones, WRAP_UJ, limits).counters
        names = {"intel-rapl:0": "package-0", "intel-rapl:1": "package-1"}
        names |= {"intel-rapl:0:0": "dram-0", "intel-rapl:1:0": "dram-1"}
        self.counters |= {f"auto/{names[zone]}": counters[zone] for zone in names if zone in zones}

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
            table = Accumulator(card / "gpu_metrics", layout, 5 << 16)
            self.counters[f"amdgpu/gpu-{number}"] = table
            self.bind("amdgpu", f"0000:{number + 3:02x}:00.0", card)

    def intels(self, count: int) -> None:
        """Max: two tiles each."""
        for number in range(count):
            address = f"0000:{number + 0x3A:02x}:00.0"
            for tile, name in enumerate(("i915", "i915_gt0", "i915_gt1")):
                root = self.root / "sys/class/hwmon"
                file = add_gpu(root, 10 * number + tile, address, name, {})
                channel = f"hwmon/gpu-{number}{name.removeprefix('i915').replace('_', '-')}"
                self.counters[channel] = Counter(file, 1 << 62, GPU_UJ)
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
    """The packages' energy is that of its GPUs, too."""
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


def cray_ex(machine: Machine) -> None:
    """The blade's controller measures each card itself."""
    stems = ("", "cpu_", "memory_", "accel0_", "accel1_")
    files = {f"{stem}energy": "1000 J 1700000000000000 us" for stem in stems}
    static = {"raw_scan_hz": 10, "version": 2, "generation": 4, "freshness": 7}
    write_files(machine.root / "sys/cray/pm_counters", files | static)
    machine.rapl(AMD, limits=False)


def cray_ex_with_mi250x(machine: Machine) -> None:
    """Each card is two devices to its driver, of which one has fallen off the bus."""
    cray_ex(machine)
    machine.amds(3, MI250X, V1_3)


def cray_ex_with_mi300x(machine: Machine) -> None:
    cray_ex(machine)
    machine.amds(2, MI300X)


def intel_max(machine: Machine) -> None:
    machine.rapl(INTEL_SERVER)
    machine.intels(2)


def jetson(machine: Machine) -> None:
    make_jetson(machine.root / "sys/class/hwmon")


def laptop(machine: Machine) -> None:
    """Its GPU is the processor's, whose energy the package has."""
    machine.rapl(INTEL_CLIENT)
    machine.bind("i915", "0000:00:02.0", machine.root / "sys/devices/pci0000:00/0000:00:02.0")


def workstation(machine: Machine) -> None:
    """Whether its psys holds the card, nobody says: packages, memory and card are added up."""
    machine.rapl(INTEL_CLIENT)
    machine.nvidias(1)


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
    mi300a: ({"auto/package-0"}, set()),
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
    workstation: (
        {"auto/package-0", "auto/dram", "nvml/gpu-0"},
        {"auto/core", "auto/uncore"},
    ),
    laptop_with_an_apu: ({"auto/package-0"}, set()),
    virtual_machine: ({"auto/model"}, set()),
    virtual_machine_with_a_gpu: ({"auto/model", "nvml/gpu-0"}, set()),
}


@pytest.fixture
def machine(tmp_path: Path, gpus: Callable[..., None]) -> Machine:
    return Machine(tmp_path / "machine", gpus)


def text_of(machine: Machine, more: str = "", beside: str = "") -> str:
    return f"  - {{type: auto, root: {machine.root}{more}}}\n{beside}period_s: 0.2\n"


def outer_and_inner(channels: dict[str, dict]) -> tuple[set[str], set[str]]:
    outermost = {name for name, line in channels.items() if line["outermost"]}
    return outermost, channels.keys() - outermost


@pytest.mark.parametrize("make", EXPECTED, ids=lambda make: make.__name__)
def test_each_machines_channels(make, machine, described):
    make(machine)
    assert outer_and_inner(described(text_of(machine))) == EXPECTED[make]


@pytest.mark.parametrize(
    ("make", "more", "beside"),
    [
        (intel_server_with_h100, ", gpus: false", ""),
        (
            intel_server_with_h100,
            "",
            "  - {type: exec, name: dcgm, command: 'true', domain: gpu}\n",
        ),
        (amd_server_with_mi300x, "", "  - {type: hwmon, name: cards, root: ROOT/sys/class/drm}\n"),
        (grace_hopper_with_a_module, ", idle_w: 300", ""),
        (virtual_machine_with_a_gpu, ", idle_w: 300, full_w: 1500", ""),
    ],
)
def test_gpus_that_the_site_speaks_for_are_not_taken(make, more, beside, machine, described):
    """By a word, an instrument of its own, or what the whole node draws."""
    make(machine)
    write_files(machine.root, {"sys/class/drm/hwmon0/name": "amdgpu"})
    write_files(machine.root, {"sys/class/drm/hwmon0/power1_average": 5_000_000})
    channels = described(text_of(machine, more, beside.replace("ROOT", str(machine.root))))
    assert not any(name.startswith(("nvml/", "amdgpu/")) for name in channels)


def test_psys_holds_the_gpus_where_the_site_says_so(machine, described):
    workstation(machine)
    outermost, inside = outer_and_inner(described(text_of(machine, ", psys: true")))
    assert outermost == {"auto/psys"} and "nvml/gpu-0" in inside


def test_a_probe_says_what_is_taken_and_why_nothing_else(machine, probe):
    intel_server_with_h100(machine)
    errors = probe(text_of(machine)).errors.splitlines()
    said = [line for line in errors if line.startswith("auto: ")]
    no_cray = f"auto: pm_counters: {machine.root}/sys/cray/pm_counters: has no energy or power; "
    assert said[0].startswith(no_cray)
    assert said[1:] == [
        "auto: powercap: taken",
        "auto: hwmon: not tried: another one is taken",
        "auto: model: not tried: another one is taken",
        "auto: nvml: taken, beside powercap",
        "auto: amdgpu: no card that the driver amdgpu has",
        "auto: hwmon: no card that the driver xe has",
        "auto: hwmon: no card that the driver i915 has",
    ]
    errors = probe(text_of(machine, ", gpus: false")).errors
    assert "auto: nvml: `gpus: false`\n" in errors


def test_gpus_that_cannot_be_read_are_a_warning(machine, daemon, monkeypatch):
    """As in a container without the driver's library."""
    intel_server_with_h100(machine)
    monkeypatch.setenv("LD_LIBRARY_PATH", "")
    with daemon(text_of(machine)) as running:
        assert running.books().keys() == RAPL
        assert "takes no GPUs of this node, `gpus: false` says so" in running.log_file.read_text()


@pytest.mark.parametrize(
    "make", [intel_max, amd_server_with_mi300x], ids=lambda make: make.__name__
)
def test_a_node_is_charged_its_outermost_channels(make, machine, daemon):
    make(machine)
    outermost, inside = EXPECTED[make]
    counters = {name: machine.counters[name] for name in outermost | inside}
    with daemon(text_of(machine)) as running:
        books = Books(running, counters)
        for step, counter in enumerate(counters.values()):
            counter.advance(5_000_001 + 15_625 * step)
        books.check()
        totals = running.books()
        assert running.node_uj() == sum(totals[name] for name in outermost)
