# How a program that is not ours was built: by its file, its libraries and what Spack left with it.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from joulemark import output
from joulemark.errors import UsageError

ELF = b"\x7fELF"
DIGITS = 12  # of a file's digest
#: Compilers by Spack's names, also of before 1.0: benchkit's manifests have them by CMake's.
COMPILERS = {
    "gcc": "GNU",
    "llvm": "Clang",
    "clang": "Clang",
    "apple-clang": "AppleClang",
    "intel-oneapi-compilers": "IntelLLVM",
    "oneapi": "IntelLLVM",
    "nvhpc": "NVHPC",
}
#: Spack's kinds of flags, which are in a spec before its variants.
FLAGS = ("cflags", "cppflags", "cxxflags", "fflags", "ldflags", "ldlibs")
_MISSING = re.compile(r"^\s+(\S+) => not found$", re.MULTILINE)
_LDD = re.compile(r"^\s+(?:\S+ => )?(/.+) \(0x[0-9a-f]+\)$", re.MULTILINE)


@dataclass(frozen=True)
class Build:
    """As benchkit's manifest has it of our own programs; None: not known."""

    file: str | None = None  # its name and digest, where Spack's hash does not tell the build
    compiler: str | None = None
    libraries: str | None = None
    spack_spec: str | None = None
    spack_hash: str | None = None


def build(place: str) -> Build:
    """Of --program."""
    path = Path(os.path.realpath(place))
    try:
        content = path.read_bytes()
    except OSError as error:
        fix = 'give its path, such as "$(command -v xhpl)"'
        raise UsageError(f"--program {place}: {error.strerror}: {fix}") from None
    is_elf = content.startswith(ELF)
    if not is_elf:
        output.tell([f"--program {place}: is no program of ELF, so its libraries are not known"])
    found = _by_spack(path)
    digest = hashlib.sha256(content).hexdigest()[:DIGITS]
    return Build(
        # libraries do not tell which are linked statically, nor how it was compiled
        file=f"{output.printable(path.name)} {digest}" if is_elf and found is None else None,
        libraries=_libraries(path) if is_elf else None,
        **(found or {}),
    )


def _libraries(path: Path) -> str | None:
    """Files of the shared libraries that it starts with here, as in benchkit's machine.c."""
    try:
        ldd = subprocess.run(
            ["ldd", path],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, "LC_ALL": "C"},
        )
    except OSError:
        return None
    missing = _MISSING.findall(ldd.stdout)
    if missing:
        fix = "call this with the modules that it ran with"
        output.tell([f"--program {path}: ldd finds no {', '.join(missing)}: {fix}"])
        return None
    names = (os.path.basename(os.path.realpath(file)) for file in _LDD.findall(ldd.stdout))
    libraries = [name for name in names if name.startswith("lib")]
    return " ".join([*_libc(libraries), *libraries]) or None


def _libc(libraries: list[str]) -> Iterator[str]:
    """`glibc-2.36`, whose file is libc.so.6 in every version."""
    if "libc.so.6" in libraries and "CS_GNU_LIBC_VERSION" in os.confstr_names:
        yield os.confstr("CS_GNU_LIBC_VERSION").replace(" ", "-")


def _by_spack(path: Path) -> dict[str, str | None] | None:
    """What Spack says of the prefix that the program is in; None: it did not build it."""
    for prefix in path.parents:
        file = prefix / ".spack/spec.json"
        try:
            nodes = json.loads(file.read_text(encoding="utf-8"))["spec"]["nodes"]
            return {
                "compiler": _compiler(nodes),
                "spack_spec": _spec(nodes[0]),
                "spack_hash": str(nodes[0]["hash"]),
            }
        except OSError:
            continue  # no prefix of Spack's
        except (ValueError, LookupError, TypeError, AttributeError):
            output.tell([f"{file}: is not as Spack writes it: the program's spec is not known"])
            return None
    return None


def _compiler(nodes: list[dict]) -> str | None:
    """That of C: a dependency, or a key of its own before Spack 1.0."""
    one = nodes[0].get("compiler")
    for needed in nodes[0].get("dependencies", ()):
        if "c" in needed.get("parameters", {}).get("virtuals", ()):
            one = {node["hash"]: node for node in nodes}[needed["hash"]]
    return one and f"{COMPILERS.get(one['name'], one['name'])} {one['version']}"


def _spec(node: dict) -> str:
    """As our recipes have it by spec.format(): name, version, flags, variants and target."""
    values = dict(sorted(node["parameters"].items()))
    flags = {key: " ".join(values.pop(key, ())) for key in FLAGS}
    target = node["arch"]["target"]
    words = [
        f"{node['name']}@{node['version']}",
        *(f" {key}={_quoted(text)}" for key, text in flags.items() if text),
        " " if any(flags.values()) else "",
        *(f"{'+' if on else '~'}{key}" for key, on in values.items() if isinstance(on, bool)),
    ]
    for key, value in values.items():
        if isinstance(value, list):
            words.append(f" {key}:={_quoted(','.join(value))}")
        elif not isinstance(value, bool):
            words.append(f" {key}={_quoted(value)}")
    words.append(f" target={target['name'] if isinstance(target, dict) else target}")
    return " ".join("".join(words).split())


def _quoted(text: str) -> str:
    return text if re.fullmatch(r"[\w,/.\[\]-]+", text) else f"'{text}'"
