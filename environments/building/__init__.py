# What environments/build is made of: steps (commands and logs), and the two ways to build.
# It imports the recipes' helpers: who imports with_cmake or with_spack has spack-repo on his path.
# SPDX-License-Identifier: Apache-2.0 OR MIT
