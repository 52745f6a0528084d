"""The Debian packages of slurm-plugins/site: made by their page in a root of each Debian,
installed, upgraded, removed and purged in another where the sources are not."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.checkout import PROJECT, copy_to
from tests.cluster import CHECKOUT
from tests.versions.slurm import MIRROR

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be other users")

LIMIT_S = 1200
SITE = CHECKOUT / "slurm-plugins" / "site"
VERSION = re.search(
    r"project\(joulemark-slurm VERSION (\S+)", (SITE.parent / "CMakeLists.txt").read_text()
)[1]
REVISIONS = ("1", "2")
CONFIGURATION = "/etc/slurm/joulemark.yaml"
MODULES = ("nvml", "ipmi", "redfish", "snmp", "modbus", "scpi", "mqtt", "prometheus")
#: what Slurm's nodes have, whose packages ours are for, and the reader of man pages
ROOT_HAS = "man-db,systemd,slurmd"
MADE = "/srv/joulemark"  # where the page has them made
#: as an administrator who says yes; of a configuration that both have changed the site's stays
APT = """APT::Get::Assume-Yes "true";
APT::Install-Recommends "false";
DPkg::Options:: "--force-confold";
"""


def done(*words: object, **options: object) -> subprocess.CompletedProcess[str]:
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.run(list(map(str, words)), text=True, timeout=LIMIT_S, **streams, **options)


def must(*words: object, **options: object) -> str:
    ended = done(*words, **options)
    assert ended.returncode == 0, f"{words}: exit {ended.returncode}\n{ended.stdout[-4000:]}"
    return ended.stdout


class Root:
    """Of a Debian: each command sees its own processes alone, and ends with all it has begun;
    AROUND is a command that runs it."""

    def __init__(
        self, folder: Path, suite: str | None = None, around: tuple[Path, ...] = ()
    ) -> None:
        self.folder, self.suite, self.around = folder, suite, around

    def done(self, command: str) -> subprocess.CompletedProcess[str]:
        alone = (*self.around, "unshare", "--mount", "--pid", "--fork", "--kill-child")
        own = (*alone, f"--mount-proc={self.folder}/proc", "chroot", self.folder)
        env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": "/root"}
        env |= {"DEBIAN_FRONTEND": "noninteractive"}
        return done(*own, "sh", "-c", command, env=env)

    def run(self, command: str) -> str:
        ended = self.done(command)
        assert ended.returncode == 0, f"{command}: exit {ended.returncode}\n{ended.stdout[-4000:]}"
        return ended.stdout


def suite() -> str:
    """This machine's Debian."""
    return re.search(r"(?m)^VERSION_CODENAME=(\w+)", Path("/etc/os-release").read_text())[1]


@pytest.fixture(scope="module", params=dict.fromkeys(("bookworm", "trixie", suite())))
def maker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Root]:
    """A Debian with the sources, lintian, and what the page says that packages are made with."""
    folder: Path = tmp_path_factory.mktemp("maker") / "root"
    bootstrap(folder, "lintian", request.param)
    copy_to(folder / "root", *PROJECT)
    yield Root(folder, request.param)
    must("rm", "-rf", "--one-file-system", folder)


@pytest.fixture(scope="module")
def debs(maker: Root) -> Path:
    """Folders of the packages of each revision; the first one's example is another."""
    install, make = commands("Making them")
    maker.run(install)
    made = maker.folder / MADE.lstrip("/")
    for revision in REVISIONS:
        maker.run(f"cd /root; {make} -DJM_REVISION={revision}")
        (made / revision).mkdir()
        for package in made.glob("*.deb"):
            package.rename(made / revision / package.name)
    with_another_example(next((made / "1").glob("joulemark-node_*")))
    return made


def with_another_example(package: Path) -> None:
    root = package.with_suffix("")
    must("dpkg-deb", "--raw-extract", package, root)
    with (root / CONFIGURATION.lstrip("/")).open("a") as example:
        example.write("# as it was\n")
    must("dpkg-deb", "--root-owner-group", "--build", root, package)
    shutil.rmtree(root)


@pytest.fixture(scope="module")
def root(maker: Root, debs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Root]:
    folder: Path = tmp_path_factory.mktemp("debian") / "root"
    bootstrap(folder, ROOT_HAS, maker.suite)
    for revision in REVISIONS:
        shutil.copytree(debs / revision, folder / "debs" / revision)
    yield Root(folder, maker.suite)
    must("rm", "-rf", "--one-file-system", folder)


def bootstrap(folder: Path, packages: str, of: str | None = None) -> None:
    """A Debian, by default this machine's, where apt finds what others depend on."""
    must(
        *("unshare", "--mount", "mmdebstrap", "--mode=root", "--variant=apt", "--quiet"),
        "--skip=cleanup/apt/lists",
        *(f"--include={packages}", "--dpkgopt=force-unsafe-io"),
        *(of or suite(), folder, MIRROR),
    )
    (folder / "etc/apt/apt.conf.d/yes").write_text(APT)
    shutil.copy("/etc/resolv.conf", folder / "etc")


def commands(section: str) -> list[str]:
    """Of the page's section, but for what asks for an editor."""
    text = (SITE / "README.md").read_text().partition(f"\n## {section}\n")[2]
    text = text.partition("\n## ")[0].replace("\\\n", "")
    found = re.findall(r"(?m)^    ((?:apt|joulemarkd|DEBFULLNAME=\S+) .*?)(?: +#.*)?$", text)
    assert found, section
    return found


def left(root: Root) -> set[str]:
    """What is there of ours, but for what dpkg and man keep."""
    theirs = ("/debs", "/proc", "/var/cache", "/var/lib/dpkg", "/var/log")
    aside = " -o ".join(f"-path {path}" for path in theirs)
    found = root.run(rf"find / \( {aside} \) -prune -o -name '*joulemark*' -prune -print")
    return set(found.split())


def test_lintian_has_nothing_to_say(maker: Root, debs: Path) -> None:
    maker.run(f"lintian --fail-on error,warning --tag-display-limit 0 {MADE}/2/*.deb")


def test_an_override_has_its_reason() -> None:
    files = list((SITE / "debian").glob("*/lintian-overrides"))
    assert files
    for file in files:
        _, *lines = file.read_text().splitlines()
        for reason, override in zip(lines[::2], lines[1::2], strict=True):
            assert reason.startswith("# ") and not override.startswith("#"), file


def test_every_file_is_in_one_package_in_its_place(debs: Path) -> None:
    packages = list((debs / "2").glob("*.deb"))
    assert len(packages) == 4
    owner = {}
    for package in packages:
        for line in must("dpkg-deb", "--contents", package).splitlines():
            mode, user, *_, path = line.split(maxsplit=5)
            assert user == "root/root" and re.match(r"\./((usr|etc)/(?!local)|$)", path), line
            wanted = ("rwxrwxrwx",) if " -> " in path else ("rwxr-xr-x", "rw-r--r--")
            assert mode[1:] in wanted, line
            if not mode.startswith("d"):
                assert owner.setdefault(path, package) == package, f"{path}: in two packages"


def test_they_are_installed_as_their_page_says(root: Root) -> None:
    for command in commands("Installing"):
        root.run(f"cd /debs/1; {command.replace(' --now', '')}")  # no systemd runs here
    root.run("cd /debs/1; apt install ./*.deb")  # as on slurmctld's machine
    assert root.run("dpkg --verify joulemark-server joulemark-cli") == ""
    assert root.run("id -u slurm").strip() == "64030"
    assert root.run("stat -c '%U %a' /var/lib/joulemark").split() == ["slurm", "755"]


def test_one_plugin_dir_has_slurms_plugins_and_ours_on_all_architectures(root: Root) -> None:
    [folders] = re.findall(r"(?m)^    PluginDir=(\S+)$", (SITE / "README.md").read_text())
    found = root.run(f"ls {folders.replace(':', '/ ')}/")
    assert {"auth_munge.so", "acct_gather_energy_joulemark.so"} <= set(found.split())
    triplet = must("dpkg-architecture", "-qDEB_HOST_MULTIARCH").strip()
    assert triplet not in folders


def test_their_programs_work_there(root: Root) -> None:
    assert f"{CONFIGURATION}: good" in root.run("joulemarkd --check")
    assert root.run("joulemarkd --version") == f"joulemarkd {VERSION}\n"
    assert root.run("joulemark --version") == f"joulemark {VERSION}\n"
    root.run("joulemarkctl --help")
    for page in ("joulemark", "joulemark-sacct", "joulemarkd", "joulemarkctl"):
        assert "NAME" in root.run(f"MANPAGER=cat man {page}")
    root.run("python3 -c 'from joulemark import region'")


@pytest.mark.parametrize("module", MODULES)
def test_an_instrument_finds_its_libraries(root: Root, module: str) -> None:
    said = root.run(f"ldd /usr/lib/joulemark/{module}.so")
    assert "not found" not in said, said


def test_what_asks_slurm_finds_slurms_library(root: Root) -> None:
    for program in ("admincomment", "joulemark-cores"):
        said = root.run(f"ldd /usr/libexec/joulemark/{program}")
        assert "libslurmfull" in said and "not found" not in said, said


@pytest.mark.parametrize("unit", ["joulemarkd", "joulemark-gateway", "joulemark-receive"])
def test_systemd_takes_a_unit(root: Root, unit: str) -> None:
    root.run(f"systemd-analyze verify --man=no {unit}.service")


def test_an_upgrade_keeps_the_configuration(root: Root) -> None:
    root.run(f"sed -i 's/^cluster: .*/cluster: ours/' {CONFIGURATION}")
    for command in commands("Upgrading"):
        root.run(f"cd /debs/2; {command}")
    assert "cluster: ours\n" in root.run(f"cat {CONFIGURATION}")
    assert "# as it was\n" not in root.run(f"cat {CONFIGURATION}.dpkg-dist")
    versions = root.run("dpkg-query -W -f '${Version}\\n' 'joulemark-*[a-z0-9]'").split()
    assert versions == [f"{VERSION}-0site2"] * 4
    root.run("joulemarkd --check && joulemark --version")


def test_a_removal_leaves_configuration_and_energy(root: Root) -> None:
    root.run("touch /var/lib/joulemark/ledger.sqlite")
    root.run(commands("Removing")[0])
    root.run("apt remove joulemark-slurm-* joulemark-cli")
    assert "cluster: ours\n" in root.run(f"cat {CONFIGURATION}")
    wanted = "/etc/systemd/system/multi-user.target.wants/joulemarkd.service"
    example = f"{CONFIGURATION}.dpkg-dist"
    kept = {"/etc/joulemark", "/var/lib/joulemark", CONFIGURATION, example, wanted}
    assert left(root) == kept


def test_a_purge_leaves_energy_alone(root: Root) -> None:
    assert "/var/lib/joulemark is kept" in root.run(commands("Removing")[1])
    root.run("apt purge joulemark-server")
    assert left(root) == {"/var/lib/joulemark"}
