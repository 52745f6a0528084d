# Finds a CUDA toolkit on this machine; installs PyPI's into a folder for those who ask for it.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from tests import pypi
from tests.pypi import Unavailable

REQUIREMENTS = Path(__file__).resolve().parents[1] / "requirements-cuda.txt"


def find(folder: Path | None = None) -> Path | None:
    """nvcc: $CUDACXX, the PATH's, the usual place's, or one that `install` left in the folder."""
    named = os.environ.get("CUDACXX")
    found = named or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if Path(found).is_file():
        return Path(found)
    return next(iter(sorted(folder.glob("nvidia/cu*/bin/nvcc"))), None) if folder else None


def install(folder: Path) -> Path:
    """nvcc of PyPI, in the folder, made again when the requirements change; 1.7 GB."""
    pypi.install("CUDA", REQUIREMENTS, folder)
    nvcc = find(folder)
    if nvcc is None:
        raise Unavailable(f"{folder} has no nvcc: see {REQUIREMENTS.name}")
    return nvcc


def options(nvcc: Path, architecture: str) -> list[str]:
    """Of CMake, for a benchmark with its backend cuda."""
    return [
        "-DBENCH_CUDA=ON",
        f"-DCMAKE_CUDA_COMPILER={nvcc}",
        f"-DCMAKE_CUDA_ARCHITECTURES={architecture}",
    ]


def gpu() -> str | None:
    """The first GPU's name; None where the driver has none."""
    query = shutil.which("nvidia-smi")
    if query is None:
        return None
    words = [query, "--query-gpu=name", "--format=csv,noheader"]
    asked = subprocess.run(words, capture_output=True, text=True, timeout=60)
    names = asked.stdout.strip().splitlines()
    return names[0].strip() if asked.returncode == 0 and names else None


def version(nvcc: Path) -> str:
    """nvcc's own version, such as 13.0.88."""
    said = subprocess.run([nvcc, "--version"], capture_output=True, text=True, timeout=60).stdout
    return re.search(r"release .*, V(\S+)", said)[1]


def is_for_a_gpu(program: Path) -> bool:
    """Whether there is code for a GPU in it, or it is linked with one of CUDA's libraries."""
    words = ["readelf", "--section-headers", "--dynamic", "--wide", program]
    said = subprocess.run(words, capture_output=True, text=True, timeout=60).stdout
    return ".nv_fatbin" in said or bool(re.search(r"\(NEEDED\).*\[libcu", said))
