"""What tests/faults is made of: jobs under random kills, and the books that must hold."""

# SPDX-License-Identifier: Apache-2.0 OR MIT
