"""What changes the digest of a source tree, by which recipes and builds know an edit."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import pytest
from building import with_spack
from building.steps import Steps
from spack_repo.joulemark.build_systems.digest import tree_digest


@pytest.mark.parametrize(
    "left",
    ["slurm-12.out", "stream.12.cooked.jsonl", "stream.12.omp.raw.txt", "core", "core.4711"],
)
def test_what_a_job_leaves_where_it_was_submitted_is_no_edit(tmp_path, left):
    before = tree_digest(tmp_path)
    (tmp_path / left).write_text("of a job")
    (tmp_path / "hpl.12.nb384").mkdir()
    (tmp_path / "hpl.12.nb384/HPL.dat").write_text("of a job")
    assert tree_digest(tmp_path) == before


@pytest.mark.parametrize("name", ["core.c", "core.h", "core/main.c", "out.c"])
def test_sources_of_such_names_are_no_leavings(tmp_path, name):
    before = tree_digest(tmp_path)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("int main;")
    assert tree_digest(tmp_path) != before


def test_a_link_that_leads_nowhere_counts_by_where_it_leads(tmp_path):
    (tmp_path / "main.c").symlink_to("gone.c")
    gone = tree_digest(tmp_path)
    (tmp_path / "main.c").unlink()
    (tmp_path / "main.c").symlink_to("other.c")
    other = tree_digest(tmp_path)
    (tmp_path / "other.c").write_text("int main;")
    assert len({gone, other, tree_digest(tmp_path)}) == 3


def test_a_build_says_what_has_changed_since_the_last(tmp_path, monkeypatch, capsys):
    """Spack itself builds nothing here."""
    sources, spack = tmp_path / "checkout", tmp_path / "spack"
    for name in with_spack.SOURCES:
        (sources / name).mkdir(parents=True)
    spack.write_text("#!/bin/sh\necho 1.1\n")
    spack.chmod(0o755)
    installed = []
    for name, instead in (
        ("CHECKOUT", sources),
        ("SITE", "the/site"),
        ("obtain", lambda _steps: spack),
        ("prepare_environment", lambda _steps, name: tmp_path / "environments" / name),
        ("install", lambda *_: installed.append(1)),
        ("locate", lambda *_: {}),
        ("how_to_run", lambda *_: {}),
    ):
        monkeypatch.setattr(with_spack, name, instead)

    def build() -> str:
        with_spack.build(Steps(tmp_path / "state"), "x86_64", "build")
        return capsys.readouterr().err

    assert "changed" not in build()
    assert "nothing has changed" in build() and len(installed) == 1
    (sources / "job-templates/new.sbatch").write_text("#!/bin/bash\n")
    (sources / "spack-repo/new.py").write_text("")
    assert "changed since the last build: job-templates/, spack-repo/\n" in build()
    spack.write_text("#!/bin/sh\necho 1.2\n")
    assert "changed since the last build: Spack\n" in build()
    (tmp_path / "state/cache/build.stamp").write_text("123456")  # an earlier version's
    assert "changed" not in build() and len(installed) == 4
