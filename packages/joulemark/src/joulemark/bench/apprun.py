# Runs an application's phases, each a region of its own, and takes their results to the reports.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse
import contextlib
import hashlib
import http.client
import json
import os
import shlex
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from joulemark import ending, environment, output, workfolder
from joulemark.bench import outside, parts, program
from joulemark.bench.app import App, Figure, Phase, Result, expand, find, product
from joulemark.errors import UsageError, UserError

#: One task of each node marks the region, and so tells the node's energy, apart from what the
#: program complains of. Where a program has parts it samples the job's energy meanwhile; a mark
#: after the end has the instruments read once more, so that the last part's end is inside.
MARKED = """\
rank=${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-${SLURM_LOCALID:-0}}}
if [[ $rank == 0 && -n ${JOULEMARK_SOCKET:-} ]] && command -v joulemarkctl >/dev/null
then
    node=${SLURM_NODEID:-0}
    exec 3>&2 2>"$JM_ENERGY.$node"
    marked=(joulemarkctl region "$JM_REGION" -- bash -c 'exec "$@" 2>&3 3>&-' bash "$@")
    [[ -n $JM_SAMPLES ]] || exec "${marked[@]}"
    exec 4>"$JM_SAMPLES.$node"
    read -r before _ </proc/uptime
    boot=$before # that has two digits, and is exact where they change
    while [[ $boot == "$before" ]]; do read -r boot _ </proc/uptime; done
    (LC_ALL=C && echo "clocks real_s=$EPOCHREALTIME boot_s=$boot") >&4
    joulemarkctl job >&4
    coproc joulemarkctl job --every 0.5 >&4 3>&-
    "${marked[@]}" 4>&-
    status=$?
    joulemarkctl region "$JM_REGION-after" -- sleep 0.3 2>/dev/null
    joulemarkctl job >&4
    exit $status
else exec "$@"; fi"""
RUN = "run.json"
DAY_S = 86400
GIB = 2**30
LATEST_S = 1e11  # since 1970: what a date can be
SILENCE_S = 60.0  # of who has an input


class Ended(Exception):
    """By a signal."""

    def __init__(self, number: int):
        super().__init__(number)
        self.number = number


def run(options: argparse.Namespace) -> int:
    """`joulemark app run`."""
    app = find(options.name)
    settings = app.with_settings(options.set)
    ranks = environment.count("SLURM_NTASKS") if options.ranks is None else options.ranks
    nodes = environment.count("SLURM_JOB_NUM_NODES")
    if ranks < 1:
        raise UsageError(f"--ranks {ranks}: must be at least 1")
    launcher = shlex.split(options.launcher)
    if ranks > 1 and not launcher and any(phase.has_ranks for phase in app.phases):
        raise UsageError(f"{ranks} ranks: say what starts them: --launcher 'srun --mpi=pmix'")
    told = {"app": app.name, "settings": settings, "ranks": ranks, "nodes": nodes}
    of_run = {"ranks": str(ranks), "nodes": str(nodes), "folder": ""}
    app.check({**settings, **of_run})
    told["manifest"] = outside.manifest_of(None, _build(app))
    told["ran"] = outside.here()
    if nodes > 1 and not any(phase.has_ranks for phase in app.phases):
        output.tell([f"{app.name}: runs on one node; the job has {nodes}"])
    out = Path(options.out or f"{app.name}.{os.environ.get('SLURM_JOB_ID', os.getpid())}")
    try:
        out.mkdir(parents=True)
    except OSError as error:
        raise UserError(f"--out {out}: {error.strerror}: give a new folder") from None
    try:
        with ending.as_before(), ending.by_the_first(Ended) as check:
            with workfolder.made(options.folder, app.name) as folder:
                told["folder"] = str(folder)
                names = {**settings, **of_run, "folder": str(folder)}
                told["phases"] = _run_phases(app, names, launcher, out, check)
            outside.write(out / RUN, json.dumps(told, indent=1))
    except Ended as ended:
        output.tell([f"{app.name}: ended by {signal.Signals(ended.number).name}: no results"])
        return 128 + ended.number
    return _report(app, out, options.cooked)


def results(options: argparse.Namespace) -> int:
    """`joulemark app results`."""
    return _report(find(options.name), Path(options.folder), options.cooked)


def _report(app: App, folder: Path, cooked: str | None) -> int:
    """The exit status."""
    ran = _Run(app, folder)
    lines, failures = [], []
    for group in _verified_together(app):
        made, wrong = ran.results(group)
        lines += made
        failures += wrong
    if not lines:
        raise UserError(f"{folder}: no phase that has figures has run: see its *.err")
    outside.put(lines, cooked)
    output.tell([_told(one) for one in ran.sums if one["verified"]])
    output.tell([f"{app.name} {one}; reported without performance" for one in failures])
    return 1 if failures else 0


def _told(line: dict) -> str:
    """A result of several parts, at a glance: storage's people count in GiB and kJ."""
    scale, unit = (GIB, "GiB") if line["unit"] == "B/s" else (1, line["unit"].rpartition("/")[0])
    rate = f"{line['performance'] / scale:.4g} {unit}/s"
    name = f"{line['benchmark']} {line['kernel']}, {line['variant']}"
    if line["energy_j"] is None:
        return f"{name}: {rate}"
    joules, error = line["energy_j"], line["energy_uncertainty_j"]
    model = ", estimated by a model" if line["estimated"] else ""
    efficiency = f", {1e3 * line['operations'] / scale / joules:.4g} {unit}/kJ" if joules else ""
    return f"{name}: {rate}{efficiency}, {joules:.1f} J +- {error:.1f} J (k=2){model}"


# -- a run ---------------------------------------------------------------------------------------


def _run_phases(
    app: App, names: dict[str, str], launcher: list[str], out: Path, check: Callable[[], None]
) -> dict[str, dict]:
    """What each that has run did, by its name."""
    ran: dict[str, dict] = {}
    _put_inputs(app, Path(names["folder"]), names)
    for phase in app.phases:
        check()
        words = launcher if phase.has_ranks else []
        ran[phase.name] = _run_phase(phase, app, names, words, out)
        if ran[phase.name]["status"]:
            break  # what comes after reads what it should have left
    check()
    return ran


def _put_inputs(app: App, folder: Path, names: dict[str, str]) -> None:
    for one in app.inputs:
        if one.text is not None:
            outside.write(folder / one.file, expand(one.text, names))
            continue
        try:
            with urllib.request.urlopen(one.url, timeout=SILENCE_S) as remote:
                content = remote.read()
            (folder / one.file).write_bytes(content)
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise UserError(f"{one.url}: {error}: {app.name} needs it") from None
        digest = hashlib.sha256(content).hexdigest()
        if digest != one.sha256:
            raise UserError(f"{one.url}: has sha256 {digest}, not {one.sha256}")


def _run_phase(
    phase: Phase, app: App, names: dict[str, str], launcher: list[str], out: Path
) -> dict:
    """Its output is in NAME.out and NAME.err; when it began, and its exit status."""
    words = [expand(word, names) for word in phase.command]
    energy = (out / f"{phase.name}.energy").resolve()
    env = {**os.environ, "JM_REGION": f"{app.name}-{phase.name}", "JM_ENERGY": str(energy)}
    env["JM_SAMPLES"] = str((out / f"{phase.name}.samples").resolve()) if phase.parts else ""
    env["OMP_NUM_THREADS"] = f"{product(expand(app.threads, names)):.0f}"
    command = [*launcher, "bash", "-c", MARKED, "bash", *words]
    start_s = time.time()
    with contextlib.ExitStack() as stack:
        said, complained = (
            stack.enter_context((out / f"{phase.name}.{ending}").open("wb"))
            for ending in ("out", "err")
        )
        streams = {"stdin": subprocess.DEVNULL, "stdout": said, "stderr": complained}
        options = {"start_new_session": True, "env": env, **streams}
        try:
            with ending.child(command, ending.end_group, **options) as child:
                status = child.wait()
        except OSError as error:
            raise UserError(f"{command[0]}: {error.strerror}: see --launcher") from None
    if status:
        what = f"exit status {status}" if status > 0 else f"signal {-status}"
        output.tell([f"{app.name} {phase.name}: {what}: see {out / phase.name}.err"])
    if phase.parts:
        _keep(Path(expand(phase.parts.folder, names)), out / f"{phase.name}.parts")
    return {
        "start_s": start_s,
        "status": status,
        "utc_offset_s": time.localtime(start_s).tm_gmtoff,
    }


def _keep(folder: Path, kept: Path) -> None:
    """What the program wrote of its parts, which lies on the file system that is measured."""
    try:
        shutil.copytree(folder, kept)
    except (OSError, shutil.Error) as error:
        output.tell([f"{folder}: {error}: nothing is known of its parts"])


def _build(app: App) -> program.Build:
    path = shutil.which(app.program)
    if path is None:
        fix = f"load its module, or install it: spack install {app.spack}"
        raise UserError(f"{app.program}: is not on the PATH: {fix}")
    return program.build(path)


# -- its results ---------------------------------------------------------------------------------


def _verified_together(app: App) -> Iterator[list[Phase]]:
    """Phases up to one without figures, which verifies them; the others each by itself."""
    group: list[Phase] = []
    for phase in app.phases:
        group.append(phase)
        if not phase.figures:
            yield group
            group = []
    yield from ([one] for one in group)


@dataclass(frozen=True)
class _Wrote:
    """What a phase's program left."""

    text: str
    parts: dict[str, parts.Part]


class _Run:
    """What `joulemark app run` left in a folder."""

    def __init__(self, app: App, folder: Path) -> None:
        self.app, self.folder = app, folder
        told = _read_run(folder)
        if told["app"] != app.name:
            raise UsageError(f"{folder}: is a run of {told['app']}, not of {app.name}")
        self.phases, self.manifest, self.ran = told["phases"], told["manifest"], told["ran"]
        self.settings = {**app.settings, **told["settings"]}
        self.ranks, self.nodes = told["ranks"], told["nodes"]
        self.names = {**self.settings, "ranks": str(self.ranks), "nodes": str(self.nodes)}
        self.names["folder"] = told["folder"]
        self.sums: list[dict] = []  # lines of several parts together
        app.check(self.names)

    def results(self, group: list[Phase]) -> tuple[list[dict], list[str]]:
        """The cooked lines of what has run of phases, and what is wrong with them."""
        failures, values = [], []
        for phase in group:
            ran = self.phases.get(phase.name)
            if ran is None:
                failures.append(f"{phase.name}: has not run")
                continue
            wrote = self._wrote(phase)
            for word in self._caveats(phase, wrote):
                output.tell([f"{self.app.name} {phase.name}: {word}, as the variants say"])
            found, wrong = self._measured(phase, wrote)
            values += [(phase, wrote, *one) for one in found]
            failures += [f"{phase.name}: {one}" for one in wrong]
        lines = [self._line(*one, not failures) for one in values]
        self.sums += [line for line, one in zip(lines, values) if len(one[-1].parts) > 1]
        return lines, failures

    def _measured(
        self, phase: Phase, wrote: _Wrote
    ) -> tuple[list[tuple[Figure, Result]], list[str]]:
        """A phase's figures, and what is wrong with them."""
        texts = {name: part.text for name, part in wrote.parts.items()}
        found = [
            (figure, result)
            for figure in phase.figures
            for result in figure.results(wrote.text, texts, self.names)
        ]
        if status := self.phases[phase.name]["status"]:
            return found, [f"exit status {status}"]  # what else is wrong comes of it
        missing = [name for name in phase.named_parts if name not in texts]
        wrong = [f"no part {', '.join(missing)}"] if missing else []
        for check in phase.checks:
            wrong += check.failures(wrote.text, texts, self.names)
        for _, result in found:
            is_seen = result.performance or not texts.keys() >= set(result.parts)
            wrong += [] if is_seen else [f"no figure of {result.kernel}"]
        return found, wrong

    def _wrote(self, phase: Phase) -> _Wrote:
        text = _read(self.folder / f"{phase.name}.out")
        if phase.parts is None:
            return _Wrote(text, {})
        kept, offset_s = (
            self.folder / f"{phase.name}.parts",
            self.phases[phase.name]["utc_offset_s"],
        )
        return _Wrote(text, parts.read(phase.parts, kept, offset_s))

    def _line(
        self, phase: Phase, wrote: _Wrote, figure: Figure, result: Result, is_sound: bool
    ) -> dict:
        of_parts = [wrote.parts[name] for name in result.parts if name in wrote.parts]
        start_s = self.phases[phase.name]["start_s"]
        run_of = outside.Run(
            benchmark=self.app.name,
            kernel=result.kernel,
            variant="-".join([expand(figure.variant, self.names), *self._caveats(phase, wrote)]),
            size=int(product(expand(figure.size, self.names))),
            operations=result.operations,
            operation=figure.operation,
            unit=figure.unit,
            threads=int(product(expand(self.app.threads, self.names))),
            ranks=self.ranks if phase.has_ranks else 1,
            nodes=self.nodes if phase.has_ranks else 1,
            start_s=of_parts[0].start.middle_s if of_parts else start_s,
        )
        version = self.app.version and self.app.version.find(wrote.text, self.names)
        known = [one for one in (version, self.manifest["version"]) if one]
        manifest = {**self.manifest, "version": " ".join(known) or None}
        options = {f"option_{name}": value for name, value in self.settings.items()}
        performance = result.performance if is_sound else None
        energy = None
        if performance is not None:
            energy = self._energy(phase, of_parts, run_of.nodes)
        return {**outside.line(run_of, performance, energy, manifest, self.ran), **options}

    def _caveats(self, phase: Phase, wrote: _Wrote) -> list[str]:
        found = phase.caveats.items()
        return [word for word, where in found if where.find(wrote.text, self.names) is not None]

    def _energy(
        self, phase: Phase, of_parts: list[parts.Part], nodes: int
    ) -> outside.Energy | None:
        """None where not each node told; one that did not is not taken for 0 J."""
        what = "samples" if of_parts else "energy"
        texts = [_read(path) for path in sorted(self.folder.glob(f"{phase.name}.{what}.*"))]
        if not texts:
            return None
        try:
            if not of_parts:
                return outside.energy_of("".join(texts), nodes)
            if len(texts) != nodes:
                raise UsageError(f"samples of {len(texts)} nodes, not of {nodes}")
            return parts.energy_of([parts.Curve(text) for text in texts], of_parts)
        except (UsageError, parts.PartsError) as error:
            names = " ".join([phase.name, *(part.name for part in of_parts)])
            output.tell([f"{self.folder}: {names}: {error}: the result has no energy"])
            return None


def _read_run(folder: Path) -> dict:
    try:
        told = json.loads((folder / RUN).read_text(encoding="utf-8"))
        if _is_sound(told):
            return told
        raise ValueError("is not as `joulemark app run` writes it")
    except OSError as error:
        raise UsageError(f"{folder / RUN}: {error.strerror}: name a run's folder") from None
    except (ValueError, LookupError, TypeError) as error:
        raise UsageError(f"{folder / RUN}: {error}: name a run's folder") from None


def _is_sound(told: dict) -> bool:
    kinds = {"app": str, "settings": dict, "phases": dict, "manifest": dict, "ran": dict}
    kinds |= {"ranks": int, "nodes": int, "folder": str}
    return (
        all(isinstance(told[key], kind) for key, kind in kinds.items())
        and min(told["ranks"], told["nodes"]) >= 1
        and all(isinstance(one, str) for one in told["settings"].values())
        and {"target", "cpu", "job", "node", "instruments"} <= set(told["ran"])
        and "version" in told["manifest"]
        and all(
            isinstance(one["status"], int)
            and 0 <= one["start_s"] < LATEST_S
            and abs(one.get("utc_offset_s", 0)) <= DAY_S
            for one in told["phases"].values()
        )
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
