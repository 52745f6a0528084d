# What jobs did on storage servers.
# SPDX-License-Identifier: Apache-2.0 OR MIT
