"""Compiles a .cu or .hip file by a C++ compiler: `launches.py COMPILER ARGUMENT... -c FILE.cu`.

CMake puts it before each C++ compiler's command. The file is preprocessed; then what is no C++ is
rewritten, all on its own line, and compiled; nothing else changes:

    kernel<T><<<grid, block, bytes, stream>>>(a, b);    a launch: class Launch of cuda_runtime.h
    __shared__ double part[8][9];                       memory that the block's threads share
    extern __shared__ double all[];                     that of the launch's third argument
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));    a function of that name, with the
                                                        operands in the instruction's order

What looks like one of them and cannot be read is an error.
"""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import re
import subprocess
import sys

KERNEL = re.compile(r"[A-Za-z_][\w:]*(?:<[\w\s,:*-]*>)?\s*\Z")
EXTERN = re.compile(r"\bextern\s+__shared__\s+([\w:\s]+?)\s*(\w+)\[\];")
SHARED = re.compile(r"(?<!extern )__shared__\s+([\w:<>\s]+?)\s*\b(\w+)((?:\[[^][;]*\])*)\s*;")
ASM = re.compile(r'\basm\s*\(\s*"([\w.]+) ((?:[^";]|"\s*")*);"\s*:\s*("[^:;]+):\s*("[^:;]+)\);')
OPERAND = re.compile(r'"[=+]?\w"\s*\(((?:[^()]|\([^()]*\))*)\)')
TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*"')
WITH_VALUE = ("-o", "-MF", "-MT", "-MQ", "-x")
PAIRS = {"(": ")", "[": "]", "{": "}"}


class Unreadable(Exception):
    """A launch, a declaration or an instruction that this does not understand."""


def parts(text: str, start: int, end: str) -> tuple[list[str], int]:
    """What lies between commas from `start` to the text `end`, and where that is over."""
    open_ones, found, begin = [], [], start
    at = start
    while at < len(text):
        quoted = TEXT.match(text, at)
        if quoted:
            at = quoted.end()
            continue
        if not open_ones and (text.startswith(end, at) or text[at] == ","):
            found.append(text[begin:at].strip())
            begin = at + 1
            if text[at] != ",":
                return [part for part in found if part], at + len(end)
        if text[at] in PAIRS:
            open_ones.append(PAIRS[text[at]])
        elif open_ones and text[at] == open_ones[-1]:
            open_ones.pop()
        at += 1
    raise Unreadable(f"no {end} after: {text[start : start + 60]}")


def launch(kernel: str, configuration: list[str], arguments: list[str], lines: int) -> str:
    """A launch in C++, as many lines further on as the original."""
    if not 2 <= len(configuration) <= 4:
        raise Unreadable(f"a launch of {kernel} with <<<{', '.join(configuration)}>>>")
    place = "{__builtin_FILE(), __builtin_LINE()}"
    head = ", ".join([json.dumps(kernel), place, *configuration])
    call = f"[=](auto... a) {{ {kernel}(a...); }}"
    made = f"::cuda_on_cpu::Launch({head}).start({', '.join([call, *arguments])})"
    return made + "\n" * (lines - made.count("\n"))


def rewrite_launches(text: str) -> str:
    done, at = [], 0
    masked = TEXT.sub(lambda quoted: "_" * len(quoted[0]), text)
    while (found := masked.find("<<<", at)) >= 0:
        before = KERNEL.search(
            text, text.rfind("\n", 0, found - 200) + 1 if found > 200 else 0, found
        )
        if not before:
            raise Unreadable(f"no kernel's name before: {text[found : found + 60]}")
        configuration, end = parts(text, found + 3, ">>>")
        if not text[end:].lstrip().startswith("("):
            raise Unreadable(f"no arguments after: {text[found:end]}")
        arguments, end = parts(text, text.index("(", end) + 1, ")")
        lines = text.count("\n", before.start(), end)
        done += [text[at : before.start()]]
        done += [launch(before[0].strip(), configuration, arguments, lines)]
        at = end
    return "".join([*done, text[at:]])


def rewrite(text: str) -> str:
    """A preprocessed CUDA source as C++."""
    text = EXTERN.sub(r"\1 *\2 = static_cast<\1 *>(::cuda_on_cpu::dynamic_shared_memory());", text)
    text = SHARED.sub(
        r'static char shared_\2; auto &\2 = ::cuda_on_cpu::shared<\1\3>(&shared_\2, "\2");', text
    )
    text = ASM.sub(instruction, text)
    for left in re.findall(r".*(?:__shared__|\basm\b[^;]*\"[\w.]+ %).*", text):
        raise Unreadable(left.strip())
    return rewrite_launches(text)


def instruction(found: re.Match) -> str:
    operands = OPERAND.findall(found[3]) + OPERAND.findall(found[4])
    used = ", ".join(operands[int(number)] for number in re.findall(r"%(\d+)", found[2]))
    call = f"::cuda_on_cpu::ptx::{found[1].replace('.', '_')}({used});"
    return call + "\n" * found[0].count("\n")


def without(words: list[str], *unwanted: str) -> list[str]:
    """The words but those, each with its value where it has one."""
    kept, words = [], iter(words)
    for word in words:
        if word not in unwanted:
            kept.append(word)
        elif word in WITH_VALUE:
            next(words)
    return kept


def main(words: list[str]) -> int:
    source = words[-1]
    if not source.endswith((".cu", ".hip")):
        return subprocess.run(words).returncode
    words = without(words, "-x")
    first = [
        *without(words[:-1], "-c", "-o"),
        "-E",
        *(["-include", "cuda_runtime.h"] if source.endswith(".cu") else []),
        "-x",
        "c++",
        source,
    ]
    said = subprocess.run(first, stdout=subprocess.PIPE, text=True)
    if said.returncode:
        return said.returncode
    try:
        text = rewrite(said.stdout)
    except Unreadable as why:
        print(f"{source}: cuda-on-cpu: cannot read: {why}", file=sys.stderr)
        return 1
    then = [*without(words[:-1], "-MD", "-MF", "-MT"), "-x", "c++-cpp-output", "-"]
    return subprocess.run(then, input=text, text=True).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
