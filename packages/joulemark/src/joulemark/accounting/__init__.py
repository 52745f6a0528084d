# From nodes' records to what each job used: merged, charged, summed.
# SPDX-License-Identifier: Apache-2.0 OR MIT
