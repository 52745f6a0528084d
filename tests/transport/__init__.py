"""Records on their way from a node to the site: dead folders, full disks, killed brokers."""

# SPDX-License-Identifier: Apache-2.0 OR MIT
