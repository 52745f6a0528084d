# The DSP's tools: cross toolchain, simulator, builds for the DSP and for a host that computes
# alike, and a look inside the programs.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.targets import backends

BUILD_TOOLCHAIN = (
    backends.CHECKOUT / "spack-repo/spack_repo/joulemark/packages/tic6x_elf_gcc/build-toolchain"
)
BUILD_BY_CMAKE = backends.CHECKOUT / "environments/dsp-c66x/build-by-cmake"
PORT = backends.PACKAGES / "benchkit" / "c66x"
#: what a build folder that is there already would not look at again
RULES = (*(PORT / name for name in ("c66x.cmake", "port.cmake", "c6678.ld")), BUILD_BY_CMAKE)
TOOLCHAIN_LIMIT_S = 3600
# c6678.ld's memory: a core's own L2 (the half that is no cache), MSMC, DDR3
MEMORY = ((0x00800000, 256 << 10), (0x0C000000, 4 << 20), (0x80000000, 512 << 20))
# A host rounds as the DSP does: every product, and no processor's own instructions.
LIKE_THE_DSP = ("-DBENCH_NATIVE=OFF", "-DCMAKE_C_FLAGS=-ffp-contract=off", "-DBENCH_C66X=ON")
#: GCC's software arithmetic, which this machine does not need (SPRAB89, helper functions)
SOFTWARE_ARITHMETIC = {f"__c6xabi_{name}{kind}" for name in ("add", "sub", "mpy") for kind in "df"}
BENCHMARKS = {source.name: source for source in backends.having("c66x")}
#: what must have a DSP backend, and where its time goes to there, where that is arithmetic
KERNELS = {
    "dhrystone": None,
    "hydro": "hydro_sweep",
    "jm-linpack": "bk_gemm_multiply_share",
    "jm-stream": "triad",
    "mod2am": "bk_gemm_multiply_share",
    "mod2as": "multiply_share",
    "mod2f": "run_stage",
}
SHORT = ("--quick", "--min-seconds", "0.00005")
#: for the same operations everywhere: a plan found by trying is each machine's own
ALIKE = {"mod2f": ("--plan", "fixed")}
DISCLAIMER = "a functional simulator's with memory that never waits, NOT the hardware's"
OTHER_BACKENDS = ("OPENMP", "MPI", "BLAS", "FFTW", "CUDA", "OPENCL")


def toolchain() -> Path:
    """The cross toolchain's prefix, in the user's cache; built where it is not there yet."""
    done = subprocess.run(
        [BUILD_TOOLCHAIN], stdout=subprocess.PIPE, text=True, timeout=TOOLCHAIN_LIMIT_S
    )
    if done.returncode:
        raise backends.Failed(f"{BUILD_TOOLCHAIN.name}: exit {done.returncode}; it says why above")
    return Path(done.stdout.strip())


def build_for_dsp(source: Path, folder: Path, prefix: Path, *options: str) -> Path:
    """One project for the DSP; the folder of its programs."""
    backends.build(
        source,
        folder,
        f"-DCMAKE_TOOLCHAIN_FILE={PORT / 'c66x.cmake'}",
        f"-DC66X_TOOLCHAIN={prefix}",
        *options,
    )
    return folder / "prefix" / "bin"


def build_for_host(source: Path, folder: Path) -> Path:
    """The same kernels, compiled for this machine so that they compute the same bits."""
    without = (f"-DBENCH_{name}=OFF" for name in OTHER_BACKENDS)
    backends.build(source, folder, *LIKE_THE_DSP, *without)
    return folder / "prefix" / "bin"


def cooked_lines(cooked: Path) -> list[dict]:
    """The lines of a cooked output; all must be verified."""
    lines = [json.loads(line) for line in cooked.read_text().splitlines()]
    assert lines and all(line["verified"] for line in lines)
    return lines


def results(cooked: Path) -> dict[tuple, str]:
    """The digest of each variant and size, the DSP's among them."""
    lines = cooked_lines(cooked)
    assert any(line["variant"].startswith("c66x") for line in lines)
    return {(line["kernel"], line["variant"], line["size"]): line["digest"] for line in lines}


class Image:
    """A linked program, as the toolchain's own tools see it."""

    def __init__(self, program: Path, prefix: Path):
        self.program, self.tools = program, prefix / "bin"

    def tool(self, name: str, *words: str) -> str:
        return backends.must(self.tools / f"tic6x-elf-{name}", *words, self.program)

    def header(self) -> dict[str, str]:
        lines = self.tool("readelf", "--file-header").splitlines()
        return {key.strip(): value.strip() for key, _, value in (x.partition(":") for x in lines)}

    def sections(self) -> Iterator[tuple[str, int, int]]:
        """Name, address and size of all that takes memory."""
        row = re.compile(r"\] (\S+)\s+\S+\s+([0-9a-f]{8}) [0-9a-f]+ ([0-9a-f]+) \S+\s+([A-Z]+)")
        for name, address, size, flags in row.findall(self.tool("readelf", "-SW")):
            if "A" in flags and int(size, 16):
                yield name, int(address, 16), int(size, 16)

    def symbols(self) -> dict[str, int]:
        """The address of every symbol."""
        rows = (line.split() for line in self.tool("nm", "--defined-only").splitlines())
        return {name: int(address, 16) for address, _, name in rows}

    def functions(self) -> dict[str, list[tuple[int, str]]]:
        """The instructions of every function, as (address, text)."""
        found, body = {}, []
        for line in self.tool("objdump", "-d", "--no-show-raw-insn").splitlines():
            if start := re.match(r"[0-9a-f]+ <(\S+)>:", line):
                body = found.setdefault(start[1], [])
            elif instruction := re.match(r"\s*([0-9a-f]+):\s+(.*)", line):
                body.append((int(instruction[1], 16), instruction[2]))
        return found


def computes_in_double(loop: list[str]) -> bool:
    """The loop multiplies and adds by the hardware's instructions."""
    text = "\n".join(loop)
    return "mpydp" in text and "adddp" in text


def inner_loops(body: list[tuple[int, str]]) -> list[list[str]]:
    """The instructions of each loop of a function that has no other inside."""
    places = {address: index for index, (address, _) in enumerate(body)}
    loops = []
    for index, (_, text) in enumerate(body):
        jump = re.search(r"\bb(?:dec|pos)? \.S\S+ (?:[ab]\d+,)?([0-9a-f]+) <", text)
        start = places.get(int(jump[1], 16)) if jump else None
        if start is not None and start <= index:
            loops.append((start, end_of_delay(body, index)))
    return [
        [text for _, text in body[start:end]]
        for start, end in loops
        if not any(start <= s and e <= end and (s, e) != (start, end) for s, e in loops)
    ]


def end_of_delay(body: list[tuple[int, str]], branch: int) -> int:
    """Where a branch takes effect: after five more cycles."""
    cycles, index = 0, branch + 1
    while index < len(body) and cycles <= 5:
        text = body[index][1]
        if not text.startswith("||"):
            rest = re.fullmatch(r"nop (\d+)", text)
            cycles += int(rest[1]) if rest else 1
            if cycles > 5:
                break
        index += 1
    return index


def simulate(
    simulator: Path,
    program: Path,
    *words: str | Path,
    cores: int = 8,
    options: Sequence[str] = (),
    status: int | None = 0,
) -> subprocess.CompletedProcess:
    """Runs a program on the simulator, which speaks of itself on its standard error; Failed where
    it does not say what its cycles are not, or ends otherwise."""
    done = subprocess.run(
        [simulator, "--spoil", "--cores", str(cores), *options, program, *words],
        capture_output=True,
        text=True,
        timeout=backends.LIMIT_S,
    )
    if DISCLAIMER not in done.stderr:
        raise backends.Failed(f"{program.name}: nothing said of the cycles\n{done.stderr}")
    if status not in (None, done.returncode):
        said = done.stdout + done.stderr
        raise backends.Failed(f"{program.name}: exit {done.returncode}, not {status}\n{said}")
    return done
