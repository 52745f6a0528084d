# Energy while it is used: what running jobs were charged so far, what nodes draw.
# SPDX-License-Identifier: Apache-2.0 OR MIT
