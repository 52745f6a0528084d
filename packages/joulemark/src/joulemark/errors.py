# The one exception that a user sees as a message instead of a traceback.
# SPDX-License-Identifier: Apache-2.0 OR MIT
class UserError(Exception):
    """Says what is wrong, where, and what to do about it."""
