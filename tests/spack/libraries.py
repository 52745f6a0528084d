"""`spack python` runs it in an environment: what its mod2am is linked with, of externals whose
files are not here. Fails where a recipe cannot tell it by the external's prefix and variants."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

import spack.environment
from spack.error import NoLibrariesError

specs = spack.environment.active_environment().all_specs()
(mod2am,) = (spec for spec in specs if spec.name == "mod2am")
for virtual in ("blas", "scalapack"):
    library = mod2am[virtual]
    if library.external:
        try:
            print(virtual, library, *library.libs)
        except (NoLibrariesError, FileNotFoundError):
            print(virtual, library, "has none here")
