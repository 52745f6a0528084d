# SPDX-License-Identifier: Apache-2.0 OR MIT
from spack_repo.joulemark.build_systems.benchmark import Benchmark, backends

from spack.package import *


class Mod2f(Benchmark):
    """Complex Fourier transform of one dimension in double precision: our own, also by MPI; FFTW,
    FFTW-MPI, cuFFT."""

    version("0.1.0")

    backends("openmp", "fftw", "mpi", "cuda", "c66x")

    requires("+fftw", when="+mpi", msg="with mpi comes the variant fftw-mpi")
    depends_on("fftw@3: +mpi", when="+mpi")
