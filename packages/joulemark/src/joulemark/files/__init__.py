# What file systems hold, from the databases that packages/fs-scan writes.
# SPDX-License-Identifier: Apache-2.0 OR MIT
