"""Runs Spack as it would run on another machine, whose compilers are not here to be asked.

usage: PYTHON elsewhere.py SPACK_ROOT TARGET GLIBC WORD...
TARGET is the processor's name, GLIBC the C library's version; $UNIXCONFDIR/os-release tells of the
distribution. The words are Spack's own."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

import os
import platform
import sys

root, target, glibc, *words = sys.argv[1:]
sys.path[0] = f"{root}/lib/spack"

import spack.vendor.archspec.cpu as cpu  # noqa: E402

processor = cpu.TARGETS[target]
family, here = str(processor.family), os.uname()
cpu.host = lambda: processor
platform.machine = lambda: family
os.uname = lambda: os.uname_result((*here[:4], family))

import spack.main  # noqa: E402
from spack.compilers.libraries import CompilerPropertyDetector  # noqa: E402
from spack.spec import Spec  # noqa: E402


def libc(_compiler: CompilerPropertyDetector) -> Spec:
    spec = Spec(f"glibc@={glibc}")
    spec.external_path = "/usr"
    return spec


CompilerPropertyDetector.compiler_verbose_output = lambda self: ""
CompilerPropertyDetector.default_libc = libc
sys.argv[1:] = words
sys.exit(spack.main.main())
