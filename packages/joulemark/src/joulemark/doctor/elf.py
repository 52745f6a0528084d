# Reads a number out of a plugin without loading it: a plugin's undefined symbols are Slurm's own.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import struct
from pathlib import Path

LOAD, DYNAMIC_SYMBOLS = 1, 11  # PT_LOAD, SHT_DYNSYM


def number(path: Path, symbol: str) -> int | None:
    """The 32-bit number that a little-endian ELF64 file has by this name; None: it has none."""
    data = path.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        return None
    try:
        address = _address(data, symbol.encode())
        offset = None if address is None else _offset(data, address)
        return None if offset is None else struct.unpack_from("<I", data, offset)[0]
    except struct.error:
        return None


def _address(data: bytes, symbol: bytes) -> int | None:
    sections = _table(data, 0x28, 0x3A, "<IIQQQQIIQQ")
    for _, kind, _, _, offset, size, link, _, _, entry in sections:
        if kind != DYNAMIC_SYMBOLS or not entry:
            continue
        names = sections[link][4]
        for at in range(offset, offset + size, entry):
            name, _, _, section, value, _ = struct.unpack_from("<IBBHQQ", data, at)
            if section and data[names + name :].startswith(symbol + b"\0"):
                return value
    return None


def _offset(data: bytes, address: int) -> int | None:
    for kind, _, offset, start, _, size, _, _ in _table(data, 0x20, 0x36, "<IIQQQQQQ"):
        if kind == LOAD and start <= address < start + size:
            return offset + address - start
    return None


def _table(data: bytes, offset_at: int, size_at: int, layout: str) -> list[tuple]:
    (offset,) = struct.unpack_from("<Q", data, offset_at)
    size, count = struct.unpack_from("<HH", data, size_at)
    return [struct.unpack_from(layout, data, offset + i * size) for i in range(count)]
