# Builds cooked lines of benchmarks, and reads the tables that come of them.
# SPDX-License-Identifier: Apache-2.0 OR MIT
PNG_HEAD = b"\x89PNG\r\n"


def line(size=1000, time_s=0.05, **changes):
    """One cooked line of mod2am at 100 W with an instrument of 4 % (k=2)."""
    operations = 2 * size**3
    return {
        "benchmark": "mod2am",
        "kernel": "mod2am",
        "variant": "blas",
        "size": size,
        "bytes_or_flops": operations,
        "operations": operations,
        "operation": "flop",
        "iterations": 10,
        "runs": 1,
        "time_s": time_s,
        "time_spread_s": time_s * 0.01,
        "performance": operations / time_s,
        "unit": "F/s",
        "verified": True,
        "threads": 2,
        "ranks": 1,
        "target": "x86_64",
        "cpu": "A CPU",
        "region": f"mod2am/{size}",
        "region_seconds": time_s * 10,
        "energy_j": time_s * 100,
        "energy_uncertainty_j": time_s * 4,
        "power_w": 100.0,
        "estimated": False,
        **changes,
    }


UNKNOWN = {"energy_j": None, "energy_uncertainty_j": None, "power_w": None, "estimated": None}
FAILED = {**UNKNOWN, "verified": False, "time_s": None, "time_spread_s": None, "performance": None}


def failed(size):
    """The line of a wrong result."""
    return {**line(size), **FAILED}


def markdown_rows(text):
    return [
        [cell.strip() for cell in row.strip("|").split("|")]
        for row in text.splitlines()
        if row.startswith("|")
    ]


def manifest(**changes):
    """What benchkit tells of a program and its system."""
    return {
        "version": "0.1.0",
        "compiler": "GNU 12.2.0",
        "flags": "-O2 -march=native",
        "libraries": "glibc-2.36 libopenblasp-r0.3.21.so libc.so.6",
        "spack_spec": None,
        "spack_hash": None,
        "os_kernel": "6.1.0-30-amd64",
        "governor": "performance",
        "pinning": "core",
        "slurm": "22.05.8",
        "instruments": "powercap/cpu powercap/dram",
        "channels": "rapl/package-0 rapl/dram-0",
        "frequency_hz": 2.3e9,
        **changes,
    }
