# `joulemark hpl`: what HPL reads and writes; one module each.
# SPDX-License-Identifier: Apache-2.0 OR MIT
SUMMARY = "write HPL.dat for a machine, and take HPL's results to the reports"
EPILOG = """\
HPL is Spack's own recipe `hpl`; job-templates/hpl.sbatch calls both of these around it.
"""

COMMANDS = ("dat", "results")
