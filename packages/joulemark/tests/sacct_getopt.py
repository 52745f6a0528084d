# Reads a command line as sacct of a release does: by the C library's own getopt_long.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import ctypes
import re
from pathlib import Path

TABLES = (Path(__file__).parent / "data" / "sacct.options").read_text()
LIBC = ctypes.CDLL(None)


class Option(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("has_arg", ctypes.c_int),
        ("flag", ctypes.c_void_p),
        ("val", ctypes.c_int),
    ]


class Sacct:
    """One release's options."""

    def __init__(self, release: str):
        letters, words = re.search(rf"^\[{release}\] (\S+)\n([^\[]+)", TABLES, re.M).groups()
        self.letters = letters.encode()
        found = [re.fullmatch(r"(.*)([012])([A-Za-z]?)", word).groups() for word in words.split()]
        # an option without a letter has a number of its own
        values = [ord(letter) if letter else 256 + i for i, (*_, letter) in enumerate(found)]
        options = [(n.encode(), int(k), None, v) for (n, k, _), v in zip(found, values)]
        self.options = (Option * (len(options) + 1))(*(Option(*one) for one in options))
        self.names = {name: (int(kind), letter) for name, kind, letter in found}
        self._by_value = dict(zip(values, (letter or name for name, _, letter in found)))

    def parse(self, words: list[str]) -> tuple[list[tuple[str, str]], list[str]] | None:
        """(letter or name, value) of each option, and what is none; None: an error."""
        argv = (ctypes.c_char_p * (len(words) + 2))(b"sacct", *(one.encode() for one in words))
        ctypes.c_int.in_dll(LIBC, "opterr").value = 0
        optind = ctypes.c_int.in_dll(LIBC, "optind")
        optind.value = 0
        optarg = ctypes.c_char_p.in_dll(LIBC, "optarg")
        found = []
        count = len(words) + 1
        while (value := LIBC.getopt_long(count, argv, self.letters, self.options, None)) != -1:
            if value in (ord("?"), ord(":")):
                return None
            found.append((self._by_value.get(value, chr(value)), (optarg.value or b"").decode()))
        return found, [one.decode() for one in argv[optind.value : count]]


RELEASES = {name: Sacct(name) for name in re.findall(r"(?m)^\[(.+)\]", TABLES)}
