# What environments/build is made of: steps (commands and logs), and the two ways to build.
# SPDX-License-Identifier: Apache-2.0 OR MIT

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "spack-repo"))  # recipes' helpers
