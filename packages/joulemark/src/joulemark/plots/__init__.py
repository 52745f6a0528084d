# What is drawn with matplotlib; nothing outside of this room imports it.
# SPDX-License-Identifier: Apache-2.0 OR MIT
