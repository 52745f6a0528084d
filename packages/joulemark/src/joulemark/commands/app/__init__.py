# `joulemark app`: applications that are not ours; one module each.
# SPDX-License-Identifier: Apache-2.0 OR MIT
SUMMARY = "run applications that are not ours, such as fio or IOR, with the joules of each phase"
EPILOG = """\
Each is a file NAME.yaml of packages/apps, or of the folders in $JOULEMARK_APPS: its Spack spec,
settings, commands, figures and what verifies them. packages/apps/README.md says how to add one;
job-templates/app.sbatch runs them.
"""

COMMANDS = ("list", "run", "results")
