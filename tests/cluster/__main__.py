"""usage: python3 -m tests.cluster folder     says where this checkout's state is"""

# SPDX-License-Identifier: Apache-2.0 OR MIT

import sys

from tests.cluster import state_folder

if sys.argv[1:] != ["folder"]:
    sys.exit(__doc__)
print(state_folder())
