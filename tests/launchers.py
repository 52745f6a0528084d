"""CMake's options for compiling by ccache: each new checkout compiles the same files."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import shutil


def launchers() -> list[str]:
    """None where ccache is not installed."""
    if not shutil.which("ccache"):
        return []
    return [f"-DCMAKE_{language}_COMPILER_LAUNCHER=ccache" for language in ("C", "CXX")]
