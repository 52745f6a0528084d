# Digest of a source tree: tells recipes and environments/build that sources have changed.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import fnmatch
import hashlib
import os

#: folders that building, testing or a job leaves in a source tree: no part of the sources
GENERATED = ("build", "build-*", "__pycache__", "*.egg-info", "hpl.*.nb*", ".*")
#: what is read or tried, and what editors leave: nothing of it is built
NOT_BUILT = ("tests", "guides", "*.md", "*~", "*.orig", "*.rej")
#: files of jobs that were submitted in a source tree
LEFT_BY_JOBS = ("*.out", "*.cooked.jsonl", "*.raw.txt", "core", "core.[0-9]*")


def is_one_of(name: str, patterns: tuple) -> bool:
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


def tree_digest(root: str) -> bytes:
    """Digest of what is built of a tree: paths and contents, the same wherever the tree lies."""
    digest = hashlib.sha256()
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(n for n in folders if not is_one_of(n, (*GENERATED, *NOT_BUILT)))
        left_out = (".*", *NOT_BUILT, *LEFT_BY_JOBS)
        for name in sorted(n for n in files if not is_one_of(n, left_out)):
            path = os.path.join(folder, name)
            content = hashlib.sha256(content_of(path)).digest()
            digest.update(os.path.relpath(path, root).encode() + b"\0" + content)
    return digest.digest()


def content_of(path: str) -> bytes:
    """What is in a file; of a link that leads nowhere, where it leads."""
    if not os.path.exists(path):
        return os.readlink(path).encode()
    with open(path, "rb") as file:
        return file.read()
