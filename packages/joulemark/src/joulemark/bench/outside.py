# Cooked lines of programs that are not ours: who ran, how it was built, where, and its energy.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import json
import os
import platform
import re
import sys
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from joulemark import regions
from joulemark.bench import peaks, program
from joulemark.errors import UsageError, UserError

CPUFREQ = Path("/sys/devices/system/cpu/cpu0/cpufreq")
_REGION = re.compile(
    r"^(?P<name>\S+): (?P<joules>[\d.]+) J \+- (?P<error>[\d.]+) J \(k=2\)"
    r"(?P<estimated>, estimated by a model)? in (?P<seconds>[\d.]+) s$"
)


@dataclass(frozen=True)
class Run:
    """What one line is of, but for its result."""

    benchmark: str
    kernel: str
    variant: str
    size: int
    operations: float
    operation: str  # what these are: flop, byte, op
    unit: str  # of performance
    threads: int  # of each rank
    ranks: int
    nodes: int | None  # None: not told
    start_s: float | None = None  # since 1970; None: not told


@dataclass
class Energy:
    """Of all nodes together; uncertainties add up, for the nodes' instruments are alike."""

    joules: float
    error: float
    seconds: float
    estimated: bool


def energy_of(text: str, nodes: int) -> Energy:
    """The sum of a region's lines, of which each node wrote one."""
    found = [match for match in map(_REGION.match, text.splitlines()) if match]
    if len(found) != nodes:
        raise UsageError(f"--energy: {len(found)} lines of a region for {nodes} nodes: one each")
    return Energy(
        joules=sum(float(match["joules"]) for match in found),
        error=sum(float(match["error"]) for match in found),
        seconds=max(float(match["seconds"]) for match in found),
        estimated=any(match["estimated"] for match in found),
    )


def here() -> dict:
    """Of this process: what a line says of where it ran, and by which instruments."""
    return {
        "target": platform.machine(),
        "cpu": peaks.this_node().get("model name") or platform.machine(),
        "job": os.environ.get("SLURM_JOB_ID"),
        "node": os.environ.get("SLURMD_NODENAME") or platform.node(),
        "instruments": regions.instruments(),
    }


def line(
    run: Run, performance: float | None, energy: Energy | None, manifest: dict, ran: dict
) -> dict:
    """As benchkit's programs write it. What did not verify has no performance, and no energy.
    RAN is here() of the run."""
    passed = performance is not None
    known = passed and energy is not None
    return {
        "benchmark": run.benchmark,
        "kernel": run.kernel,
        "variant": run.variant,
        "size": run.size,
        "operations": run.operations,
        "operation": run.operation,
        "iterations": 1,
        "repetitions": 1,
        "runs": 1,
        "time_s": run.operations / performance if passed else None,
        "time_spread_s": None,
        "performance": performance,
        "unit": run.unit,
        "verified": passed,
        "threads": run.threads,
        "ranks": run.ranks,
        "nodes": run.nodes,
        "target": ran["target"],
        "cpu": ran["cpu"],
        "region_seconds": energy.seconds if known else None,
        "energy_j": energy.joules if known else None,
        "energy_uncertainty_j": energy.error if known else None,
        "power_w": energy.joules / energy.seconds if known and energy.seconds else None,
        "estimated": energy.estimated if known else None,
        "job": ran["job"],
        "node": ran["node"],
        "start": _iso(run.start_s),
        "manifest": {
            **manifest,
            **(ran["instruments"] if known else {}),  # other nodes' are taken to be alike
        },
    }


def manifest_of(version: str | None, build: program.Build) -> dict[str, str | float | None]:
    """Its keys, as benchkit's programs have them: of the build, and of this machine and moment,
    which are taken to be those of the run. VERSION is what the program tells of itself."""
    known = [version] if version else []
    known += [f"({build.file})"] if build.file else []
    return {
        "version": " ".join(known) or None,
        "compiler": build.compiler,
        "flags": None,
        "libraries": build.libraries,
        "spack_spec": build.spack_spec,
        "spack_hash": build.spack_hash,
        "os_kernel": platform.release(),
        "governor": _of_cpufreq("scaling_governor"),
        "pinning": None,
        "slurm": os.environ.get("JOULEMARK_SLURM_VERSION"),
        "frequency_hz": _frequency_hz(),
    }


def _iso(start_s: float | None) -> str | None:
    if start_s is None:
        return None
    return datetime.fromtimestamp(start_s, timezone.utc).isoformat(timespec="seconds")


def _of_cpufreq(name: str) -> str | None:
    """Of the first processor's frequency, where the kernel tells it."""
    text = _text(CPUFREQ / name)
    return None if text is None else text.strip()


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _frequency_hz() -> float | None:
    """Of the first processor, from where benchkit has it; the kernel may call it unknown."""
    khz = re.match(r"[1-9]\d*$", _of_cpufreq("scaling_cur_freq") or "")
    if khz:
        return 1e3 * int(khz[0])
    mhz = re.search(r"^cpu MHz\s*:\s*(\d+(?:\.\d+)?)$", _text(peaks.CPUINFO) or "", re.MULTILINE)
    return 1e6 * float(mhz[1]) if mhz else None


def put(lines: list[dict], cooked: str | None) -> None:
    """--cooked: appended to that file; else printed."""
    text = "".join(json.dumps(line) + "\n" for line in lines)
    if cooked:
        write(Path(cooked), text, "a")
    else:
        sys.stdout.write(text)


def write(path: Path, text: str, mode: str = "w") -> None:
    """UserError where it cannot be."""
    try:
        with path.open(mode, encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}: give another file") from None
