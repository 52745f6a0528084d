# Digest of a source tree: tells recipes and environments/build that sources have changed.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import fnmatch
import hashlib
import os

#: folders that building or testing leaves in a source tree: no part of the sources
GENERATED = ("build", "build-*", "__pycache__", "*.egg-info", ".*")


def is_generated(folder: str) -> bool:
    return any(fnmatch.fnmatch(folder, pattern) for pattern in GENERATED)


def tree_digest(root: str) -> bytes:
    """Digest of a tree's relative paths and contents, the same wherever the tree lies."""
    digest = hashlib.sha256()
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not is_generated(name))
        for name in sorted(name for name in files if not name.startswith(".")):
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                content = hashlib.sha256(file.read()).digest()
            digest.update(os.path.relpath(path, root).encode() + b"\0" + content)
    return digest.digest()
