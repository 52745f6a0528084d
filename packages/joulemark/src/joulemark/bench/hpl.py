# HPL: writes its input for a machine, and reads its output as cooked lines.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse
import math
import os
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from joulemark import environment, output
from joulemark.bench import outside, program
from joulemark.errors import UsageError, UserError

# -- the input -----------------------------------------------------------------------------------

#: What is not swept: values in HPL's order, which reads one a line and no words after it.
TUNING = (
    (16.0, "the check passes below"),
    (1, "way to factor a panel:"),
    (2, "right-looking"),
    (1, "where its recursion ends:"),
    (4, "columns"),
    (1, "parts of a recursion:"),
    (2, "halves"),
    (1, "way of the recursion:"),
    (1, "Crout"),
    (1, "way to send a panel:"),
    (1, "around a ring, the next rank first"),
    (1, "depth of the lookahead:"),
    (1, "one panel"),
    (2, "rows are exchanged by binary exchange up to so many columns, then spread and rolled:"),
    (64, "columns"),
    (0, "the panel's upper part is kept transposed"),
    (0, "U is kept transposed"),
    (1, "even the spreading out"),
    (8, "doubles of alignment"),
)
#: What HPC Challenge reads after HPL's lines: its matrix transposition has no more sizes.
HPCC = (("", ""), (0, "sizes more"), (1200, ""), (0, "blocks more"), (40, ""))

UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
MOST = 2**31 - 1  # HPL's numbers are C's int
MOST_MULTIPLES = 20  # N is made a multiple of all NB where this costs less than a part of so many


def write_dat(options: argparse.Namespace) -> int:
    """`joulemark hpl dat`."""
    nodes = _count("--nodes", options.nodes, "SLURM_JOB_NUM_NODES")
    ranks = _count("--ranks", options.ranks, "SLURM_NTASKS")
    blocks = _numbers("--nb", options.nb)
    if options.n:
        sizes = _numbers("--n", options.n)
    else:
        sizes = [size_for(nodes * memory(options.memory), blocks)]
    text = dat(sizes, blocks, *grid(ranks), HPCC if options.hpcc else ())
    if options.out == "-":
        sys.stdout.write(text)
    else:
        outside.write(Path(options.out), text)
    p, q = grid(ranks)
    output.tell([f"N {_spaced(sizes)}, NB {_spaced(blocks)}, P x Q = {p} x {q}"])
    if p == 1 and ranks > 3:
        output.tell([f"{ranks} ranks are a row: a number with factors is faster"])
    return 0


def dat(sizes: list[int], blocks: list[int], p: int, q: int, more: tuple = ()) -> str:
    """HPL.dat: every size with every block size on one grid of P x Q ranks."""
    lines = (
        ("HPL's parameters,", "written by joulemark hpl dat:"),
        ("each line a value,", "and what it means"),
        ("HPL.out", "file, if any"),
        (6, "output: 6 is standard output"),
        (len(sizes), "sizes:"),
        (_spaced(sizes), "N"),
        (len(blocks), "blocks:"),
        (_spaced(blocks), "NB"),
        (0, "ranks are placed row by row"),
        (1, "grid of ranks:"),
        (p, "P"),
        (q, "Q"),
    )
    return "".join(f"{value!s:<12} {meaning}\n" for value, meaning in lines + TUNING + more)


def grid(ranks: int) -> tuple[int, int]:
    """P and Q, P <= Q, P * Q = ranks, as near to each other as can be."""
    p = max(one for one in range(1, math.isqrt(ranks) + 1) if ranks % one == 0)
    return p, ranks // p


def size_for(bytes_: float, blocks: list[int]) -> int:
    """The largest N of which the matrix has at most so many bytes."""
    most = math.isqrt(int(bytes_ / 8))
    step = math.lcm(*blocks)
    if step * MOST_MULTIPLES > most:
        step = max(blocks)
    if most < step:
        raise UsageError(f"--memory: {bytes_:.0f} bytes hold no {step} x {step} matrix: give more")
    return most // step * step


def memory(text: str) -> float:
    """Bytes of a node: a part of this one's memory, or a size with or without a unit."""
    part = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", text)
    size = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text)
    if part and 0 < float(part[1]) <= 100:
        here = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return float(part[1]) / 100 * here
    if size and float(size[1]) > 0:
        return float(size[1]) * UNITS[size[2]]
    raise UsageError(f"--memory {text}: is neither a part nor a size: give e.g. 80% or 64GiB")


def _count(option: str, given: int | None, variable: str) -> int:
    return environment.count(variable) if given is None else _checked(option, given)


def _checked(option: str, count: int) -> int:
    if not 1 <= count <= MOST:
        raise UsageError(f"{option} {count}: must be from 1 to {MOST}")
    return count


def _numbers(option: str, text: str) -> list[int]:
    words = text.split(",")
    if not all(re.fullmatch("[0-9]{1,10}", word) and 0 < int(word) <= MOST for word in words):
        raise UsageError(f"{option} {text}: must be whole numbers above 0, such as 128,192")
    if len(words) > 20:
        raise UsageError(f"{option}: HPL takes 20 at most: leave out {len(words) - 20}")
    return [int(word) for word in words]


def _spaced(numbers: list[int]) -> str:
    return " ".join(map(str, numbers))


# -- the output ----------------------------------------------------------------------------------

_TEST = re.compile(r"^(W\S+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+([\d.]+)\s+([\d.eE+-]+)\s*$")
_CHECK = re.compile(r"^\|\|Ax-b\|\|_oo/\(.*\)=\s*(\S+)\s*\.+\s*(PASSED|FAILED)\s*$")
_VERSION = re.compile(r"^HPLinpack (\d\S*)\s+--", re.MULTILINE)
#: Below its test, since HPL 2.1: by C's ctime(), in the machine's own time.
_START = re.compile(
    r"^HPL_pdgesv\(\) start time \w+ (\w+) +(\d\d?) (\d\d):(\d\d):(\d\d) (\d{4})\s*$"
)
#: Of HPC Challenge, between its parts.
_SINCE_1970 = re.compile(r"^Current time \((\d{1,11})\) is ")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass
class Test:
    """One line of HPL's table, and the check below it."""

    code: str  # HPL's own, of its parameters
    n: int
    nb: int
    p: int
    q: int
    flops_per_s: float
    passed: bool = False
    start_s: float | None = None  # since 1970; None: not told

    @property
    def ranks(self) -> int:
        """Of the grid."""
        return self.p * self.q

    @property
    def operations(self) -> float:
        """As HPL counts them."""
        return 2 / 3 * self.n**3 + 3 / 2 * self.n**2


def tests_of(text: str) -> list[Test]:
    """The tests of HPL's output, each with the check that follows it."""
    tests: list[Test] = []
    checked, part_s = True, None
    for line in text.splitlines():
        test, check = _TEST.match(line), _CHECK.match(line)
        part_s = _part_s(line) or part_s
        if test:
            n, nb, p, q = map(int, test.groups()[1:5])
            rate = float(test[7]) * 1e9
            tests.append(Test(test[1], n, nb, p, q, rate, start_s=part_s))
            checked = False
        elif not checked and (start := _START.match(line)):
            tests[-1].start_s = _start_s(start)
        elif check and not checked:
            # HPL compares with 16; a NaN is not less.
            tests[-1].passed = check[2] == "PASSED" and float(check[1]) < 16
            checked = True
    return tests


def _part_s(line: str) -> float | None:
    """When HPC Challenge's part before ended, and so HPL began."""
    ended = _SINCE_1970.match(line)
    return float(ended[1]) if ended else None


def _start_s(told: re.Match) -> float | None:
    if told[1] not in MONTHS:
        return None
    day, hour, minute, second, year = map(int, told.groups()[1:])
    try:
        return time.mktime((year, MONTHS.index(told[1]) + 1, day, hour, minute, second, 0, 0, -1))
    except (ValueError, OverflowError):
        return None


def write_results(options: argparse.Namespace) -> int:
    """`joulemark hpl results`."""
    written = _read(options.output)
    tests = tests_of(written)
    if not tests:
        raise UserError(f"{options.output}: no line of a test: is this HPL's output, and whole?")
    nodes = _count("--nodes", options.nodes, "SLURM_JOB_NUM_NODES")
    energy = outside.energy_of(_read(options.energy), nodes) if options.energy else None
    if energy and len(tests) > 1:
        raise UsageError(f"--energy: {options.output} has {len(tests)} tests: run HPL for each")
    threads = _checked("--threads", options.threads)
    if options.program is None:
        why = "nothing is known of the build of what wrote it: name that by --program"
        output.tell([f"{options.output}: {why}"])
    build = program.Build() if options.program is None else program.build(options.program)
    version = _VERSION.search(written)
    manifest = outside.manifest_of(version and version[1], build)
    ran = outside.here()
    is_told = options.nodes is not None or os.environ.get("SLURM_JOB_NUM_NODES")
    lines = [
        # where nobody told, several ranks may be anywhere
        cooked(test, threads, nodes if is_told or test.ranks == 1 else None, energy, manifest, ran)
        for test in tests
    ]
    outside.put(lines, options.cooked)
    for test in tests:
        if not test.passed:
            what = f"HPL {test.code} N {test.n} NB {test.nb}"
            why = "its residual check did not pass; it is reported without performance"
            output.tell([f"{what}: {why}"])
    return 0 if all(test.passed for test in tests) else 1


def cooked(
    test: Test,
    threads: int,
    nodes: int | None,
    energy: outside.Energy | None,
    manifest: dict,
    ran: dict,
) -> dict:
    """One line, as benchkit's programs write it; HPL tells its version alone."""
    run = outside.Run(
        benchmark="hpl",
        kernel="linpack",
        variant=f"nb{test.nb}",
        size=test.n,
        operations=test.operations,
        operation="flop",
        unit="F/s",
        threads=threads,
        ranks=test.ranks,
        nodes=nodes,
        start_s=test.start_s,
    )
    performance = test.flops_per_s if test.passed else None
    return outside.line(run, performance, energy, manifest, ran)


def _read(place: str) -> str:
    if place == "-":
        return sys.stdin.read()
    try:
        return Path(place).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"{place}: {error.strerror}: name what HPL wrote") from None
