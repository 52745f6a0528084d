# PoCL, OpenCL on the CPU: tests/setup brings it, so that it is missing is no reason to skip.
# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import ctypes
import ctypes.util

PLATFORM_NAME = 0x0902


def require() -> None:
    """A test cannot go on without it."""
    there = platforms()
    assert any("Portable Computing Language" in name for name in there), (
        f"no PoCL among OpenCL's platforms {there}: install pocl-opencl-icd (tests/packages.txt)"
    )


def platforms() -> list[str]:
    """The names of this machine's OpenCL platforms."""
    name = ctypes.util.find_library("OpenCL")
    if name is None:
        return []
    library = ctypes.CDLL(name)
    count = ctypes.c_uint()
    if library.clGetPlatformIDs(0, None, ctypes.byref(count)):
        return []
    found = (ctypes.c_void_p * count.value)()
    library.clGetPlatformIDs(count, found, None)
    names = []
    for one in found:
        text = ctypes.create_string_buffer(256)
        library.clGetPlatformInfo(ctypes.c_void_p(one), PLATFORM_NAME, 256, text, None)
        names.append(text.value.decode())
    return names
