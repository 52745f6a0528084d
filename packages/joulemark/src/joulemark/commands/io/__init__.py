# `joulemark io KIND`: what concerns storage; one module a kind.
# SPDX-License-Identifier: Apache-2.0 OR MIT
SUMMARY = "collect what jobs did on storage, survey its targets, sweep a Lustre client's calls"

COMMANDS = ("collect", "rpcs", "survey")
