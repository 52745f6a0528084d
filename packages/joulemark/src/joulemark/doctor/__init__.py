# `joulemark doctor`: finds what is set up wrongly before a site's jobs do.
# SPDX-License-Identifier: Apache-2.0 OR MIT
