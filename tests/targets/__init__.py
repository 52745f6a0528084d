# Benchmarks for other targets than this machine alone: GPUs, OpenCL, ARM, DSP.
# SPDX-License-Identifier: Apache-2.0 OR MIT
