# The commands, one module each, loaded only when it runs or for help that lists them all.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""To add a command NAME: write commands/NAME.py and add NAME to COMMANDS. A module has

SUMMARY                 what it does, for the list of commands: lower case, no full stop
EPILOG                  text below its options in its --help: notes, `examples:`
add_arguments(parser)   its options; keep heavy imports out of the module's top
run(options)            does it; returns the exit code; raises UserError for what a user can mend

A package with SUMMARY and COMMANDS instead is a group, such as `report`. A module with
main(argv) instead of the last two judges its options itself, as `sacct` does.
"""

COMMANDS = (
    "merge",
    "receive",
    "sacct",
    "job",
    "top",
    "report",
    "compare",
    "diff",
    "trend",
    "export",
    "plan",
    "calibrate",
    "hpl",
    "app",
    "budget",
    "store",
    "io",
    "fs",
    "doctor",
)
