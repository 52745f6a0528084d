"""Every benchmark with a DSP backend compiles for the C6678, by CMake and by Spack, runs on the
simulator, and computes there what the same kernels compute on a host, to the last bit. Builds
the cross toolchain first, ten minutes of two processors."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.targets import backends, c66x, environments

#: blocks in a core's own memory and in the one that all share, as the seed's own HPL had them
BLOCKS = {"bk_gemm_fast": c66x.MEMORY[0], "bk_gemm_shared": c66x.MEMORY[1]}
FINE = 42  # try_port.c's
CACHES = ("--check-caches",)
COHERENT = "c66x-sim: caches: 0 findings"


@pytest.fixture(scope="module")
def folder() -> Path:
    """Begun anew where flags or the linker script have changed."""
    made = backends.kept("c66x")
    stamp, rules = made / "rules", b"".join(file.read_bytes() for file in c66x.RULES)
    if not stamp.exists() or stamp.read_bytes() != rules:
        shutil.rmtree(made)
        made.mkdir()
        stamp.write_bytes(rules)
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
def simulated(simulator, dsp, tmp_path_factory):
    """Every benchmark on the simulator, all begun at once, as many at a time as there are
    processors; returns what waits for one's end: its cooked output."""
    made = tmp_path_factory.mktemp("simulated")

    def run(name: str) -> Path:
        words = (*c66x.SHORT, *c66x.ALIKE.get(name, ()), "--cooked", made / name)
        c66x.simulate(simulator, dsp / f"{name}.out", *words)
        return made / name

    pool = ThreadPoolExecutor(int(backends.JOBS))
    begun = {name: pool.submit(run, name) for name in c66x.BENCHMARKS}
    yield lambda name: begun[name].result()
    pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="module")
def host(folder):
    """Builds a benchmark for the host, once; returns the program."""
    backends.build_benchkit(folder / "host")
    return lambda name: c66x.build_for_host(c66x.BENCHMARKS[name], folder / "host") / name


# -- the toolchain -------------------------------------------------------------------------------


def test_a_toolchain_is_found_again(toolchain):
    found = backends.run(c66x.BUILD_TOOLCHAIN, "--where")
    assert found.returncode == 0 and Path(found.stdout.strip()) == toolchain


# -- the programs --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def image(toolchain, dsp):
    return lambda name: c66x.Image(dsp / f"{name}.out", toolchain)


@pytest.mark.usefixtures("simulated")  # they run while other tests do
@pytest.mark.parametrize("name", c66x.BENCHMARKS)
def test_the_program_fits_the_machine(image, name):
    header, sections = image(name).header(), list(image(name).sections())
    assert header["Machine"] == "Texas Instruments TMS320C6000 DSP family"
    assert header["Class"] == "ELF32" and "little endian" in header["Data"]
    assert header["Type"].startswith("EXEC")
    assert {".text", ".args", ".bss", ".stacks", ".far"} <= {row[0] for row in sections}
    for section, address, size in sections:
        inside = [begin <= address <= begin + room - size for begin, room in c66x.MEMORY]
        assert any(inside), f"{section} lies outside the memory"
    assert image(name).tool("nm", "--undefined-only") == ""


def test_no_call_is_weak(toolchain, dsp):
    """It would go to address 0 where nothing has the name, and the linker keeps no trace of it."""
    objects = (dsp.parents[1] / "build").rglob("*.obj")
    said = backends.must(toolchain / "bin" / "tic6x-elf-nm", "--undefined-only", *objects)
    assert " U main" in said and not re.search(r" [wv] ", said)


@pytest.mark.parametrize("name", c66x.BENCHMARKS)
def test_no_division_is_approximate_and_no_loop_buffered(image, name):
    functions = image(name).functions()
    text = "\n".join(line for body in functions.values() for _, line in body)
    assert "stw" in text and "main" in functions
    assert not re.search(r"\b(rcp|rsqr)[ds]p\b", text), "an approximate reciprocal divides"
    assert not re.search(r"\bsp(loop|kernel)", text), "a loop buffer is used"


@pytest.mark.parametrize("name", [name for name in c66x.BENCHMARKS if c66x.KERNELS.get(name, "")])
def test_the_kernel_computes_by_hardware(image, name):
    loops = c66x.inner_loops(image(name).functions()[c66x.KERNELS[name]])
    assert any(map(c66x.computes_in_double, loops)), "no inner loop has MPYDP and ADDDP"
    assert not c66x.SOFTWARE_ARITHMETIC & image(name).symbols().keys()


@pytest.mark.parametrize("name", ["mod2am", "jm-linpack"])
def test_the_products_blocks_lie_in_fast_memory(image, name):
    symbols = image(name).symbols()
    for block, (begin, room) in BLOCKS.items():
        assert begin <= symbols[block] < begin + room


@pytest.mark.parametrize("name", c66x.BENCHMARKS)
def test_the_simulator_reads_it_as_objdump_does(simulator, toolchain, dsp, name):
    reads_as_objdump(simulator, toolchain, dsp / f"{name}.out")


def test_the_simulator_computes_what_the_host_does(simulator, toolchain):
    """Its own test, here with the toolchain that it skips without."""
    compare = backends.PACKAGES / "c66x-sim" / "tests" / "compare_with_host"
    done = backends.run(compare, simulator, env={"JOULEMARK_TIC6X": str(toolchain)})
    assert done.returncode == 0, done.stdout


def reads_as_objdump(simulator: Path, toolchain: Path, program: Path) -> None:
    compare = backends.PACKAGES / "c66x-sim" / "tests" / "compare_with_objdump"
    done = backends.run(compare, simulator, program, env={"JOULEMARK_TIC6X": str(toolchain)})
    assert done.returncode == 0, done.stdout
    assert re.search(r"^[0-9]{4,} instructions, 0 comparisons differ", done.stdout, re.MULTILINE)


# -- the port ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def try_port(folder, toolchain, dsp) -> Path:
    return c66x.build_for_dsp(c66x.PORT / "tests", folder / "dsp", toolchain) / "try-port.out"


def test_the_simulator_reads_the_port_as_objdump_does(simulator, toolchain, try_port):
    reads_as_objdump(simulator, toolchain, try_port)


@pytest.mark.parametrize("cores", [1, 2, 8])
def test_the_port_works(simulator, try_port, tmp_path, cores):
    words = (tmp_path / "file", str(cores), "two words")
    done = c66x.simulate(simulator, try_port, *words, cores=cores, options=CACHES, status=FINE)
    assert COHERENT in done.stderr
    assert "argument 3 is 'two words'" in done.stdout
    assert re.search(r"^@BEGIN \d+ try\n@END \d+ try$", done.stdout, re.MULTILINE)


def test_a_line_of_two_writers_is_found(simulator, try_port):
    """It would lose values on hardware; the simulator computes what the program means."""
    done = c66x.simulate(simulator, try_port.with_name("share-a-line.out"), options=CACHES)
    assert re.search(r"caches: core \d at 0x\w+ \(add\+0x\w+\) writes to a line at", done.stderr)
    assert COHERENT not in done.stderr


def test_wrong_usage_reaches_the_host(simulator, dsp):
    done = c66x.simulate(simulator, dsp / "jm-stream.out", "--sizes", "none", status=2)
    assert "--sizes 'none'" in done.stderr


def test_what_does_not_fit_the_memory_is_refused_before(simulator, dsp):
    """Three matrices would; mod2am has C a second time, its rows begin at lines of the caches."""
    words = ("--variant", "c66x", "--sizes", "4400")
    done = c66x.simulate(simulator, dsp / "mod2am.out", *words, status=3)
    assert re.search(r"size 4400 needs 59\d\.\d MiB of memory, [45]\d\d\.\d MiB", done.stderr)


def test_the_serial_line_carries_everything(folder, toolchain, simulator, dsp, tmp_path):
    """With the UART as console, files are lines that begin with their name."""
    uart = folder / "uart"
    option = "-DBENCHKIT_C66X_CONSOLE=uart"
    c66x.build_for_dsp(backends.PACKAGES / "benchkit", uart, toolchain, option)
    bin_folder = c66x.build_for_dsp(c66x.BENCHMARKS["mod2am"], uart, toolchain)
    done = c66x.simulate(simulator, bin_folder / "mod2am.out", *c66x.SHORT, "--cooked", "results")
    over_line, by_files = tmp_path / "line", tmp_path / "files"
    cooked = re.findall(r"^results: (.*\n)", done.stdout, re.MULTILINE)
    over_line.write_text("".join(cooked))
    by_cio = c66x.simulate(simulator, dsp / "mod2am.out", *c66x.SHORT, "--cooked", by_files)
    assert c66x.results(over_line) == c66x.results(by_files)
    reported = re.compile(r"^mod2am/.*repetitions", re.MULTILINE)
    assert len(reported.findall(done.stdout)) == len(reported.findall(by_cio.stdout)) > 0
    reads_as_objdump(simulator, toolchain, bin_folder / "mod2am.out")


FAKE_CL6X = """\
#!/bin/bash
# Takes TI's options, writes them down, and compiles by GCC. Its objects are for a C66x by their
# own words (SPRAB89, Tag_ISA), as TI's are, and GNU's linker is to take them.
echo "$*" >>"${0%/*}/../calls"
echo '__asm__(".c6xabi_attribute 4, 10");' >"${0%/*}/isa.h"
options=(-include "${0%/*}/isa.h")
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
    cl6x, include = tmp_path / "bin" / "cl6x", tmp_path / "include"
    cl6x.parent.mkdir()
    include.mkdir()
    cl6x.write_text(FAKE_CL6X.replace("GCC", str(toolchain / "bin" / "tic6x-elf-gcc")))
    cl6x.chmod(0o755)
    installed, made = f"-DCMAKE_PREFIX_PATH={dsp.parent}", tmp_path / "made"
    c66x.build_for_dsp(
        c66x.BENCHMARKS["mod2am"], made, toolchain, installed, f"-DC66X_CL6X={cl6x}"
    )
    calls = (tmp_path / "calls").read_text().splitlines()
    assert {call.split("/")[-2] for call in calls} == {"c66x"}
    needed = {"--abi=eabi", "--fp_mode=strict", "--mem_model:data=far"}
    needed.add(f"--include_path={include}")  # which cl6x does not look into by itself
    assert all(needed <= set(call.split()) for call in calls)
    by_ti, by_gnu = tmp_path / "by-ti", tmp_path / "by-gnu"
    for program, cooked in ((made / "prefix/bin/mod2am.out", by_ti), (dsp / "mod2am.out", by_gnu)):
        c66x.simulate(simulator, program, *c66x.SHORT, "--cooked", cooked)
    assert c66x.results(by_ti) == c66x.results(by_gnu)


# -- the benchmarks ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", c66x.BENCHMARKS)
def test_no_result_is_read_before_it_is_there(simulator, dsp, tmp_path, name):
    options = ("--max-cycles", "10000000", "--check-latency")
    words = (*c66x.SHORT, "--cooked", tmp_path / "cooked")
    done = c66x.simulate(simulator, dsp / f"{name}.out", *words, options=options, status=None)
    assert "c66x-sim: latency: 0 findings" in done.stderr


@pytest.mark.parametrize("name", c66x.BENCHMARKS)
def test_caches_that_know_nothing_of_one_another_change_no_result(simulator, dsp, tmp_path, name):
    """In the variants that run on all cores."""
    program = dsp / f"{name}.out"
    line = re.search(r"^Variants: (.*)$", c66x.simulate(simulator, program, "--help").stdout, re.M)
    variants = ",".join(v for v in line[1].split(",") if v.startswith("c66x"))
    words = (*c66x.SHORT, "--variant", variants, "--cooked", tmp_path / "cooked")
    done = c66x.simulate(simulator, program, *words, options=CACHES)
    assert COHERENT in done.stderr, done.stderr


def test_a_fault_is_told_with_its_place(simulator, toolchain, dsp, tmp_path):
    astray = tmp_path / "astray.out"
    objcopy = toolchain / "bin" / "tic6x-elf-objcopy"
    backends.must(objcopy, "--set-start=0x0c3ffff0", dsp / "mod2am.out", astray)
    done = c66x.simulate(simulator, astray, cores=1, status=126)  # leaves the memory at once
    assert "no code can be at 0x0c400000" in done.stderr


@pytest.mark.parametrize("name", c66x.BENCHMARKS)
def test_it_computes_what_a_host_computes(simulated, host, tmp_path, name):
    on_dsp, on_host = simulated(name), tmp_path / "host"
    assert all("NOT the hardware's" in line["cpu"] for line in c66x.cooked_lines(on_dsp))
    backends.must(host(name), *c66x.SHORT, *c66x.ALIKE.get(name, ()), "--cooked", on_host)
    computed, expected = c66x.results(on_dsp), c66x.results(on_host)
    assert computed == {what: expected[what] for what in computed}
    assert {what for what in expected if what[1].startswith("c66x")} <= computed.keys()


def test_a_split_serial_transform_is_the_hosts(simulator, dsp, host, tmp_path):
    """Of mod2f; the sizes of --quick are too small to be split."""
    words = ("--variant", "serial", "--sizes", "32768", *c66x.ALIKE["mod2f"], *c66x.SHORT[1:])
    on_dsp, on_host = tmp_path / "dsp", tmp_path / "host"
    c66x.simulate(simulator, dsp / "mod2f.out", *words, "--cooked", on_dsp)
    backends.must(host("mod2f"), *words, "--cooked", on_host)
    ((ours,), (theirs,)) = c66x.cooked_lines(on_dsp), c66x.cooked_lines(on_host)
    assert ours["digest"] == theirs["digest"]


@pytest.mark.parametrize("name", ["mod2am", "mod2as"])
def test_the_number_of_cores_changes_no_result(simulator, simulated, dsp, tmp_path, name):
    on_all, on_some = simulated(name), tmp_path / "some"
    for cores in (1, 3):
        words = (*c66x.SHORT, "--cooked", on_some)
        c66x.simulate(simulator, dsp / f"{name}.out", *words, cores=cores)
        assert c66x.results(on_some) == c66x.results(on_all)
        on_some.unlink()


# -- by Spack ------------------------------------------------------------------------------------


def test_the_benchmarks_are_built_by_spack_and_run(toolchain, tmp_path):
    version = backends.must(toolchain / "bin/tic6x-elf-gcc", "-dumpfullversion").strip()
    external = environments.external("tic6x-elf-gcc", version, toolchain)
    programs = environments.install("dsp-c66x", external)
    sources = environments.having_recipes("c66x")
    assert sources
    for source in sources:
        program, cooked = programs / f"{source.name}.out", tmp_path / source.name
        header = c66x.Image(program, toolchain).header()
        assert header["Machine"] == "Texas Instruments TMS320C6000 DSP family"
        words = (*c66x.SHORT, "--variant", "c66x", "--cooked", cooked)
        c66x.simulate(programs / "c66x-sim", program, *words)
        assert c66x.results(cooked)
