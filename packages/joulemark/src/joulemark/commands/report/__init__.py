# `joulemark report KIND`: tables and plots; one module a kind, as in joulemark.commands.
# SPDX-License-Identifier: Apache-2.0 OR MIT
SUMMARY = "print tables and draw plots of benchmarks' results and of jobs' energy"

COMMANDS = ("table", "plot", "scaling", "interval", "usage", "jobs", "nodes", "profile", "html")
