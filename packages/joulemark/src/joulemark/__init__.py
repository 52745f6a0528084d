# Joulemark's Python command; nothing is imported here, so that `joulemark merge` starts fast.
# SPDX-License-Identifier: Apache-2.0 OR MIT
__version__ = "0.1.0"


def __getattr__(name: str):
    """`from joulemark import region` is for users' programs; it needs nothing but Python."""
    if name == "region":
        from joulemark.regions import region

        return region
    raise AttributeError(f"module 'joulemark' has no attribute '{name}'")
