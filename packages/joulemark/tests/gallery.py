#!/usr/bin/env python3
"""Makes the data of guides/gallery.md and runs the page's commands on them.

usage: packages/joulemark/tests/gallery.py FOLDER          all pictures, in a new folder
       packages/joulemark/tests/gallery.py FOLDER --keep   and puts them into the guide
"""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import html
import io
import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import builders
from cooked_lines import failed, line
from joulemark import cli, config

PAGE = Path(__file__).resolve().parents[1] / "guides" / "gallery.md"
KEPT = PAGE.with_suffix("")
MEASURED = "measured"  # what real runs left, beside the pictures
PICTURE = re.compile(r"!\[[^]]+\]\(gallery/([^)]+)\)")
COMMAND = re.compile(r"^    \$ (.+)$", re.M)
STYLE = re.compile(r'style="(.*?)"')
LICENSE = "SPDX-License-Identifier: Apache-2.0 OR MIT"
TEXT = "Description"  # of a PNG: what is written on its figures
DAY_S = 86_400
NS = 10**9


# -- the page ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """A heading of the page with its pictures and the commands that make them."""

    title: str
    pictures: list[str]
    commands: list[str]

    def report_of(self, screenshot: str) -> str:
        """The HTML report that it shows."""
        (command,) = (one for one in self.commands if f"--screenshot={screenshot} " in one)
        return command.split()[-1]


def parts() -> list[Part]:
    """Those with commands."""
    texts = PAGE.read_text().split("\n## ")[1:]
    found = [
        Part(text.partition("\n")[0], PICTURE.findall(text), COMMAND.findall(text))
        for text in texts
    ]
    return [part for part in found if part.commands]


def pictures() -> list[Path]:
    """All that are kept."""
    return [path for path in KEPT.rglob("*") if path.suffix in (".png", ".svg")]


def run(part: Part, folder: Path, with_browser: bool) -> None:
    """Its commands, in a folder that prepare() has made."""
    import matplotlib

    for command in part.commands:
        program, *words = shlex.split(command)
        with _in_folder(folder), matplotlib.rc_context({"svg.fonttype": "none"}):
            if program == "joulemark":
                assert cli.main(words) == 0, command
            elif with_browser:
                subprocess.run([program, *words], check=True)


@contextlib.contextmanager
def _in_folder(folder: Path):
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def texts(picture: Path) -> list[str]:
    """What is written on it: of an SVG by matplotlib its texts, of a PNG what came with it."""
    if picture.suffix == ".svg":
        return list(
            map(html.unescape, re.findall(r"<text[^>]*>(.*?)</text>", picture.read_text()))
        )
    from PIL import Image

    with Image.open(picture) as image:
        return image.text[TEXT].splitlines()


def drawn(picture: Path) -> list[tuple[str, list[float]]]:
    """What an SVG by matplotlib draws, in its order: of each path, mark and text the group's name
    and the least and greatest x and y, as parts of the picture. Without ticks: releases have
    other minor ones, and the others' texts tell where they are."""
    root = ElementTree.parse(picture).getroot()
    width, height = (float(text) for text in root.get("viewBox").split()[2:])
    return [
        (kind, [min(xs) / width, max(xs) / width, min(ys) / height, max(ys) / height])
        for kind, xs, ys in _places(root, "")
    ]


def _places(element: ElementTree.Element, kind: str):
    kind = element.get("id", kind).rstrip("_0123456789")
    for child in element:
        tag = child.tag.rpartition("}")[2]
        is_tick = kind in ("xtick", "ytick") and child.get("id", "").startswith("line2d")
        if tag == "g" and not is_tick:
            yield from _places(child, kind)
        elif tag in ("path", "use", "text"):
            place = child.get("d") or f"{child.get('x')} {child.get('y')}"
            numbers = [float(text) for text in re.findall(r"-?\d+\.?\d*", place)]
            if numbers:  # lines of one text have no x and y
                yield kind, numbers[::2], numbers[1::2]


def texts_of_report(page: Path) -> list[str]:
    """What is written on the figures of an HTML report."""
    figures = "".join(re.findall(r"<figure>.*?</figure>", page.read_text(), re.S))
    figures = re.sub(r"<title>.*?</title>", "", figures, flags=re.S)  # what pointing at it says
    return [html.unescape(text) for text in re.findall(r">([^<>]+)<", figures)]


# -- its data ------------------------------------------------------------------------------------


def prepare(folder: Path) -> None:
    """What was measured; simulated results; a simulated site with its store and its profiles."""
    shutil.copytree(KEPT / MEASURED, folder / MEASURED)
    for name, lines in _simulated(random.Random(1)):
        place = folder / "simulated" / name
        place.mkdir(parents=True)
        text = "".join(json.dumps(one) + "\n" for one in lines)
        (place / "mod2am.cooked.jsonl").write_text(text)
    _make_site(folder, random.Random(2))


def _simulated(chance: random.Random):
    """Results that are hard to draw, by name."""
    sizes = (100, 200, 500, 1000, 2000)
    rates = {"plain": 1, "unrolled": 1.6, "blocked": 3, "blocked-omp": 4, "blas": 8, "opencl": 6}
    yield (
        "many",
        [
            _mod2am(size, rate * threads**0.9 * size / (size + 150), variant, threads)
            for variant, rate in rates.items()
            for threads in (1, 2, 4)
            for size in sizes
        ],
    )
    hard = [failed(4000)]
    for job in ("1", "2", "3"):
        for size in sizes:
            rough, steady = 0.3 / chance.uniform(0.6, 1.5), 0.9 / chance.uniform(0.95, 1.05)
            model = {"estimated": True, "energy_uncertainty_j": 0.35}
            hard.append(_mod2am(size, rough, "plain", 1, job=job))
            hard.append(_mod2am(size, steady, "blas", 1, job=job, **model))
    name = "Intel(R) Xeon(R) Platinum 8480+ with words that a firmware might have put there"
    yield "hard", [{**one, "cpu": name} for one in hard]
    yield "one", [_mod2am(1000, 40, "blas", 2)]
    yield (
        "threads",
        [
            _mod2am(2000, 2 * threads**0.85 * chance.uniform(0.96, 1.04), "omp", threads, job=job)
            for threads in (1, 2, 4, 8)
            for job in ("1", "2", "3")
        ],
    )
    yield (
        "nodes",
        [
            _mod2am(size, 20 * nodes**power, "mpi", 1, nodes=nodes, ranks=4 * nodes, kernel=kernel)
            for nodes in (1, 2, 3, 4, 6)
            for kernel, power, size in (
                ("mod2am", 0.88, 4000),
                ("mod2am", 0.97, round(1000 * nodes ** (1 / 3))),
            )
        ],
    )


def _mod2am(size: int, gigaflops: float, variant: str, threads: int, **changes) -> dict:
    """100 W a node; an uncertainty is given as a part of the energy."""
    time_s = 2 * size**3 / (gigaflops * 1e9)
    energy_j = 100 * changes.get("nodes", 1) * time_s
    part = changes.pop("energy_uncertainty_j", 0.04)
    energy = {"energy_j": energy_j, "power_w": energy_j / time_s}
    return {
        **line(size, time_s, variant=variant, threads=threads, **changes),
        **energy,
        "energy_uncertainty_j": part * energy_j,
    }


USERS = ("alice", "bob", "carol", "a-user-with-a-very-long-name-indeed", "dave", "eve")


def _make_site(folder: Path, chance: random.Random) -> None:
    """Jobs of an hour, every third day, in a rack whose fans have a meter of their own."""
    records = folder / "records"
    for name in ("shared", "profiles"):
        (records / name).mkdir(parents=True)
    places = f"record_dir: {records}\nstore: {folder}/store.sqlite\n"
    (folder / "joulemark.yaml").write_text(f"cluster: gallery\n{places}")
    fans = {"systematic_uj": 0, "random_uj": 0, "nodes": "n1", "split": "equal", "run": "a"}
    minutes = [3 * DAY_S * job + 60 * minute for job in range(24) for minute in range(61)]
    text = "".join(
        json.dumps(
            {"time_ns": builders.START_NS + at_s * NS, "energy_uj": 50 * at_s * 10**6, **fans}
        )
        + "\n"
        for at_s in minutes
    )
    (records / "shared" / "rack.jsonl").write_text(text)
    for job in range(101, 125):
        is_estimated = USERS[job % 6] == "bob"
        energy_uj = int(10 ** chance.uniform(10.5, 12.1))
        model = {"method": "model", "estimated": True}
        model["uncertainty_systematic_uj"] = energy_uj * 0.17
        account = builders.account(
            energy_uj=energy_uj,
            seconds=3600,
            start_s=3 * DAY_S * (job - 101),
            **(model if is_estimated else {}),
        )
        record = builders.record(job, "n1", [account], cluster="gallery", node_cpus=4)
        builders.write(records, record)
        of_job = {"ID": job, "USER": USERS[job % 6], "PARTITION": ("cpu", "gpu")[job % 3 == 0]}
        of_job["ACCOUNT"] = ("physics", "chemistry-and-materials")[job % 2]
        os.environ.update({f"SLURM_JOB_{name}": str(value) for name, value in of_job.items()})
        words = ["merge", "--job", str(job), "--nodes", "n1", "--wait", "0"]
        with contextlib.redirect_stdout(io.StringIO()):
            assert cli.main(words) == 0
    _make_profiles(folder, chance)


SOLVER = (
    (1, 8, "assemble"),
    (8, 10, "halo-exchange"),
    (10, 18, "conjugate-gradient"),
    (11, 13, "conjugate-gradient/preconditioner"),
    (14, 16, "conjugate-gradient/preconditioner"),
)
OUTPUT = tuple((18 + 0.1 * n, 18.08 + 0.1 * n, f"write-a-long-named-field-{n}") for n in range(14))


def _make_profiles(folder: Path, chance: random.Random) -> None:
    """Job 117 on two nodes, job 119 of the same work, faster, whose node has no meter; job 10."""
    from joulemark.profile import hdf5

    for path in (folder / MEASURED).glob("*.profile.jsonl"):
        shutil.copy(path, folder / "records" / "profiles")
    for job, node, method, speed, power, spans in (
        (117, "n1", "counter", 1, 1, SOLVER + OUTPUT),
        (117, "n2", "counter", 1, 0.9, SOLVER),
        (119, "n1", "model", 1.4, 1.5, SOLVER),
    ):
        name = f"gallery.{job}.{node}.profile.jsonl"
        lines = _profile(chance, job, node, method, speed, power, spans)
        text = "".join(json.dumps(one) + "\n" for one in lines)
        (folder / "records" / "profiles" / name).write_text(text)
    hdf5.merge(config.load(folder / "joulemark.yaml"))


def _profile(chance, job, node, method, speed, power, spans):
    channel = {"name": "meter/node", "domain": "node", "method": method, "outermost": True}
    yield {
        **{"schema": 1, "cluster": "gallery", "JobIDRaw": job, "node": node, "uid": 1000},
        **{"start_ns": builders.START_NS, "hz": 5, "asked_hz": 5, "channels": [channel]},
    }
    steps = int(100 / speed)
    energy_j, found = 0.0, [(0.0, {"e": [0]})]
    for step in range(steps):
        at_s = step / 5 * speed
        watts = 60 if not 1 <= at_s < 18 else 180 if at_s < 8 else 90 if at_s < 10 else 210
        energy_j += watts * power / 5 * chance.uniform(0.97, 1.03)
        found.append(((step + 1) / 5, {"e": [int(energy_j * 1e6)]}))
    for begin_s, end_s, name in spans:
        for at_s, kind in ((begin_s, "begin"), (end_s, "end")):
            found.append((at_s / speed, {"m": kind, "n": name, "r": 0, "th": 1}))
    for at_s, said in sorted(found, key=lambda one: one[0]):
        yield {"t": builders.START_NS + int(at_s * NS), **said}
    last = {"e": [int(energy_j * 1e6)], "u": [int(energy_j * 2e4)], "marks_left_out": 0}
    yield {"end": builders.START_NS + steps * NS // 5, **last}


# -- the kept pictures ---------------------------------------------------------------------------


def keep(folder: Path) -> None:
    """Takes the page's pictures, and no others."""
    for old in pictures():
        old.unlink()
    for part in parts():
        for name in part.pictures:
            path = KEPT / name
            path.parent.mkdir(exist_ok=True)
            if path.suffix == ".png":
                words = texts_of_report(folder / part.report_of(name))
                _keep_screenshot(folder / name, path, words)
            else:
                path.write_text(_compact((folder / name).read_text()))


def _compact(svg: str) -> str:
    """Half as long: a tenth of a pixel is enough, and each style is told once."""
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r' transform="rotate\(-0 .*?\)"', "", re.sub(r"\s*\n\s*", " ", svg))
    styles = {style: f"s{index}" for index, style in enumerate(dict.fromkeys(STYLE.findall(svg)))}
    svg = STYLE.sub(lambda found: f'class="{styles[found[1]]}"', svg)
    svg = re.sub("<[^>]+>", lambda tag: re.sub(r"(\.\d)\d+", r"\1", tag[0]), svg)
    rules = "".join(f".{name}{{{style}}}" for style, name in styles.items())
    svg = svg.replace("<defs>", f"<style>{rules}</style><defs>", 1).replace("> <", ">\n<")
    return svg.replace("<svg", f"<!-- {LICENSE} -->\n<svg", 1)


def _keep_screenshot(source: Path, path: Path, words: list[str]) -> None:
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    said = PngInfo()
    said.add_itxt(TEXT, "\n".join(words))
    # Octrees keep thin lines' colours, which the median cut mixes.
    few = Image.open(source).convert("RGB").quantize(128, Image.Quantize.FASTOCTREE)
    few.save(path, optimize=True, pnginfo=said)


def main(words: list[str]) -> int:
    """Draws all; with --keep the guide has them."""
    if not words or words[1:] not in ([], ["--keep"]):
        print(__doc__)
        return 2
    folder = Path(words[0]).resolve()
    folder.mkdir()
    os.environ["JOULEMARK_CONFIG"] = str(folder / "joulemark.yaml")
    prepare(folder)
    for part in parts():
        run(part, folder, with_browser=True)
    if words[1:]:
        keep(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
