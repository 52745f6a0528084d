"""`exec`: the log of PRACE-1IP D9.3.3, 4.1.6, and scripts of a site, well and sick."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from joulemark.accounting import noderecord

from tests.cluster import wait_for
from tests.cluster.processes import start_ticks
from tests.peers.joulemarkd import connect, tell

UIO_LOG = Path(__file__).resolve().parents[2] / "slurm-plugins/tests/fixtures/uio.log"
UIO = [
    (1361975825, 3057),
    (1361975835, 3179),
    (1361975847, 4063),
    (1361975858, 5037),
    (1361975868, 5057),
    (1361975880, 5059),
]


def text_of(command: str | Path, more: str = "") -> str:
    return f"  - {{type: exec, name: site, command: '{command}', period_s: 0.2{more}}}\n"


def script(folder: Path, text: str) -> Path:
    path = folder / "read-power"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_the_log_of_uio_is_taken_as_is(probe):
    """The seed's six lines, with their own times and to the watt."""
    run = probe(text_of(f"cat {UIO_LOG}; exec sleep 600"), 6)
    assert run.status == 0, run.errors + str(run.faults())
    assert [(reading["time"], reading["value"]) for reading in run.readings] == UIO
    kinds = {(r["method"], r["domain"], r["unit"]) for r in run.readings}
    assert kinds == {("integrated", "node", "W")}


def test_a_meter_that_never_answers_has_told_no_zero(tmp_path, daemon):
    """A job's 0 J +- 0 J looked measured; what could not be opened was in the log alone."""
    gone = f"  - {{type: hwmon, name: gone, root: {tmp_path}/none}}\n"
    (tmp_path / "records").mkdir()
    with daemon(text_of("exec sleep 600") + gone) as running:
        with connect(running.socket) as link:
            tell(link, f"open job=1 step=0 uid={os.geteuid()} job_cpus=1")
            time.sleep(1.1)
            told = tell(link, "read scope=step")
            assert (told["known"], told["energy_uj"]) == ("0", "0")
            # and what this process lived before its account was opened
            assert float(told["gap_s"]) >= float(told["seconds"]) - 0.001
            tell(link, "region_begin name=kernel")
            with pytest.raises(OSError, match=r"has%20shown%20a%20value"):
                tell(link, "region_end name=kernel")
            assert tell(link, "job_energy")["known"] == "0"
            tell(link, "close")
        status = running.ask("status")
        assert (status["left_out"], status["unread"]) == ("gone", "site/exec")
        assert status["meters"] == "site/node/integrated*1"
        running.ask("end job=1")
        path = tmp_path / "records" / "test.1.n1.json"
        wait_for(path.exists, 10, "the record")
    record = json.loads(path.read_text())
    assert noderecord.check(record) == []
    assert record["missing"] is None
    assert {one["energy_uj"] for one in record["accounts"]} == {None}, record["accounts"]
    assert record["instruments"][-1]["faults"][0]["what"] == "left out"


def test_a_meter_that_died_before_the_job_has_told_no_zero(daemon):
    with daemon(text_of("echo 200; echo 200; exec sleep 600")) as running:
        wait_for(lambda: running.ask("status")["unread"] == "", 10, "a value")
        time.sleep(1.5)  # its last power is held for a second
        with connect(running.socket) as link:
            tell(link, f"open job=1 step=0 uid={os.geteuid()} job_cpus=1")
            time.sleep(0.5)
            told = tell(link, "read scope=step")
    assert (told["known"], told["energy_uj"]) == ("0", "0")


@pytest.mark.parametrize("follow", ["-f", "---disable-inotify -f"], ids=["told", "polling"])
def test_a_log_that_grows_is_followed(tmp_path, watch, follow):
    """On an overlay file system, so in a container, tail polls: it is silent for seconds."""
    log = tmp_path / "power.log"
    lines = UIO_LOG.read_text().splitlines(keepends=True)
    log.write_text(lines[0])
    with watch(text_of(f"exec tail -n +1 {follow} {log}")) as seen:
        for count, line in enumerate(lines[1:], start=2):
            with log.open("a") as stream:
                stream.write(line)
            wait_for(
                lambda wanted=UIO[:count]: (
                    [(r["time"], r["value"]) for r in seen.readings] == wanted
                ),
                what=f"{count} lines",
            )


def test_a_call_is_a_reading(tmp_path, probe):
    path = script(tmp_path, f"echo x >> {tmp_path}/calls; wc -l < {tmp_path}/calls")
    run = probe(text_of(path, ", every: call, domain: gpu, timeout_s: 10"), 3)
    assert run.status == 0, run.errors + str(run.faults())
    assert run.values() == [1, 2, 3]
    assert {reading["domain"] for reading in run.readings} == {"gpu"}


def test_a_sick_script_is_named(tmp_path, probe):
    sick = {
        "exit 3": "ended with exit status 3",
        "echo garbage; sleep 600": "garbage: 'garbage'",
        "echo 5 nan; sleep 600": "is not a number: 'nan'",
        "echo -- -7; sleep 600": "negative: -7 W",
        "sleep 600": "printed nothing for silence_s of 0.6 s and was killed",
        "kill -SEGV $$": "ended with exit status 139",
    }
    for text, part in sick.items():
        path = script(tmp_path, text.replace("echo --", "printf '%s\\n'"))
        run = probe(text_of(path, ", silence_s: 0.6" if "silence_s" in part else ""))
        assert run.status == 1
        assert any(part in fault for fault in run.faults()), (text, run.faults())


def test_nothing_is_left_behind(tmp_path, watch):
    """The script's own children end with the daemon, also when that is killed."""
    pids = tmp_path / "pids"
    path = script(tmp_path, f"echo $$ >> {pids}; while echo 5; do sleep 0.05; done")
    for number in (signal.SIGTERM, signal.SIGKILL):
        pids.unlink(missing_ok=True)
        with watch(text_of(path)) as seen:
            seen.wait_value()
            pid = int(pids.read_text().split()[0])
            os.kill(seen.process.pid, number)
            wait_for(lambda pid=pid: start_ticks(pid) is None, what=f"process {pid} to end")


def test_the_script_has_none_of_the_daemons_capabilities(tmp_path, joulemarkd, watch):
    """Ambient capabilities are the daemon's to read sensors with, not the script's."""
    mine = ["setpriv", "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    if subprocess.run([*mine, "true"], capture_output=True).returncode != 0:
        pytest.skip("CAP_DAC_READ_SEARCH cannot be given here")
    daemon = tmp_path / "joulemarkd-with-capabilities"
    daemon.write_text(f'#!/bin/sh\nexec {" ".join(mine)} {joulemarkd} "$@"\n')
    daemon.chmod(0o755)
    path = script(tmp_path, "echo $((0x$(sed -n 's/^CapAmb:\\s*//p' /proc/self/status)))")
    with watch(text_of(path), program=daemon) as seen:
        seen.wait_value()
        ours = Path(f"/proc/{seen.process.pid}/status").read_text()
        assert int(ours.partition("CapAmb:")[2].split()[0], 16) != 0
        assert set(seen.values()) == {0}


# -- scripts that tell of several channels -------------------------------------------------------

BLADE = """, channels: [{name: blade, quantity: energy, wrap: 1000}, \
{name: cpus, domain: cpu, inside: blade}, {name: gpu-0, domain: gpu, quantity: energy}]"""


def test_named_lines_are_each_their_channels(tmp_path, probe, described):
    """As a script around hdeemcli or dcgmi would print them."""
    now = time.time()
    lines = (f"blade J 990.5 {now:.3f}", "cpus W 210.25", "# a comment", "gpu-0 J 77", "cpus W 9")
    path = script(tmp_path, "\n".join(f"echo '{line}'" for line in lines))
    run = probe(text_of(path, ", every: call" + BLADE))
    assert run.status == 0, run.faults()
    found = {(r["channel"], r["value"], r["unit"], r["domain"]) for r in run.readings}
    assert found == {
        ("blade", 990.5, "J", "node"),
        ("cpus", 9.0, "W", "cpu"),  # a call's last line of a channel
        ("gpu-0", 77.0, "J", "gpu"),
    }
    shown = described(text_of(path, BLADE))
    assert [name for name, one in shown.items() if one["outermost"]] == [
        "site/blade",
        "site/gpu-0",
    ]
    assert shown["site/blade"]["wrap_uj"] == 999_999_999


def test_the_daemon_tells_what_measures_the_node(tmp_path, daemon):
    """As many of a kind as there are: the doctor compares nodes by it."""
    more = BLADE.replace(
        "{name: gpu-0,", "{name: gpu-1, domain: gpu, quantity: energy}, {name: gpu-0,"
    )
    with daemon(text_of("exec sleep 600", more)) as running:
        meters = running.ask("status")["meters"]
    words = meters.split("%20")
    assert words == ["site/node/counter*1", "site/cpu/integrated*1", "site/gpu/counter*2"]


def test_a_stream_of_named_lines_is_followed(tmp_path, watch):
    path = script(
        tmp_path, "i=0; while sleep 0.1; do i=$((i+1)); echo cpus W $i; echo gpu-0 J $i; done"
    )
    with watch(text_of(path, BLADE)) as seen:
        seen.wait_value(3, "cpus")
        seen.wait_value(3, "gpu-0")
        assert seen.faults() == []


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("psu W 5", "'psu' is none of 'channels'"),
        ("blade W 5", "channel 'blade' has J, not 'W'; correct its 'quantity'"),
        ("5", "must be 'CHANNEL J|W value [time]', begins '5'"),
        ("blade kWh 5", "must be 'CHANNEL J|W value [time]', begins 'blade kWh'"),
        ("cpus W 5", "printed no line of blade"),
    ],
)
def test_a_sick_named_line_is_named(tmp_path, probe, line, complaint):
    path = script(tmp_path, f"echo {line}")
    run = probe(text_of(path, ", every: call" + BLADE))
    assert run.status == 1 and any(complaint in fault for fault in run.faults()), run.faults()


@pytest.mark.parametrize("bad", ["psu W 5", "blade J x", "cpus kW 5"])
@pytest.mark.parametrize("first", [True, False])
def test_a_sick_line_costs_no_other_channel(tmp_path, probe, bad, first):
    good = ["blade J 5", "cpus W 6", "gpu-0 J 7"]
    good = [line for line in good if line.split()[0] != bad.split()[0]]
    lines = [bad, *good] if first else [*good, bad]
    path = script(tmp_path, "\n".join(f"echo {line}" for line in lines))
    run = probe(text_of(path, ", every: call" + BLADE))
    found = {one["channel"]: one["value"] for one in run.readings if one["fault"] is None}
    assert found == {line.split()[0]: float(line.split()[2]) for line in good}


def test_a_calls_comment_is_no_reading(tmp_path, probe):
    runs = tmp_path / "runs"
    first = f"echo x >>{runs}; [ $(wc -l <{runs}) = 1 ]"
    path = script(tmp_path, f"{first} && echo '# none yet' || echo 5")
    run = probe(text_of(path, ", every: call"))
    assert run.status == 0 and run.values() == [5.0], run.faults()


@pytest.mark.parametrize(
    ("channels", "complaint"),
    [
        ("{name: a, wrap: 5}", "key 'wrap': is for a counter"),
        ("{name: a, inside: b}, {name: b}", "must name a channel that stands before this one"),
        ("{domain: cpu}", "key 'name': is needed, by which lines call the channel"),
    ],
)
def test_channels_that_cannot_be_are_refused(probe, channels, complaint):
    run = probe(text_of("true", f", channels: [{channels}]"))
    assert run.status == 1 and complaint in run.faults()[0]
