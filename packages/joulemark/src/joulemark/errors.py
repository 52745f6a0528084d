# The one exception that a user sees as a message instead of a traceback.
# SPDX-License-Identifier: Apache-2.0 OR MIT
class UserError(Exception):
    """Says what is wrong, where, and what to do about it."""


def module_missing(what: str, module: str, extra: str) -> UserError:
    """How to get a Python module that only some do with."""
    return UserError(
        f"{what}: the Python module {module} is missing: pip install 'joulemark[{extra}]', or "
        f"Spack's joulemark+{extra}"
    )
