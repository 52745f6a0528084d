"""Talking to the cluster's Slurm as a user does: commands, jobs, accounting."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import os
import pwd
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.cluster.config import OPEN_MPI, Options
from tests.cluster.errors import ClusterError
from tests.cluster.waiting import PATIENCE_S, wait_for

SBIN = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENDED = {
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "TIMEOUT",
}
FIELDS = "JobID,JobIDRaw,JobName,State,ExitCode,ElapsedRaw,ConsumedEnergyRaw,NodeList,AdminComment"


class SlurmClient:
    """What a user of a cluster can do; its state folder and options say which cluster."""

    state: Path
    options: Options

    @property
    def slurm_conf(self) -> Path:
        return self.state / "etc" / "slurm.conf"

    @property
    def jobs_folder(self) -> Path:
        """Where jobs run and leave their output."""
        return self.state / "jobs"

    @property
    def env(self) -> dict[str, str]:
        """The environment of a user of this cluster."""
        kept = {k: v for k, v in os.environ.items() if not re.match("SLURM|SBATCH|SACCT|SRUN", k)}
        path = f"{kept.get('PATH', os.defpath)}:{SBIN}"
        build = self.options.build
        if build:
            path = ":".join([*build.slurm_path, path])
            path = f"{build.slurm_prefix}/bin:{path}"
        if build and build.bin:
            path = f"{build.bin}:{path}"
            kept["JOULEMARK_CONFIG"] = str(self.state / "etc" / "joulemark.yaml")
        if build and build.modules:
            kept["JOULEMARK_MODULES"] = str(build.modules)
        return {**kept, **OPEN_MPI, "PATH": path, "SLURM_CONF": str(self.slurm_conf)}

    def run(
        self,
        command: Sequence[str | Path],
        check: bool = True,
        timeout: float = 120.0,
        user: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> str:
        """Runs a client command as a user would, returns its standard output."""
        words = [str(word) for word in command]
        if user:
            as_user = ["setpriv", f"--reuid={user}", "--init-groups", f"--regid={_group_of(user)}"]
            words = [*as_user, *words]
        done = subprocess.run(
            words,
            env={**self.env, **(env or {})},
            cwd=self.jobs_folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        if check and done.returncode:
            said = f"{done.stderr.strip()}\n{done.stdout.strip()}".strip()
            raise ClusterError(f"{' '.join(words)}: exit {done.returncode}\n{said}")
        return done.stdout

    def sbatch(self, *args: str | Path, user: str | None = None, **more: object) -> int:
        """Submits a job; its output goes to job_output(id) unless the arguments say otherwise."""
        where = [f"--chdir={self.jobs_folder}", f"--output={self.jobs_folder}/%j.out"]
        text = self.run(["sbatch", "--parsable", *where, *args], user=user, **more)  # type: ignore[arg-type]
        return int(text.split(";")[0])

    def job_output(self, job: int) -> str:
        return (self.jobs_folder / f"{job}.out").read_text(errors="replace")

    def sacct(
        self, job: int | str, fields: str = FIELDS, *options: str, ours: bool = False
    ) -> list[dict[str, str]]:
        """Rows of sacct, or of `joulemark sacct`, for one job: the job first, then its steps; each
        a dict by field name."""
        program = ["joulemark", "sacct"] if ours else ["sacct"]
        text = self.run([*program, *options, "-P", "-j", str(job), "-o", fields])
        header, *rows = [line.split("|") for line in text.splitlines()]
        return [dict(zip(header, row)) for row in rows]

    def job_state(self, job: int | str) -> str:
        """Slurm's word for it as the controller knows it: PENDING, RUNNING, COMPLETED, ..."""
        text = self.run(["scontrol", "show", "job", str(job)], check=False)
        match = re.search(r"JobState=(\w+)", text)
        return match[1] if match else "UNKNOWN"

    def notices(self, job: int | str = "[0-9]*") -> list[Path]:
        """EpilogSlurmctld's, of a job that has ended and is not merged yet."""
        return list(self.state.glob(f"ledger/*/ended/{job}.*"))

    def wait_running(self, job: int | str, timeout_s: float = PATIENCE_S) -> None:
        wait_for(lambda: self.job_state(job) == "RUNNING", timeout_s, f"job {job} to run")

    def wait_job(self, job: int | str, timeout_s: float = 120.0) -> dict[str, str]:
        """Waits until the job ended, is merged, and sacct's rows settled; returns the job's.

        Two things settle later: AdminComment and, for jobs shorter than 5 s, JobName, which
        slurmdbd calls "allocation" until then.
        """

        def settled() -> list[dict[str, str]]:
            if self.run(["squeue", "-h", "-j", str(job)], check=False).strip():
                return []
            if self.notices(job):
                return []
            with contextlib.suppress(ClusterError):  # slurmdbd may be away for a moment
                rows = self.sacct(job)
                if rows and all(row["State"].split()[0] in ENDED for row in rows):
                    return rows
            return []

        return wait_for(settled, timeout_s, f"job {job} to end", poll_s=0.1)[0]


def _group_of(user: str) -> int:
    return pwd.getpwnam(user).pw_gid
