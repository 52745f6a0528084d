"""Records on their way from a node to the site: folders that hang, disks that fill, brokers that die."""

# SPDX-License-Identifier: Apache-2.0 OR MIT
