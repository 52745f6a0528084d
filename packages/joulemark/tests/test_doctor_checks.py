# `joulemark doctor`: checks that need no cluster; tests/e2e/test_doctor.py has the others.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import tempfile
from pathlib import Path

import pytest
from joulemark.doctor import slurm_checks
from joulemark.doctor.site import Site
from joulemark.doctor.slurmconf import SlurmConf


@pytest.fixture
def folder():
    """One that every user can look into, as no folder of pytest's is."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        yield Path(made)


@pytest.mark.parametrize(
    ("private", "mode", "folder_mode", "is_found"),
    [
        ("PrivateData=accounts,Jobs", 0o644, 0o755, True),
        ("PrivateData=jobs", 0o640, 0o755, False),
        ("PrivateData=jobs", 0o644, 0o750, False),
        ("PrivateData=nodes", 0o644, 0o755, False),
        ("", 0o644, 0o755, False),
    ],
)
def test_an_open_store_where_jobs_are_private(site, folder, private, mode, folder_mode, is_found):
    store, conf = folder / "store.sqlite", folder / "slurm.conf"
    store.touch(mode)
    store.chmod(mode)
    folder.chmod(folder_mode)
    conf.write_text(f"ClusterName=demo\n{private}\n")
    site.yaml.write_text(site.yaml.read_text().replace(str(site.store), str(store)))
    found = list(slurm_checks.private_store(Site(SlurmConf(conf), "n1")))
    assert [one.where for one in found] == [str(store)] * is_found
    assert all("mode 0644" in one.value and "chmod 640" in one.fix for one in found)
