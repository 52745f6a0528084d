# `joulemark store KIND`: what an administrator does to the site's store; one module a kind.
# SPDX-License-Identifier: Apache-2.0 OR MIT
SUMMARY = "correct a job's charge, list corrections, prune old jobs"

COMMANDS = ("correct", "corrections", "prune")
