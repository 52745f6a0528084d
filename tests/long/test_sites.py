"""Each example site: all of Joulemark takes its compiler, MPI, BLAS and target."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import pytest

from tests.spack.sites import SITES, concretized, environments, must_be_as_told

__all__ = ["environments"]


@pytest.mark.parametrize("name", SITES)
def test_an_example_site_concretizes(name, environments):
    site = SITES[name]
    must_be_as_told(concretized(site, name, environments, site.environment), site)
