# What environments/build is made of: steps (commands and logs), and the two ways to build.
# SPDX-License-Identifier: Apache-2.0 OR MIT
