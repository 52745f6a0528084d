"""`hwmon` on folders of real machines: Jetson boards, ACPI meters, PMBus supplies, energy."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import wait_for
from tests.peers.joulemarkd import Daemon
from tests.peers.machines import (
    Books,
    Counter,
    add_acpi_meter,
    add_device,
    add_gpu,
    make_jetson,
)


def wait_watts(daemon: Daemon, power_w: float) -> None:
    """The node's mean over its last interval; the first one is not whole."""
    wait_for(
        lambda: float(daemon.ask("node")["watts"]) == pytest.approx(power_w, abs=1),
        what=f"the node to draw {power_w:g} W, not {daemon.ask('node')['watts']} W",
    )


def text_of(root: Path, more: str = "") -> str:
    return f"  - {{type: hwmon, name: board, root: {root}, period_s: 0.1{more}}}\nperiod_s: 0.1\n"


def test_a_jetsons_rails_are_volts_times_amperes(tmp_path, probe):
    make_jetson(tmp_path / "hwmon")
    run = probe(text_of(tmp_path / "hwmon"))
    assert run.status == 0, run.errors
    assert {(r["channel"], r["domain"], r["value"]) for r in run.readings} == {
        ("ina3221-VDD_GPU_SOC", "gpu", 6.0),
        ("ina3221-VDD_CPU_CV", "cpu", 3.0),
        ("ina3221-VIN_SYS_5V0", "rest", 2.5),
        ("ina3221-VDDQ_VDD2_1V8AO", "rest", 0.6),
    }


def test_readings_follow_the_sensor(tmp_path, watch):
    chip = make_jetson(tmp_path / "hwmon")
    with watch(text_of(tmp_path / "hwmon")) as seen:
        for milliamperes in (310, 320, 45):
            (chip / "curr2_input").write_text(f"{milliamperes}\n")
            seen.wait_value(milliamperes / 50, "ina3221-VDD_CPU_CV")


def test_the_acpi_meter_is_the_node(tmp_path, probe, daemon):
    """Its average holds all else: the processor's energy beside it is a part, not more."""
    root = tmp_path / "hwmon"
    meter = {
        "power1_average": 213000000,
        "power1_average_interval": 1000,
        "power1_accuracy": "95.0%",
        "power1_is_battery": 0,
    }
    add_device(root, 3, "power_meter", meter)
    add_device(root, 4, "amd_energy", {"energy1_label": "Esocket0"})
    counter = Counter(root / "hwmon4" / "energy1_input", 2**62, 5_000_000)
    assert probe(text_of(root)).values("power_meter-power1") == [213]
    with daemon(text_of(root)) as running:
        wait_watts(running, 213)

        def has_energy() -> bool:
            """All 500 J, by 10 a look: at once they are no power to readings 8 ms apart."""
            if counter.total_uj < 500_000_000:
                counter.advance(10_000_000)
            return running.books()["board/amd_energy-Esocket0"] >= 500_000_000

        wait_for(has_energy, what="the processor's energy in the books")
        before_uj = running.books()["board/power_meter-power1"]
        node_uj = running.node_uj()
        assert before_uj <= node_uj <= running.books()["board/power_meter-power1"]


@pytest.mark.parametrize("old", [True, False], ids=["old", "new"])
def test_grace_hoppers_meters_lie_in_each_other(tmp_path, probe, daemon, old):
    """Four a module: it draws what the widest shows, not their sum; the kernel's order is any."""
    root, watts = tmp_path / "hwmon", {}
    for socket in (0, 1):
        for part, power_w in (("SysIO", 30), ("CPU", 70), ("Grace", 120), ("Module", 400)):
            info = f"{part} Power Socket {socket}"
            watts[f"power_meter-{info.replace(' ', '_')}"] = power_w + socket
            add_acpi_meter(root, len(watts), info, power_w + socket, old=old)
    run = probe(text_of(root))
    assert run.status == 0, run.errors
    assert {reading["channel"]: reading["value"] for reading in run.readings} == watts
    domains = {reading["channel"]: reading["domain"] for reading in run.readings}
    assert {name for name, domain in domains.items() if domain == "node"} == {
        "power_meter-Module_Power_Socket_0",
        "power_meter-Module_Power_Socket_1",
    }
    assert set(domains.values()) == {"node", "cpu"}
    with daemon(text_of(root)) as running:
        wait_watts(running, 801)


def test_a_module_is_no_part_of_another_sockets_nor_more_than_the_supplies(
    tmp_path, probe, daemon
):
    """One socket without its module's meter beside one with: both count; inputs hold them all."""
    root = tmp_path / "hwmon"
    parts = (("Module", 0, 400), ("Grace", 0, 120), ("Grace", 1, 110), ("CPU", 1, 70))
    for number, (part, socket, power_w) in enumerate(parts, 2):
        add_acpi_meter(root, number, f"{part} Power Socket {socket}", power_w, old=True)
    with daemon(text_of(root)) as running:
        wait_watts(running, 510)
    make_supplies(root)
    with daemon(text_of(root)) as running:
        wait_watts(running, 805)


@pytest.mark.parametrize("dead_uw", [0, 4294967295000])
def test_an_acpi_meter_that_measures_nothing_hides_nothing(tmp_path, probe, dead_uw):
    """Of a BMC that does not answer, or in a virtual machine."""
    root = tmp_path / "hwmon"
    add_device(root, 9, "power_meter", {"power1_average": dead_uw})
    make_supplies(root)
    run = probe(text_of(root))
    assert run.status == 0 and "hwmon9/power1_average: an ACPI meter that" in run.errors
    assert {r["channel"] for r in run.readings if r["domain"] == "node"} == {
        "pfe1100-pin-0",
        "pfe1100-pin-1",
    }


def test_a_grace_without_a_module_counts_its_sockets(tmp_path, described, daemon):
    """The superchip of two Graces; 100 % is no accuracy to believe, 50 ms is known."""
    root = tmp_path / "hwmon"
    for number, (part, power_w) in enumerate((("CPU", 150), ("SysIO", 40), ("Grace", 250))):
        for socket in (0, 1):
            info = f"{part} Power Socket {socket}"
            add_acpi_meter(root, 2 * number + socket, info, power_w, old=True)
    channels = described(text_of(root))
    assert len(channels) == 6
    assert {name for name, line in channels.items() if line["outermost"]} == {
        "board/power_meter-Grace_Power_Socket_0",
        "board/power_meter-Grace_Power_Socket_1",
    }
    assert {
        (line["error"]["relative"], line["error"]["jitter_s"]) for line in channels.values()
    } == {(0.05, 0.05)}
    with daemon(text_of(root)) as running:
        wait_watts(running, 500)


def make_supplies(root: Path) -> None:
    """Two power supplies on PMBus, as bel-pfe shows them: input, and output of two rails."""
    for number, pin_uw in ((0, 410000000), (1, 395000000)):
        files = {
            "power1_label": "pin",
            "power1_input": pin_uw,
            "power2_label": "pout1",
            "power2_input": pin_uw - 30000000,
            "power3_label": "pout2",
            "power3_input": 5000000,
            "in1_label": "vin",
            "in1_input": 230000,
            "curr1_label": "iin",
            "curr1_input": 1780,
        }
        add_device(root, number, "pfe1100", files)


def test_supplies_count_their_input_once(tmp_path, probe, daemon):
    root = tmp_path / "hwmon"
    make_supplies(root)
    add_device(root, 2, "xdpe12284", {"power1_label": "pin", "power1_input": 60000000})
    run = probe(text_of(root))
    assert {(r["channel"], r["domain"]) for r in run.readings} == {
        ("pfe1100-pin-0", "node"),
        ("pfe1100-pin-1", "node"),
        ("xdpe12284-pin", "rest"),
        ("pfe1100-pout1-0", "rest"),
        ("pfe1100-pout1-1", "rest"),
        ("pfe1100-pout2-0", "rest"),
        ("pfe1100-pout2-1", "rest"),
    }
    with daemon(text_of(root)) as running:
        wait_watts(running, 805)


def test_energy_is_charged_exactly(tmp_path, daemon):
    root = tmp_path / "hwmon"
    add_device(root, 0, "xe", {"energy1_label": "card", "energy2_label": "pkg"})
    counters = {
        "board/gpu-0": Counter(root / "hwmon0" / "energy1_input", 2**62, 7_000_000),
        "board/gpu-0-pkg": Counter(root / "hwmon0" / "energy2_input", 2**62, 3_000_000),
    }
    with daemon(text_of(root)) as running:
        books = Books(running, counters)
        for counter in counters.values():
            counter.advance(12_345_678)
        books.check()


def test_tiles_of_intels_gpus_lie_in_their_cards(tmp_path, daemon):
    """Two Max 1550, each with two; the kernel's order is any, Slurm's that of PCI."""
    root, counters = tmp_path / "hwmon", {}
    number = 0
    for gpu, address in ((1, "0000:9a:00.0"), (0, "0000:3a:00.0")):
        for part in ("-gt1", "-gt0", ""):
            name = f"i915{part.replace('-', '_')}"
            file = add_gpu(root, number, address, name, {})
            counters[f"board/gpu-{gpu}{part}"] = Counter(file, 2**62, (5 - number) * 1_000_000)
            number += 1
    with daemon(text_of(root)) as running:
        books = Books(running, counters)
        for step, counter in enumerate(counters.values()):
            counter.advance(7_000_001 + step)
        books.check()
        of_cards = sum(running.books()[f"board/gpu-{gpu}"] for gpu in (0, 1))
        assert running.node_uj() == of_cards


def test_a_gpu_is_that_of_its_pci_address(tmp_path, probe):
    """With a card of another maker between them; a lone sensor's number is not the GPU's."""
    root = tmp_path / "hwmon"
    for number, address, driver, uj in (
        (7, "0000:c1:00.0", "xe", 3_000_000),
        (3, "0000:0b:00.0", "i915", 1_000_000),
    ):
        add_gpu(root, number, address, driver, {"energy1_input": uj, "energy1_label": "card"})
    ppt = {"power1_label": "PPT", "power1_average": 2_000_000}
    add_gpu(root, 5, "0000:43:00.0", "amdgpu", ppt)
    found = probe(text_of(root)).readings
    assert {(r["channel"], r["value"], r["domain"]) for r in found} == {
        ("gpu-0", 1, "gpu"),
        ("gpu-1", 2, "gpu"),
        ("gpu-2", 3, "gpu"),
    }


def test_a_device_can_be_left_out(tmp_path, probe):
    make_supplies(tmp_path / "hwmon")
    gpu = {"power1_label": "PPT", "power1_average": 31000000}
    add_device(tmp_path / "hwmon", 5, "amdgpu", gpu)
    names = {r["channel"] for r in probe(text_of(tmp_path / "hwmon")).readings}
    assert "gpu-0" in names
    run = probe(text_of(tmp_path / "hwmon", ", skip: amdgpu pfe3000"))
    assert {r["channel"] for r in run.readings} == names - {"gpu-0"}


def test_garbage_is_a_fault_of_its_channel(tmp_path, probe):
    make_supplies(tmp_path / "hwmon")
    (tmp_path / "hwmon" / "hwmon0" / "power2_input").write_text("garbage\n")
    run = probe(text_of(tmp_path / "hwmon"))
    assert run.status == 1
    (fault,) = run.faults()
    assert "power2_input: must hold a whole number, holds 'garbage'" in fault
    assert len(run.values()) == 5
