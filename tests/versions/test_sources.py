"""Which Slurm can be upgraded to which, and from what it is built."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

from pathlib import Path

import pytest

from tests.versions.slurm import NotToBeHad, Slurm, of_tar, upgradable


@pytest.mark.parametrize(
    ("old", "new", "can"),
    [
        ("24.11.5", "26.05.3", True),
        ("23.02.8", "24.11.5", True),
        ("24.05.4", "26.05.3", False),
        ("22.05.8", "24.11.5", False),
        ("24.11.4", "24.11.5", False),  # no other release
        ("26.05.3", "24.11.5", False),
    ],
)
def test_a_release_takes_up_what_the_three_before_it_left(old: str, new: str, can: bool) -> None:
    """As Slurm's upgrade guide has it."""
    assert upgradable(Slurm(old), Slurm(new)) == can


@pytest.mark.parametrize("name", ["slurm.tar.bz2", "slurm-26.05.3.zip", "slurm-26.05.3.tar.bz2"])
def test_what_is_no_tar_of_slurm_is_named(tmp_path: Path, name: str) -> None:
    """The last is none for it is not there."""
    with pytest.raises(NotToBeHad, match=f"{name}: give a tar of Slurm's source"):
        of_tar(tmp_path / name)
