"""The runner behind tests/all: what there is to run, how it runs, and what came of it."""

# SPDX-License-Identifier: Apache-2.0 OR MIT
