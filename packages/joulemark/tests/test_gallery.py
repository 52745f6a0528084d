# The guide's gallery: each picture is there and is what its command draws today.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import os
from pathlib import Path

import gallery
import pytest

pytest.importorskip("h5py", reason="profiles are HDF5")

MOST_BYTES = 1_000_000
FARTHEST = 0.01  # of the picture's width or height, between releases of matplotlib


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The gallery's data, from which commands draw."""
    made = tmp_path_factory.mktemp("gallery")
    before = dict(os.environ)
    os.environ["JOULEMARK_CONFIG"] = str(made / "joulemark.yaml")
    gallery.prepare(made)
    yield made
    os.environ.clear()
    os.environ.update(before)


def test_every_picture_is_there_and_none_is_left_over():
    named = [gallery.KEPT / name for part in gallery.parts() for name in part.pictures]
    assert len(named) > 20
    assert sorted(named) == sorted(gallery.pictures())
    kept = [path for path in gallery.KEPT.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in kept) <= MOST_BYTES


@pytest.mark.parametrize("part", gallery.parts(), ids=lambda part: part.title)
def test_commands_draw_what_the_pictures_say(part: gallery.Part, folder: Path):
    """By what is written on them and, without a browser, where an SVG's lines and marks are: how
    they are drawn differs between releases of matplotlib."""
    gallery.run(part, folder, with_browser=False)
    for name in part.pictures:
        kept = gallery.texts(gallery.KEPT / name)
        if name.endswith(".png"):
            said = gallery.texts_of_report(folder / part.report_of(name))
        else:
            said = gallery.texts(folder / name)
            assert_alike(gallery.drawn(folder / name), gallery.drawn(gallery.KEPT / name))
        assert said == kept and len(kept) > 5, name


def assert_alike(drawn: list, kept: list) -> None:
    assert [kind for kind, _ in drawn] == [kind for kind, _ in kept]
    for (kind, place), (_, was) in zip(drawn, kept):
        assert place == pytest.approx(was, abs=FARTHEST), kind
