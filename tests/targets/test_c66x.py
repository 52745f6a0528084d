"""Every benchmark with a DSP backend compiles for the C6678, runs on the simulator, and computes
there what the same kernels compute on a host, to the last bit."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cluster import cache_folder
from tests.targets import backends, c66x

BENCHMARKS = {source.name: source for source in backends.having("c66x")}
#: counts of loops that the clock chose: their digest is the run's own
COUNTING = {"dhrystone"}
SHORT = ("--quick", "--min-seconds", "0.00005")
FINE = 42  # try_port.c's


@pytest.fixture(scope="module")
def folder() -> Path:
    """Kept between runs: what has not changed is not compiled again."""
    made = cache_folder() / "targets" / "c66x"
    made.mkdir(parents=True, exist_ok=True)
    return made


@pytest.fixture(scope="module")
def toolchain() -> Path:
    return c66x.toolchain()


@pytest.fixture(scope="module")
def dsp(folder, toolchain) -> Path:
    """Where the DSP's programs and the simulator are, all built without Spack."""
    backends.must(c66x.BUILD_BY_CMAKE, folder / "dsp")
    return folder / "dsp" / "prefix" / "bin"


@pytest.fixture(scope="module")
def simulator(dsp) -> Path:
    return dsp / "c66x-sim"


@pytest.fixture(scope="module")
def host(folder):
    """Builds a benchmark for the host, once; returns the program."""
    backends.build_benchkit(folder / "host")
    return lambda name: c66x.build_for_host(BENCHMARKS[name], folder / "host") / name


def results(cooked: Path) -> dict[tuple, str]:
    """The digest of each of the DSP's variants in a cooked output; all must be verified."""
    lines = [json.loads(line) for line in cooked.read_text().splitlines()]
    assert lines and all(line["verified"] for line in lines)
    found = {}
    for line in lines:
        if line["variant"].startswith("c66x"):
            found[line["kernel"], line["variant"], line["size"]] = line["digest"]
    return found


# -- the toolchain -------------------------------------------------------------------------------


def build_toolchain(cache: Path, *words: str | Path) -> subprocess.CompletedProcess:
    env = {**os.environ, "XDG_CACHE_HOME": str(cache), "TMPDIR": str(cache)}
    return subprocess.run(
        [c66x.BUILD_TOOLCHAIN, *words], env=env, capture_output=True, text=True, timeout=120
    )


def test_a_toolchain_is_found_again(toolchain):
    found = backends.run(c66x.BUILD_TOOLCHAIN, "--where")
    assert found.returncode == 0 and Path(found.stdout.strip()) == toolchain


def test_a_build_cut_short_leaves_no_toolchain(tmp_path):
    sources, cache = tmp_path / "binutils-2.40", tmp_path / "cache"
    sources.mkdir()
    cache.mkdir()
    configure = sources / "configure"
    configure.write_text('#!/bin/sh\necho "this machine lacks something" >&2\nexit 77\n')
    configure.chmod(0o755)
    shutil.make_archive(str(sources), "gztar", tmp_path, sources.name)
    done = build_toolchain(cache, "--sources", tmp_path)
    assert done.returncode == 1
    assert "this machine lacks something" in done.stderr and "binutils failed" in done.stderr
    assert build_toolchain(cache, "--where").returncode == 1
    assert not list(cache.glob("tic6x-elf.*")), "the build's own folder is left"


# -- the port ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def try_port(folder, toolchain, dsp) -> Path:
    return c66x.build_for_dsp(c66x.PORT / "tests", folder / "dsp", toolchain) / "try-port.out"


@pytest.mark.parametrize("cores", [1, 2, 8])
def test_the_port_works(simulator, try_port, tmp_path, cores):
    words = (tmp_path / "file", str(cores), "two words")
    done = c66x.simulate(simulator, try_port, *words, cores=cores)
    assert done.returncode == FINE, done.stdout + done.stderr
    assert "argument 3 is 'two words'" in done.stdout
    assert re.search(r"^@BEGIN \d+ try\n@END \d+ try$", done.stdout, re.MULTILINE)


def test_wrong_usage_reaches_the_host(simulator, dsp):
    done = c66x.simulate(simulator, dsp / "jm-stream.out", "--sizes", "none")
    assert done.returncode == 2 and "--sizes 'none'" in done.stderr


def test_the_serial_line_carries_everything(folder, toolchain, simulator, dsp, tmp_path):
    """With the UART as console, files are lines that begin with their name."""
    uart = folder / "uart"
    option = "-DBENCHKIT_C66X_CONSOLE=uart"
    c66x.build_for_dsp(backends.PACKAGES / "benchkit", uart, toolchain, option)
    bin_folder = c66x.build_for_dsp(BENCHMARKS["mod2am"], uart, toolchain)
    done = c66x.simulate(simulator, bin_folder / "mod2am.out", *SHORT, "--cooked", "results")
    assert done.returncode == 0, done.stdout + done.stderr
    over_line, by_files = tmp_path / "line", tmp_path / "files"
    cooked = re.findall(r"^results: (.*\n)", done.stdout, re.MULTILINE)
    over_line.write_text("".join(cooked))
    c66x.simulate(simulator, dsp / "mod2am.out", *SHORT, "--cooked", by_files)
    assert results(over_line) == results(by_files)


FAKE_CL6X = """\
#!/bin/bash
# Takes TI's options, writes them down, and compiles by GCC.
echo "$*" >>"${0%/*}/calls"
for word; do
    case $word in
    --define=*) options+=("-D${word#*=}") ;;
    --include_path=*) options+=("-I${word#*=}") ;;
    --output_file=*) options+=(-o "${word#*=}") ;;
    --*) ;;
    *) options+=("$word") ;;
    esac
done
exec GCC -std=c11 -O1 -march=c674x -msdata=none -fno-reciprocal-math -c "${options[@]}"
"""


def test_tis_compiler_compiles_the_kernels_alone(folder, toolchain, simulator, dsp, tmp_path):
    """Where C66X_CL6X names it; here it is a script that stands in."""
    cl6x = tmp_path / "cl6x"
    cl6x.write_text(FAKE_CL6X.replace("GCC", str(toolchain / "bin" / "tic6x-elf-gcc")))
    cl6x.chmod(0o755)
    installed, made = f"-DCMAKE_PREFIX_PATH={dsp.parent}", tmp_path / "made"
    c66x.build_for_dsp(BENCHMARKS["mod2am"], made, toolchain, installed, f"-DC66X_CL6X={cl6x}")
    calls = (tmp_path / "calls").read_text().splitlines()
    assert {call.split("/")[-2] for call in calls} == {"c66x"}
    assert all("--abi=eabi" in call and "--fp_mode=strict" in call for call in calls)
    by_ti, by_gnu = tmp_path / "by-ti", tmp_path / "by-gnu"
    for program, cooked in ((made / "prefix/bin/mod2am.out", by_ti), (dsp / "mod2am.out", by_gnu)):
        assert c66x.simulate(simulator, program, *SHORT, "--cooked", cooked).returncode == 0
    assert results(by_ti) == results(by_gnu)


# -- the benchmarks ------------------------------------------------------------------------------


def test_there_are_backends():
    assert len(BENCHMARKS) >= 3, "too few packages/*/src/c66x beside a src/main.c"


@pytest.mark.parametrize("name", BENCHMARKS)
def test_the_program_fits_the_machine(toolchain, dsp, name):
    image = c66x.Image(dsp / f"{name}.out", toolchain)
    header = image.header()
    assert header["Machine"] == "Texas Instruments TMS320C6000 DSP family"
    assert header["Class"] == "ELF32" and "little endian" in header["Data"]
    for section, address, size in image.sections():
        inside = [begin <= address <= begin + room - size for begin, room in c66x.MEMORY]
        assert any(inside), f"{section} lies outside the memory"
    assert image.tool("nm", "--undefined-only") == ""


@pytest.mark.parametrize("name", BENCHMARKS)
def test_the_code_is_exact_and_uses_the_hardware(toolchain, dsp, name):
    functions = c66x.Image(dsp / f"{name}.out", toolchain).functions()
    text = "\n".join(line for body in functions.values() for _, line in body)
    assert not re.search(r"\b(rcp|rsqr)[ds]p\b", text), "an approximate reciprocal divides"
    assert not re.search(r"\bsp(loop|kernel)", text), "a loop buffer is used"
    if name in COUNTING:
        return
    loops = [loop for body in functions.values() for loop in c66x.inner_loops(body)]
    both = [loop for loop in loops if "mpydp" in (inside := "\n".join(loop)) and "adddp" in inside]
    assert both, "no inner loop multiplies and adds in double precision by hardware"


@pytest.mark.parametrize("name", BENCHMARKS)
def test_the_simulator_reads_it_as_objdump_does(simulator, toolchain, dsp, name):
    compare = backends.PACKAGES / "c66x-sim" / "tests" / "compare_with_objdump"
    env = {"JOULEMARK_TIC6X": str(toolchain)}
    done = backends.run(compare, simulator, dsp / f"{name}.out", env=env)
    assert done.returncode == 0, done.stdout
    assert re.search(r"^[0-9]{4,} instructions, 0 comparisons differ", done.stdout, re.MULTILINE)


def test_no_result_is_read_before_it_is_there(simulator, dsp, tmp_path):
    words = ("--max-cycles", "20000000", "--check-latency")
    done = backends.run(simulator, *words, dsp / "mod2am.out", *SHORT, cwd=tmp_path)
    assert "c66x-sim: latency: 0 findings" in done.stdout


@pytest.mark.parametrize("name", BENCHMARKS)
def test_it_computes_what_a_host_computes(simulator, dsp, host, tmp_path, name):
    on_dsp, on_host = tmp_path / "dsp", tmp_path / "host"
    done = c66x.simulate(simulator, dsp / f"{name}.out", *SHORT, "--cooked", on_dsp)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "NOT the hardware's" in done.stderr
    backends.must(host(name), *SHORT, "--cooked", on_host)
    computed, expected = results(on_dsp), results(on_host)
    assert computed and computed.keys() == expected.keys()
    if name not in COUNTING:
        assert computed == expected


def test_the_number_of_cores_changes_no_result(simulator, dsp, tmp_path):
    program = dsp / "mod2am.out"
    found = []
    for cores in (1, 3, 8):
        cooked = tmp_path / f"on-{cores}"
        done = c66x.simulate(simulator, program, *SHORT, "--cooked", cooked, cores=cores)
        assert done.returncode == 0, done.stdout + done.stderr
        found.append(results(cooked))
    assert found[0] == found[1] == found[2] != {}
