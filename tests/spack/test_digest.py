"""What changes the digest of a source tree, by which recipes know an edit."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import pytest
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
