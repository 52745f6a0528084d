# Digest of a source tree: tells recipes and environments/build that sources have changed.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import fnmatch
import hashlib
import os

#: folders that building or testing leaves in a source tree: no part of the sources
GENERATED = ("build", "build-*", "__pycache__", "*.egg-info", ".*")
#: what is read or tried, and what editors leave: nothing of it is built
NOT_BUILT = ("tests", "guides", "*.md", "*~", "*.orig", "*.rej")


def is_one_of(name: str, patterns: tuple) -> bool:
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


def tree_digest(root: str) -> bytes:
    """Digest of what is built of a tree: paths and contents, the same wherever the tree lies."""
    digest = hashlib.sha256()
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(n for n in folders if not is_one_of(n, (*GENERATED, *NOT_BUILT)))
        for name in sorted(n for n in files if not is_one_of(n, (".*", *NOT_BUILT))):
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                content = hashlib.sha256(file.read()).digest()
            digest.update(os.path.relpath(path, root).encode() + b"\0" + content)
    return digest.digest()
