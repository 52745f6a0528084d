"""The disk of a machine, made of Debian's packages: of the release that is here, by its apt."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from environments.building.lock import locked
from tests.cluster import ClusterError

HERE = Path(__file__).resolve().parent
MAKING_LIMIT_S = 1800.0
SIZE = "6G"  # of which a file takes what is used
ADDRESS = "10.0.2.15/24"  # QEMU's own network has the host at 10.0.2.2
UNWANTED = (
    # they begin with the machine where they are installed; here a test says what runs
    *("munge", "mariadb", "slurmctld", "slurmd", "slurmdbd"),
    # they work in the background whenever a machine has just begun
    *("apt-daily.timer", "apt-daily-upgrade.timer", "e2scrub_all.timer", "dpkg-db-backup.timer"),
    "systemd-networkd-wait-online",  # takes ten seconds to look at one interface
)

FILES = {
    "etc/hostname": "node1\n",
    "etc/hosts": "127.0.0.1 localhost\n127.0.1.1 node1\n",
    "etc/fstab": "/dev/vda / ext4 rw,errors=remount-ro 0 1\n",
    "etc/systemd/network/lan.network": f"[Match]\nType=ether\n[Network]\nAddress={ADDRESS}\n",
    # a log that outlives a power cut, for who looks into why
    "etc/systemd/journald.conf.d/keep.conf": "[Journal]\nStorage=persistent\nSyncIntervalSec=1\n",
}
#: a small initrd, which QEMU has unpacked in a second
INITRD = {
    "etc/initramfs-tools/conf.d/small": "MODULES=list\nCOMPRESS=lz4\n",
    "etc/initramfs-tools/hooks/disk": """#!/bin/sh
[ "$1" != prereqs ] || exit 0
. /usr/share/initramfs-tools/hook-functions
manual_add_modules virtio_pci virtio_blk ext4
""",
}


@dataclass(frozen=True)
class Image:
    folder: Path

    @property
    def disk(self) -> Path:
        return self.folder / "disk.img"

    @property
    def kernel(self) -> Path:
        return self.folder / "vmlinuz"

    @property
    def initrd(self) -> Path:
        return self.folder / "initrd.img"

    @property
    def key(self) -> Path:
        """By which its root lets us in."""
        return self.folder / "key"


def image() -> Image:
    """Made where it is not there yet; raises ClusterError where it cannot be."""
    if os.geteuid() != 0:
        raise ClusterError("only root can make the disk of a machine")
    sources = list(_sources())
    recipe = "\n".join([Path(__file__).read_text(), *_packages(), *sources])
    digest = hashlib.sha256(recipe.encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "joulemark"
    folder = cache / f"machine-{digest}"
    with locked(folder.with_suffix(".lock"), MAKING_LIMIT_S):
        if not folder.exists():
            _make(folder, sources)
    return Image(folder)


def _packages() -> list[str]:
    lines = (HERE / "packages.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _sources() -> Iterator[str]:
    """Debian's own repositories, as this machine's apt names them; none of others."""
    keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
    targets = ("apt-get", "indextargets", "Created-By: Packages", "Origin: Debian")
    for line in _run(*targets, "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)").splitlines():
        yield f"deb [signed-by={keyring}] {line}"


def _make(folder: Path, sources: list[str]) -> None:
    """Under its final name only once it is whole."""
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    image, root = Image(partial), partial / "root"
    _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", image.key)
    early, late = partial / "early", partial / "late"
    _write_all(early, INITRD)
    key = image.key.with_suffix(".pub").read_text()
    _write_all(late, {**FILES, "root/.ssh/authorized_keys": key})
    _run(
        *("unshare", "--mount"),  # what it mounts ends with it, however that ends
        *("mmdebstrap", "--mode=root", "--variant=minbase", "--quiet"),
        f"--include={','.join(_packages())}",
        *("--dpkgopt=force-unsafe-io", "--dpkgopt=path-exclude=/usr/share/doc/*"),
        f"--essential-hook=cp -r {early}/. $1",
        f"--customize-hook=cp -r {late}/. $1",
        "--customize-hook=chroot $1 systemctl --quiet enable systemd-networkd",
        f"--customize-hook=chroot $1 systemctl --quiet disable {' '.join(UNWANTED)}",
        *("", root, *sources),
    )
    shutil.copy(next(root.glob("boot/vmlinuz-*")), image.kernel)
    shutil.copy(next(root.glob("boot/initrd.img-*")), image.initrd)
    _run("mkfs.ext4", "-q", "-d", root, image.disk, SIZE)
    for scaffold in (root, early, late):
        shutil.rmtree(scaffold)
    partial.rename(folder)


def _write_all(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if text.startswith("#!") else 0o600 if ".ssh" in name else 0o644)


def _run(*words: object) -> str:
    done = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, timeout=MAKING_LIMIT_S
    )
    if done.returncode:
        raise ClusterError(f"{words[0]} failed: {done.stderr[-2000:]}")
    return done.stdout
