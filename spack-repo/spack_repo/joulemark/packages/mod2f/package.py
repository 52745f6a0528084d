# SPDX-License-Identifier: Apache-2.0 OR MIT
from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.joulemark.build_systems.benchmark import FFTWS, Benchmark, backends

from spack.package import *


class Mod2f(Benchmark, CudaPackage):
    """Complex Fourier transform of one dimension in double precision: our own, also by MPI; FFTW,
    FFTW-MPI, cuFFT."""

    git_sparse_paths = ("packages/mod2f",)

    version("main")

    backends("openmp", "fftw", "mpi", "cuda", "c66x")

    requires("+fftw", when="+mpi", msg="with mpi comes the variant fftw-mpi")
    requires(
        *(f"^{fftw}+mpi" for fftw in FFTWS),
        policy="any_of",
        when="+mpi",
        msg="fftw-mpi needs FFTW's own interface",
    )
