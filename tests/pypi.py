"""Programs of PyPI's that few tests need: installed into the state's cache when these run."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

INSTALL_LIMIT_S = 1500


class Unavailable(Exception):
    """They are not here, and cannot be had; the text says why."""


def install(what: str, requirements: Path, folder: Path) -> None:
    """Into the folder, made again when the requirements change."""
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()
    stamp = folder / "made-from"
    if stamp.exists() and stamp.read_text() == digest:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--no-cache-dir"]
    words += ["--retries", "1", "--target", str(folder), "-r", str(requirements)]
    try:
        subprocess.run(words, check=True, capture_output=True, timeout=INSTALL_LIMIT_S)
    except subprocess.CalledProcessError as error:
        last = error.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise Unavailable(f"PyPI's {what} cannot be installed: {' '.join(last)}") from None
    except subprocess.TimeoutExpired:
        raise Unavailable(f"PyPI's {what}: no end after {INSTALL_LIMIT_S} s") from None
    stamp.write_text(digest)
