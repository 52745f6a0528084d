# Joulemark's Python command; nothing is imported here, so that `joulemark merge` starts fast.
# SPDX-License-Identifier: Apache-2.0 OR MIT
__version__ = "0.1.0"
