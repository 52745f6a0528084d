# The exceptions that a user sees as a message instead of a traceback.
# SPDX-License-Identifier: Apache-2.0 OR MIT
class UserError(Exception):
    """Says what is wrong, where, and what to do about it."""

    exit_code = 1


class UsageError(UserError):
    """Arguments or the configuration are wrong: another try with the same ends the same."""

    exit_code = 2


def module_missing(what: str, module: str, extra: str) -> UserError:
    """How to get a Python module that only some do with."""
    return UserError(
        f"{what}: the Python module {module} is missing: pip install 'joulemark[{extra}]', or "
        f"Spack's joulemark+{extra}"
    )
