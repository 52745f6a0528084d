"""What takes longer than `make test` may: `make test-long` runs it."""

# SPDX-License-Identifier: Apache-2.0 OR MIT
