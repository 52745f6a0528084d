# `python -m joulemark` is the same command as `joulemark`.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import sys

from joulemark.cli import main

sys.exit(main())
