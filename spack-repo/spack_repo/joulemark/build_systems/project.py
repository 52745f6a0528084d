# The project: where it lies and who keeps its recipes. `spack-repo/release` writes the places.
# SPDX-License-Identifier: Apache-2.0 OR MIT

#: its git repository; this one is nobody's until the first release
GIT = "https://example.org/joulemark.git"
HOMEPAGE = GIT.removesuffix(".git")

#: the folder of the releases' tarballs, for a release that is fetched as one
TARBALLS = "https://example.org/joulemark/releases"

#: accounts at GitHub, whom Spack's maintainers ask
MAINTAINERS = ()
