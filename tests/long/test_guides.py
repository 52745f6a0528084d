"""The guides of packages/joulemark, word for word, on the demo's cluster by those they are for."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.cluster import CHECKOUT, ORDINARY_USER, Build, Cluster, state_folder, wait_for
from tests.cluster.client import SBIN
from tests.long.shown import MODELLED, begins

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be other users")

GUIDES = CHECKOUT / "packages" / "joulemark" / "guides"
#: the operator is root; the others have no right at all
USERS = {"scientist": ORDINARY_USER, "benchmarker": "daemon", "operator": "root"}
#: of other machines than a demo's cluster
ELSEWHERE = {
    "backup": "tests/long/test_backup.py",
    "capacity": "packages/joulemark/tests/test_capacity.py",
    "disaster": "tests/chaos/test_disaster.py",
    "gallery": "packages/joulemark/tests/test_gallery.py",
    "upgrade": "tests/long/test_rolling_upgrade.py",
    "install": "tests/long/test_first_install.py",
    "removal": "tests/long/test_first_install.py",
}
JOB_LIMIT_S = 300.0
STATUS = re.compile(r"#.* exit status (\d+)(?: or (\d+))?")
END = "== the end of this command"
#: how far a figure may be from the guide's where not as far as a model's: how fast a benchmark
#: runs no guide can know
FACTOR = {"benchmarker": 100.0}


@dataclass(frozen=True)
class Command:
    line: str
    shown: str  # the beginning of what it prints; `...` is anything

    @property
    def statuses(self) -> set[int]:
        """What its comment says, `# exit status 1`; without one 0."""
        stated = STATUS.search(self.line)
        return {int(number) for number in stated.groups() if number} if stated else {0}


def commands(guide: str) -> list[Command]:
    """Of the indented blocks: each `$ ` and what stands below it."""
    blocks = re.findall(r"(?m)^    \$ (.*)\n((?:    (?!\$ ).*\n)*)", guide)
    return [Command(line, shown) for line, shown in blocks]


PRINTED = """Job 12: COMPLETED
                 Value    +-
  Energy [J]      ~262  93.6
User  Energy [mWh]    +-  Since
blue          ~119  41.1  2026-11-26
1 /a/b/c: fine, 262 J +- 93.6 J
"""


@pytest.mark.parametrize(
    ("right", "shown", "is_so"),
    [
        (PRINTED, "", True),
        ("12:", "7:", True),
        ("~262  93.6", "~500  90.1", True),
        ("[J]      ~262  93.6", "[kJ]      ~0.26  0.09", True),
        (
            "[mWh]    +-  Since\nblue          ~119  41.1",
            "[Wh]    +-  Since\nblue       ~0.20  0.07",
            True,
        ),
        ("2026-11-26", "2025-01-01", True),
        ("  Energy [J]      ~262  93.6\n", "...\n", True),
        ("User", "...\nUser", True),
        ("12:", "7.:", True),
        ("/a/b/c", "/a.../c", True),
        ("262 J", "0.3 kJ", True),
        ("    ~119  41.1", "~0.20 Wh  41.1", True),
        ("    ~119  41.1", "  ~0.20 W  41.1", False),
        ("~262", "~2630", False),
        ("~119", "~0.00", False),
        ("41.1", "0", False),
        ("~119", "119", False),
        ("262 J", "262 W", False),
        ("[J]", "[W]", False),
        ("[mWh]", "[Wh]", False),
        ("    +-  Since", "  Since", False),
        ("  41.1", "", False),
        ("COMPLETED\n", "", False),
        ("Energy [J]", "Energ ...", False),
        ("/a/b/c", "/a.../d", False),
    ],
)
def test_words_and_figures_are_compared(right: str, shown: str, is_so: bool) -> None:
    assert right in PRINTED
    assert begins(PRINTED, PRINTED.replace(right, shown)) == is_so


class Shell:
    """That of the user whom a guide is for, in a folder of his own where job-templates/ is."""

    def __init__(self, cluster: Cluster, guide: str) -> None:
        self.cluster = cluster
        self.factor = FACTOR.get(guide, MODELLED)
        user = USERS[guide]
        home = cluster.jobs_folder / user
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        shutil.copytree(CHECKOUT / "job-templates", home / "job-templates")
        shutil.chown(home, user)
        env = {"HOME": str(home), "USER": user, "LOGNAME": user, "PATH": SBIN, "LANG": "C.UTF-8"}
        as_user = ["setpriv", f"--reuid={user}", f"--regid={pwd.getpwnam(user).pw_gid}"]
        self.bash = subprocess.Popen(
            [*as_user, "--init-groups", "bash"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=home,
            env=env,
        )

    def run(self, line: str) -> tuple[int, str]:
        """The exit status and what was printed, once all jobs have ended and are merged."""
        self.bash.stdin.write(f"{{ {line}\n}} </dev/null; printf '\\n%s %s\\n' '{END}' $?\n")
        self.bash.stdin.flush()
        said = []
        for text in self.bash.stdout:
            if text.startswith(END):
                wait_for(self._settled, JOB_LIMIT_S, "jobs to end and to be merged", poll_s=0.3)
                return int(text.split()[-1]), "".join(said)
            said.append(text)
        raise AssertionError(f"$ {line}\nended the shell: {''.join(said)}")

    def _settled(self) -> bool:
        return not (
            self.cluster.run(["squeue", "-h"]) or self.cluster.notices() or self.cluster.merging()
        )

    def close(self) -> None:
        self.bash.communicate()

    def follow(self, guide: str) -> None:
        """Types what it says and demands what it shows."""
        found = commands(guide)
        assert found
        for command in found:
            status, printed = self.run(command.line)
            said = f"$ {command.line}\nexit status {status}\n{printed}"
            assert status in command.statuses, said
            as_shown = begins(printed, command.shown, self.factor)
            assert as_shown, f"{said}\nthe guide shows:\n{command.shown}"


@pytest.fixture(scope="module")
def demo(build: Build) -> Iterator[Cluster]:
    """As `make demo` makes it; the model's energy on every machine."""
    cluster = Cluster(state_folder() / "test-guides", name="demo", build=build)
    try:
        cluster.remove()
        cluster.up()
        cluster.wait_job(cluster.sbatch("--wrap", "true"))  # the first merge makes the store
        yield cluster
    finally:
        cluster.down()


@pytest.fixture
def shell(demo: Cluster, request: pytest.FixtureRequest) -> Iterator[Shell]:
    with contextlib.closing(Shell(demo, request.param)) as shell:
        shell.run(f"source {demo.state}/env.sh")
        yield shell


def text_of(guide: str) -> str:
    return (GUIDES / f"{guide}.md").read_text()


@pytest.mark.parametrize("shell", ["scientist"], indirect=True)
def test_a_scientist_needs_no_right(demo: Cluster, shell: Shell) -> None:
    """Until the chapter for those who may read the store, nobody may."""
    without, heading, within = text_of("scientist").partition("## Where you may read the store")
    assert heading
    store = demo.state / "store" / "store.sqlite"
    mode = store.stat().st_mode
    store.chmod(0o640)
    try:
        shell.follow(without)
        status, printed = shell.run("joulemark job $job")
        assert status == 0 and "Regions" not in printed  # which the last chapter shows
    finally:
        store.chmod(mode)
    shell.follow(within)


@pytest.mark.parametrize(
    ("guide", "shell"),
    [("benchmarker", "benchmarker"), ("operator", "operator")],
    ids=["benchmarker", "operator"],
    indirect=["shell"],
)
def test_a_guide_can_be_followed(guide: str, shell: Shell) -> None:
    shell.follow(text_of(guide))


def test_every_guide_is_followed() -> None:
    """Here, or by the test that ELSEWHERE names."""
    assert {path.stem for path in GUIDES.glob("*.md")} == {*USERS, *ELSEWHERE}
    for guide, test in ELSEWHERE.items():
        assert guide in (CHECKOUT / test).read_text()


@pytest.mark.parametrize("shell", ["operator"], indirect=True)
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("joulemarkd --check", "joulemarkd --chek"),
        ("joulemarkd --check", "joulemarkd --check; false"),
        ("joulemark.yaml: good", "joulemark.yaml: bad"),
    ],
)
def test_a_fault_of_a_guide_is_found(shell: Shell, right: str, wrong: str) -> None:
    guide = text_of("operator").partition("joulemark doctor")[0]
    shell.follow(guide)
    assert right in guide
    with pytest.raises(AssertionError, match=re.escape(wrong)):
        shell.follow(guide.replace(right, wrong))
