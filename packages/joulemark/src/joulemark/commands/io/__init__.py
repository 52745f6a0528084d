# `joulemark io KIND`: what concerns storage; one module a kind.
# SPDX-License-Identifier: Apache-2.0 OR MIT
SUMMARY = "collect on a storage server what jobs did there"

COMMANDS = ("collect",)
