# Jobs' power over time.
# SPDX-License-Identifier: Apache-2.0 OR MIT
