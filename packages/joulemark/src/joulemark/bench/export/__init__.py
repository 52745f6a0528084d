# Benchmarks' results in the formats of other programs: Thicket, ReFrame, Benchpark and its Ramble.
# SPDX-License-Identifier: Apache-2.0 OR MIT
