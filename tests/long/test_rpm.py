"""The RPM packages of slurm-plugins/site: made here with RHEL's places, judged by rpmlint,
installed by dnf from a repository into an empty root, upgraded and removed. No RPM distribution
can be had here: packages of RHEL's names, with this Debian's libraries, stand in for theirs."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import CHECKOUT
from tests.long.test_packages import CONFIGURATION, SITE, VERSION, must

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be other users")

MACROS = Path(__file__).with_name("rhel9.macros")
#: what a build takes of the checkout
SOURCES = (
    "slurm-plugins",
    "packages/joulemark",
    "packages/LICENSE-APACHE",
    "packages/LICENSE-MIT",
)
SCRIPTLETS = "/scriptlets"
#: RHEL's packages, and EPEL's from freeipmi on, and of each the libraries of this Debian that
#: stand in for its own: by these rpm finds what ours need and what theirs have.
LIBRARIES = {
    "glibc": ("libc.so.6", "libm.so.6"),
    "libyaml": ("libyaml-0.so.2",),
    "sqlite-libs": ("libsqlite3.so.0",),
    "libcurl": ("libcurl.so.4",),
    "jansson": ("libjansson.so.4",),
    "net-snmp-libs": ("libnetsnmp.so.40",),
    "freeipmi": ("libfreeipmi.so.17",),
    "mosquitto": ("libmosquitto.so.1",),
    "libmodbus": ("libmodbus.so.5",),
    "slurm": ("slurm-wlm/libslurmfull.so",),
}
#: those that are programs, and what of them is not to be seen in their files
PROGRAMS = {
    "bash": ("/bin/sh", "/bin/bash"),
    "coreutils": ("/usr/bin/env",),
    "util-linux": (),
    "systemd": (),
    "python3": ("/usr/bin/python3", "python(abi) = 3.9"),
    "python3-pyyaml": (),
    "python3-rich": (),
}
LIBRARY_FOLDER = Path("/usr/lib/x86_64-linux-gnu")
#: a program of systemd's here only tells how it was called
TOLD = (
    "usr/bin/systemd-sysusers",
    "usr/bin/systemd-tmpfiles",
    "usr/lib/systemd/systemd-update-helper",
)
TELL = f'#!/bin/sh\necho "${{0##*/}} $*" >>{SCRIPTLETS}\n'


@pytest.fixture(scope="module")
def rpms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of the packages of each revision; the first one's example is another."""
    made: Path = tmp_path_factory.mktemp("made")
    sources = made / "sources"
    for name in (*SOURCES, "CHANGELOG.md"):
        whole = CHECKOUT / name
        (sources / name).parent.mkdir(parents=True, exist_ok=True)
        if whole.is_dir():
            shutil.copytree(whole, sources / name, ignore=shutil.ignore_patterns("build"))
        else:
            shutil.copy(whole, sources / name)
    with (sources / "slurm-plugins/site/joulemark.yaml").open("a") as example:
        example.write("# as it was\n")
    make_rpms(sources / "slurm-plugins" / "site", made / "1", 1)
    make_rpms(SITE, made / "2", 2)
    return made


def make_rpms(site: Path, folder: Path, revision: int) -> None:
    # no package of an RPM database is here: what a build needs are Debian's packages
    options = ("--nodeps", f"--load={MACROS}", "-D", f"revision {revision}")
    env = {**os.environ, "RPM_PACKAGER": "A site <hpc@joulemark.org>"}
    must(site / "make-rpms", folder, *options, env=env)


def binary(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.rpm") if not path.name.endswith(".src.rpm"))


def release(folder: Path) -> str:
    """Of the Slurm that they are for."""
    names = " ".join(path.name for path in binary(folder))
    return re.search(r"joulemark-slurm-(\d\d\.\d\d)-", names)[1]


@pytest.fixture(scope="module")
def repository(rpms: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Revision 1 and the stand-ins."""
    folder: Path = tmp_path_factory.mktemp("repository")
    stand_ins(folder, release(rpms / "1"))
    publish(rpms / "1", folder)
    return folder


def publish(made: Path, repository: Path) -> None:
    for package in binary(made):
        shutil.copy(package, repository)
    must("createrepo_c", "--quiet", repository)


def stand_ins(folder: Path, slurm: str) -> None:
    build = folder / "build"
    root = build / "root"
    files: dict[str, list[str]] = {name: [] for name in (*LIBRARIES, *PROGRAMS)}
    linked = {"lib64": "usr/lib64", "lib": "usr/lib", "bin": "usr/bin", "sbin": "usr/sbin"}
    for name in linked:
        (root / linked[name]).mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(linked[name])
    for package, libraries in LIBRARIES.items():
        for library in libraries:
            put(root, LIBRARY_FOLDER / library, files[package])
    put(root, Path("/usr/lib64/ld-linux-x86-64.so.2"), files["glibc"])
    put(root, Path("/usr/bin/bash"), files["bash"])
    put(root, LIBRARY_FOLDER / "libtinfo.so.6", files["bash"])
    (root / "usr/bin/sh").symlink_to("bash")
    files["bash"].append("/usr/bin/sh")
    for name in TOLD:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(TELL)
        (root / name).chmod(0o755)
        files["systemd"].append(f"/{name}")
    spec = build / "stand-ins.spec"
    parts = [package_of("filesystem", "1", [f"/{name}" for name in linked], (), "")]
    for name, listed in files.items():
        version = f"{slurm}.9" if name == "slurm" else "3.9" if name == "python3" else "1"
        more = ("rtld(GNU_HASH)",) if name == "glibc" else PROGRAMS.get(name, ())
        parts.append(package_of(name, version, listed, more, "Requires: filesystem\n"))
    spec.write_text(
        "%global __os_install_post %{nil}\n%global debug_package %{nil}\n"
        "Name: stand-ins\nVersion: 1\nRelease: 1\nSummary: For tests\nLicense: none\n"
        f"%description\nFor tests.\n%install\ncp -a {root}/. %{{buildroot}}\n" + "".join(parts)
    )
    must("rpmbuild", "-bb", "-D", f"_topdir {build}", "-D", f"_rpmdir {folder}", spec)
    shutil.rmtree(build)


def put(root: Path, file: Path, listed: list[str]) -> None:
    copy = root / str(file).lstrip("/")
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(file.resolve(), copy)
    copy.chmod(0o755)  # rpm looks into executable files alone
    listed.append(str(file))


def package_of(
    name: str, version: str, files: list[str], provides: tuple[str, ...], more: str
) -> str:
    provided = "".join(f"Provides: {what}\n" for what in provides)
    listed = "\n".join(files)
    return (
        f"%package -n {name}\nVersion: {version}\nSummary: For tests\nAutoReq: no\n"
        f"{more}{provided}"
        f"%description -n {name}\nFor tests.\n%files -n {name}\n{listed}\n"
    )


class Root:
    """Of packages alone: what dnf puts there, scriptlets with it."""

    def __init__(self, folder: Path, repository: Path) -> None:
        self.folder = folder
        options = (f"--installroot={folder}", "--releasever=9", "--assumeyes", "--noplugins")
        for key in ("cachedir", "logdir"):
            (folder.parent / key).mkdir()
        away = [f"--setopt={key}={folder.parent / key}" for key in ("cachedir", "logdir")]
        weak = "--setopt=install_weak_deps=False"
        here = (f"--repofrompath=site,file://{repository}", "--repo=site", "--nogpgcheck")
        self.dnf_options = (*options, *away, weak, "--refresh", *here)

    def dnf(self, words: str) -> str:
        return must("dnf", *self.dnf_options, *words.replace("'", "").split())

    def rpm(self, *words: str) -> str:
        return must("rpm", f"--root={self.folder}", *words)

    def run(self, *words: str) -> str:
        return must("chroot", self.folder, *words, env={"PATH": "/usr/sbin:/usr/bin"})

    def read(self, path: str) -> str:
        return (self.folder / path.lstrip("/")).read_text()

    def told(self) -> list[str]:
        """By scriptlets since this was last asked."""
        file = self.folder / SCRIPTLETS.lstrip("/")
        lines = file.read_text().splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return lines

    def left(self) -> set[str]:
        """What is there of ours."""
        return {f"/{path.relative_to(self.folder)}" for path in self.folder.rglob("*joulemark*")}


@pytest.fixture(scope="module")
def root(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Root]:
    folder: Path = tmp_path_factory.mktemp("rhel") / "root"
    folder.mkdir()
    yield Root(folder, repository)
    must("rm", "-rf", "--one-file-system", folder)


def commands(word: str, slurm: str) -> list[str]:
    """Of the page, those of dnf that have the word, for this release of Slurm."""
    section = (SITE / "README.md").read_text().partition("\n## RPM\n")[2].partition("\n## ")[0]
    found = re.findall(rf"(?m)^    dnf ({word} '?joulemark.*?)(?: +#.*)?$", section)
    assert found, word
    return [re.sub(r"slurm-\d\d\.\d\d", f"slurm-{slurm}", command) for command in found]


def test_rpmlint_has_nothing_to_say(rpms: Path) -> None:
    packages = sorted((rpms / "2").glob("*.rpm"))
    assert len(packages) == 5  # the source package, too
    said = must("rpmlint", "--strict", "--config", SITE / "rpm/rpmlint.toml", *packages)
    assert " 0 errors, 0 warnings" in said, said


def test_a_filter_has_its_reason() -> None:
    lines = (SITE / "rpm/rpmlint.toml").read_text().partition("Filters = [\n")[2].splitlines()
    assert lines.pop() == "]"
    for reason, pattern in zip(lines[::2], lines[1::2], strict=True):
        assert reason.startswith("    # ") and pattern.startswith('    "'), reason


def test_every_file_is_in_one_package_in_its_place(rpms: Path) -> None:
    packages = binary(rpms / "2")
    owner: dict[str, Path] = {}
    for package in packages:
        query = "[%{FILEMODES:perms} %{FILEUSERNAME} %{FILENAMES}\n]"
        for line in must(
            "rpm", "--query", "--queryformat", query, "--package", package
        ).splitlines():
            mode, user, path = line.split(maxsplit=2)
            if "/.build-id" in path:  # rpm's own links to what has debug information
                continue
            assert user == "root" and re.match(r"/(usr|etc)/(?!local)", path), line
            assert mode[1:] in ("rwxr-xr-x", "rw-r--r--"), line
            if not mode.startswith("d"):
                assert owner.setdefault(path, package) == package, f"{path}: in two packages"
    slurm = release(rpms / "2")
    for path, name in {
        "/usr/lib64/slurm/spank_joulemark.so": f"slurm-{slurm}",
        "/usr/libexec/joulemark/admincomment": f"slurm-{slurm}",
        "/usr/lib/systemd/system/joulemarkd.service": "node",
        "/usr/libexec/joulemark/epilogslurmctld": "server",
        "/usr/lib/python3.9/site-packages/joulemark/cli.py": "cli",
    }.items():
        assert owner[path].name.startswith(f"joulemark-{name}-{VERSION}-2.el9."), path


def test_a_package_asks_for_rhels_by_name(rpms: Path) -> None:
    known = {*LIBRARIES, *PROGRAMS, "joulemark-cli", "joulemark-node", "systemd"}
    for package in binary(rpms / "2"):
        for line in must("rpm", "--query", "--requires", "--package", package).splitlines():
            what = line.split()[0]
            if not re.match(r"(/|rpmlib\(|config\(|rtld\(|python\(|\S+\.so)", what):
                assert what in known, f"{package.name} asks for {line}"
    slurm = release(rpms / "2")
    asked = must("rpm", "-qp", "--requires", *(rpms / "2").glob("joulemark-slurm-*"))
    assert f"slurm >= {slurm}\n" in asked and f"slurm < {slurm}.99\n" in asked


def test_the_configuration_is_the_sites(rpms: Path) -> None:
    files = must("rpm", "-qp", "--configfiles", *binary(rpms / "2")).split()
    assert sorted(files) == ["/etc/joulemark/gateway.yaml", CONFIGURATION]


def test_dnf_installs_them(root: Root, rpms: Path) -> None:
    node, server = commands("install", release(rpms / "1"))
    root.dnf(node)
    assert root.told() == [
        "systemd-sysusers joulemark.conf",
        "systemd-tmpfiles --create joulemark.conf",
        "systemd-update-helper install-system-units joulemarkd.service",
    ]
    root.dnf(server)
    units = "joulemark-gateway.service joulemark-receive.service"
    assert root.told() == [f"systemd-update-helper install-system-units {units}"]
    assert root.rpm("--verify", "joulemark-node", "joulemark-server", "joulemark-cli") == ""


def test_their_programs_work_there(root: Root) -> None:
    assert f"{CONFIGURATION}: good" in root.run("joulemarkd", "--check")
    assert root.run("joulemarkd", "--version") == f"joulemarkd {VERSION}\n"
    root.run("joulemarkctl", "--help")
    modules = root.folder / "usr/lib/python3.9/site-packages"
    command = ("python3", "-B", root.folder / "usr/bin/joulemark", "--version")
    env = {**os.environ, "PYTHONPATH": str(modules)}
    assert must(*command, env=env) == f"joulemark {VERSION}\n"


def test_their_user_and_folder_are_made(root: Root) -> None:
    """By this Debian's systemd, of the files that the scriptlets named."""
    must("systemd-sysusers", f"--root={root.folder}", "joulemark.conf")
    must("systemd-tmpfiles", f"--root={root.folder}", "--create", "joulemark.conf")
    uid = re.search(r"(?m)^slurm:[^:]*:(\d+):", root.read("/etc/passwd"))[1]
    state = (root.folder / "var/lib/joulemark").stat()
    assert (state.st_uid, state.st_mode & 0o777) == (int(uid), 0o755)


def test_an_upgrade_keeps_the_configuration(root: Root, repository: Path, rpms: Path) -> None:
    file = root.folder / CONFIGURATION.lstrip("/")
    file.write_text(re.sub(r"(?m)^cluster: .*", "cluster: ours", file.read_text()))
    publish(rpms / "2", repository)
    (command,) = commands("upgrade", release(rpms / "2"))
    root.dnf(command)
    assert "cluster: ours\n" in root.read(CONFIGURATION)
    assert "# as it was\n" not in root.read(f"{CONFIGURATION}.rpmnew")
    query = ("--query", "--all", "--queryformat", "%{VERSION}-%{RELEASE}\n", "joulemark-*")
    assert root.rpm(*query).split() == [f"{VERSION}-2.el9"] * 4
    told = root.told()
    for units in ("joulemarkd.service", "joulemark-gateway.service joulemark-receive.service"):
        assert f"systemd-update-helper mark-restart-system-units {units}" in told
    root.run("joulemarkd", "--check")


def test_a_removal_leaves_configuration_and_energy(root: Root, rpms: Path) -> None:
    (root.folder / "var/lib/joulemark/ledger.sqlite").touch()
    (command,) = commands("remove", release(rpms / "2"))
    root.dnf(command)
    assert "systemd-update-helper remove-system-units joulemarkd.service" in root.told()
    root.dnf("remove joulemark-*")
    kept = {"/var/lib/joulemark", f"{CONFIGURATION}.rpmsave", f"{CONFIGURATION}.rpmnew"}
    assert root.left() == kept
    assert "cluster: ours\n" in root.read(f"{CONFIGURATION}.rpmsave")
