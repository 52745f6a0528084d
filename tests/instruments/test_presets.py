"""Each preset of presets.yaml reads its own meter's objects and registers, which are written down
here once more, after the same documents: a slip of either is seen."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.cluster import CHECKOUT
from tests.peers.agent import COMMUNITY, Agent
from tests.peers.modbus import HOLDING, INPUT, Meter
from tests.peers.secret import secret

PRESETS = yaml.safe_load((CHECKOUT / "slurm-plugins/instruments/presets.yaml").read_text())
WH, KWH = 3600.0, 3.6e6

ENTERPRISES = ".1.3.6.1.4.1"
#: outlet 7: the object below its enterprise, and what a step of it is, of power and of energy
OUTLETS = {
    "apc": ("318.1.1.26.9.4.3.1.7.7", 1, "318.1.1.26.9.4.3.1.11.7", KWH / 10),
    "cyberpower": ("3808.1.1.6.6.2.4.1.7.7", 1, "3808.1.1.6.6.2.4.1.11.7", KWH / 10),
    "eaton-g3": ("534.6.6.7.6.5.1.3.0.7", 1, "534.6.6.7.6.5.1.4.0.7", WH),
    "enlogic": ("38446.1.5.9.1.6.1.7", 1, "38446.1.5.9.1.11.1.7", KWH / 10),
    "gude-epc8045": ("28507.87.1.5.5.2.1.4.7", 1, "28507.87.1.5.5.2.1.3.7", WH),
    "gude-epc8226": ("28507.58.1.5.5.2.1.4.7", 1, "28507.58.1.5.5.2.1.3.7", WH),
    "hpe-g2": ("232.165.7.5.1.1.14.0.7", 1, "232.165.7.5.1.1.15.0.7", WH),
    "ibm": ("2.6.223.8.2.2.1.13.7", 1, None, None),
    "ibm-2": ("2.6.223.8.2.2.1.15.7", 1, None, None),
    "liebert-mph": (
        "476.1.42.3.8.50.20.1.65.1.1.7",
        1,
        "476.1.42.3.8.50.20.1.85.1.1.7",
        KWH / 10,
    ),
    "panduit-g5": ("19536.10.1.5.1.1.13.1.7", 1, "19536.10.1.5.1.1.14.1.7", WH),
    "raritan": ("13742.6.5.4.3.1.4.1.7.5", 1, "13742.6.5.4.3.1.4.1.7.8", WH),
    "raritan-px1": ("13742.4.1.2.2.1.7.7", 1, "13742.4.1.2.2.1.31.7", WH),
    "schleifenbauer": ("31034.12.1.1.2.7.2.1.11.1.7", 1, "31034.12.1.1.2.7.2.1.2.1.7", KWH),
    "servertech-sentry3": ("1718.3.2.3.1.14.1.1.7", 1, "1718.3.2.3.1.18.1.1.7", WH),
    "servertech-sentry4": ("1718.4.1.8.3.1.7.1.1.7", 1, "1718.4.1.8.3.1.14.1.1.7", WH),
    "vertiv-geist": ("21239.5.2.3.6.1.12.7", 1, "21239.5.2.3.6.1.15.7", WH),
}

BIG, LITTLE = False, True
#: function, then register, form of struct and step of power and of energy, and whether the low
#: word comes first
METERS = {
    "abb-b2x": (HOLDING, (0x5B14, "i", 0.01), (0x5000, "Q", KWH / 100), BIG),
    "accuenergy-acuvim2": (HOLDING, (0x4022, "f", 1), (0x4048, "I", KWH / 10), BIG),
    "carlo-gavazzi-em112": (INPUT, (0x04, "i", 0.1), (0x10, "i", KWH / 10), LITTLE),
    "carlo-gavazzi-em340": (INPUT, (0x28, "i", 0.1), (0x34, "i", KWH / 10), LITTLE),
    "eastron-sdm120": (INPUT, (0x0C, "f", 1), (0x48, "f", KWH), BIG),
    "eastron-sdm630": (INPUT, (0x34, "f", 1), (0x48, "f", KWH), BIG),
    "eltako-dsz15": (INPUT, (0x34, "i", 1), (0x48, "I", KWH / 100), BIG),
    "finder-7m38": (INPUT, (32536 - 30000, "f", 1), None, BIG),
    "inepro-pro380": (HOLDING, (0x5012, "f", 1000), (0x600C, "f", KWH), BIG),
    "janitza-umg": (HOLDING, (19026, "f", 1), (19068, "f", WH), BIG),
    "lovato-dmg610": (INPUT, (0x3A - 1, "i", 0.01), None, BIG),
    "lumel-p43": (HOLDING, (7000 + 2 * 29, "f", 1), (4048, "I", KWH / 10), BIG),
    "saia-ale3": (HOLDING, (51 - 1, "H", 10), (28 - 1, "I", KWH / 100), BIG),
    "schneider-iem3155": (HOLDING, (3060 - 1, "f", 1000), (3204 - 1, "q", WH), BIG),
    "schneider-pm2000": (HOLDING, (3060 - 1, "f", 1000), (3204 - 1, "q", WH), BIG),
    "schneider-pm3200": (HOLDING, (3060 - 1, "f", 1000), (0x0C83, "q", WH), BIG),
    "schneider-pm5000": (HOLDING, (3060 - 1, "f", 1000), (3204 - 1, "q", WH), BIG),
    "siemens-pac": (HOLDING, (65, "f", 1), (801, "d", WH), BIG),
    "socomec-countis": (HOLDING, (0xC568, "i", 10), (0xC652, "I", KWH), BIG),
    "socomec-diris-a10": (HOLDING, (0xC568, "i", 10), (0xC65C, "I", KWH), BIG),
    "wago-879": (HOLDING, (0x5012, "f", 1000), (0x600C, "f", KWH), BIG),
}
WITHOUT_REGISTER = {"lumel-p12p"}


def test_each_preset_names_its_meters_and_its_document():
    known = {(kind, name): one for kind, of in PRESETS.items() for name, one in of.items()}
    assert len(known) >= 20
    for place, one in known.items():
        assert one["device"] and one["source"] and ("power" in one or "energy" in one), place
    assert PRESETS["snmp"].keys() == OUTLETS.keys()
    assert PRESETS["modbus"].keys() == METERS.keys() | WITHOUT_REGISTER


def channels_of(name: str, energy: bool, more: str = "") -> str:
    both = [f"{{name: {name}-power{more}}}"]
    if energy:
        both.append(f"{{name: {name}-energy, quantity: energy{more}}}")
    return ", ".join(both)


def values(done) -> dict[str, float]:
    return {reading["channel"]: reading["value"] for reading in done.readings}


def test_each_pdus_preset_reads_its_outlet(tmp_path, probe):
    objects, expected, entries = {}, {}, ""
    host, community = "{host}", secret(tmp_path / "community", COMMUNITY)
    for number, (name, (power, watts, energy, joules)) in enumerate(OUTLETS.items()):
        objects[f"{ENTERPRISES}.{power}"] = ("gauge", 100 + number)
        expected[f"{name}-power"] = (100 + number) * watts
        if energy:
            objects[f"{ENTERPRISES}.{energy}"] = ("gauge", 1000 + number)
            expected[f"{name}-energy"] = (1000 + number) * joules
        keys = f"type: snmp, host: '{host}', community_file: {community}, timeout_s: 5"
        channels = channels_of(name, bool(energy), ", outlet: 7")
        entries += f"  - {{name: {name}, {keys}, preset: {name}, channels: [{channels}]}}\n"
    trees = sorted({".".join(oid.split(".")[:8]) for oid in objects})
    with Agent(tmp_path / "pdu", trees) as agent:
        agent.set(objects)
        done = probe(entries.replace(host, agent.host))
    assert done.status == 0, done.errors + str(done.faults())
    assert values(done) == expected


def put(meter: Meter, place: tuple, raw: float, function: int, little: bool, slave: int) -> float:
    """What a step makes of it."""
    register, form, step = place
    packed = struct.pack(f">{form}", raw)
    words = [int.from_bytes(packed[at : at + 2], "big") for at in range(0, len(packed), 2)]
    for offset, word in enumerate(reversed(words) if little else words):
        meter.set(register + offset, ">H", word, function, slave)
    return raw * step


@pytest.fixture
def meter(tmp_path: Path) -> Iterator[Meter]:
    pytest.importorskip("pymodbus", reason="pymodbus is not installed: no Modbus server to read")
    with Meter(tmp_path) as running:
        yield running


def test_each_meters_preset_reads_its_registers(meter, probe):
    expected, entries = {}, ""
    for number, (name, (function, power, energy, little)) in enumerate(METERS.items(), 1):
        expected[f"{name}-power"] = put(meter, power, 70 + number, function, little, number)
        if energy:
            raw = 70000 + number  # both words
            expected[f"{name}-energy"] = put(meter, energy, raw, function, little, number)
        keys = f"type: modbus, host: '{meter.host}', slave: {number}, timeout_s: 5"
        channels = channels_of(name, bool(energy))
        entries += f"  - {{name: {name}, {keys}, preset: {name}, channels: [{channels}]}}\n"
    done = probe(entries)
    assert done.status == 0, done.errors + str(done.faults())
    assert values(done) == pytest.approx(expected, rel=1e-9)


# -- what the configuration says goes before -----------------------------------------------------


def test_a_key_that_is_given_goes_before_the_presets(meter, probe):
    meter.set(10, ">f", 2.5)
    keys = f"host: '{meter.host}', preset: wago-879, register: 10"
    channels = "{name: plain}, {name: scaled, scale: 1}"
    done = probe(f"  - {{name: m, type: modbus, {keys}, channels: [{channels}]}}\n")
    assert values(done) == {"plain": 2500, "scaled": 2.5}


def test_a_preset_brings_its_makers_error(described):
    entry = "  - {{name: m{n}, type: modbus, host: h, preset: {preset}{more}}}\n"
    text = entry.format(n=1, preset="lumel-p43", more="")
    text += entry.format(n=2, preset="saia-ale3", more=", error: {relative: 0.02}")
    text += entry.format(n=3, preset="siemens-pac", more="")
    errors = [channel["error"] for channel in described(text).values()]
    assert [(error["relative"], error["jitter_s"]) for error in errors] == [
        (0.005, 0.33),
        (0.02, 10),
        (0.01, 1),
    ]


@pytest.mark.parametrize(
    ("preset", "complaint"),
    [
        ("simens-pac", "did you mean 'siemens-pac'?"),
        ("voltcraft", "presets.yaml, which has abb-b2x, accuenergy-acuvim2,"),
        ("'a b'", "letters, digits"),
    ],
)
def test_a_preset_that_is_none_is_named(probe, preset, complaint):
    done = probe(f"  - {{type: modbus, host: h, preset: {preset}}}\n")
    assert done.status == os.EX_CONFIG and complaint in done.said
    assert "instruments[0].preset" in done.said


def test_a_quantity_that_a_preset_lacks_is_named(tmp_path, probe):
    community = secret(tmp_path / "community", COMMUNITY)
    keys = f"host: h, community_file: {community}, preset: ibm"
    channel = "{outlet: 1, quantity: energy}"
    done = probe(f"  - {{type: snmp, {keys}, channels: [{channel}]}}\n")
    assert "key 'oid': is needed where no 'preset' has it for this quantity" in done.faults()[0]


def modules_of(joulemarkd: Path) -> Path:
    """Of a build's daemon, or of an installed one."""
    beside = joulemarkd.resolve().parent / "instruments"
    return beside if beside.is_dir() else joulemarkd.resolve().parents[1] / "lib" / "joulemark"


def test_a_sick_file_of_presets_is_named_with_its_line(tmp_path, probe, monkeypatch, joulemarkd):
    folder = tmp_path / "modules"
    folder.mkdir()
    for module in modules_of(joulemarkd).glob("*.so"):
        (folder / module.name).symlink_to(module)
    presets = folder / "presets.yaml"
    presets.write_text("modbus:\n  mine:\n    power: {register: 70000, scael: 2}\n")
    monkeypatch.setenv("JOULEMARK_INSTRUMENTS", str(folder))
    done = probe("  - {type: modbus, host: h, preset: mine}\n")
    assert f"{presets}:3: key 'power.register': must be a whole number" in done.said
    assert f"{presets}:3: key 'power.scael': is not known" in done.said
    presets.unlink()
    gone = probe("  - {type: modbus, host: h, preset: mine}\n")
    assert f"{presets} cannot be read: No such file" in gone.said
