"""A job's work at a Lustre server: from the name that its step's session is given to the columns
of sacct. The server is a tree such as one has; real ones' texts are in the command's own tests."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.e2e.outcome import record_dir
from tests.e2e.waveform import NS

ENTRY = """\
- job_id:          {}
  snapshot_time:   1795338237.402397140 secs.nsecs
  start_time:      1795338237.337577030 secs.nsecs
  read_bytes:      {{ samples: 1, unit: bytes, min: 4096, max: 4096, sum: 4096 }}
  write_bytes:     {{ samples: 2, unit: bytes, min: 4194304, max: 4194304, sum: 8388608 }}
"""


def settle(lines: Path) -> None:
    """What the collector would write in three minutes."""
    last = json.loads(lines.read_text().splitlines()[-1])
    later = {**last, "from_ns": last["time_ns"], "time_ns": last["time_ns"] + 180 * NS}
    text = json.dumps({**later, "total": [0, 0, 0], "jobs": {}})
    lines.write_text(f"{lines.read_text()}{text}\n")


@pytest.fixture
def session_name(cluster: Cluster) -> Iterator[Path]:
    """Stands where /sys/fs/lustre/jobid_this_session does on a client."""
    path = cluster.state / "lustre-jobid"
    path.touch()
    path.chmod(0o666)
    yield path
    path.unlink()


def test_a_jobs_work_is_in_sacct(steady: Cluster, session_name: Path, tmp_path: Path) -> None:
    ost = tmp_path / "proc/fs/lustre/obdfilter/demo-OST0000"
    boot = tmp_path / "proc/sys/kernel/random/boot_id"
    for folder in (ost, boot.parent):
        folder.mkdir(parents=True)
    boot.write_text("this one\n")
    (ost / "job_stats").write_text("job_stats:\n")
    tmp_path.chmod(0o755)
    collect = ["joulemark", "io", "collect", "--once", "--server", "oss1", "--root", str(tmp_path)]
    steady.run(collect)
    job = steady.sbatch("-w", "n1", "--wrap", f"cat {session_name}; echo; srun cat {session_name}")
    steady.wait_job(job)
    names = steady.job_output(job).split()
    assert names == [f"test.{job}.batch", f"test.{job}.0"]
    (ost / "job_stats").write_text("job_stats:\n" + "".join(map(ENTRY.format, names)))
    steady.run(collect)
    steady.run(["joulemark", "merge"])
    columns = "JobIDRaw,BytesRead,BytesWritten,MetadataOps,EnergyNotes"
    rows = steady.sacct(job, columns, ours=True)
    assert [row["BytesRead"] for row in rows] == [""] * len(rows)  # servers may work for it still
    settle(record_dir(steady) / "io" / "oss1.jsonl")
    steady.run(["joulemark", "merge"])
    rows = {row["JobIDRaw"]: row for row in steady.sacct(job, columns, ours=True)}
    for name, entries in ((f"{job}", 2), (f"{job}.batch", 1), (f"{job}.0", 1)):
        assert rows[name]["BytesRead"] == str(entries * 4096)
        assert rows[name]["BytesWritten"] == str(entries * 8388608)
        assert rows[name]["MetadataOps"] == "0"
    assert "storage" not in rows[f"{job}"]["EnergyNotes"]
