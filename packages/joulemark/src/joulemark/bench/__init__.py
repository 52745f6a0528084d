# From cooked lines of benchmarks to tables: this machine's results and published ones.
# SPDX-License-Identifier: Apache-2.0 OR MIT
