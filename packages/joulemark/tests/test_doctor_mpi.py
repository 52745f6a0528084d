# `joulemark doctor`: whether srun starts an MPI's ranks as one job, by what each of them says.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import pytest
from joulemark.doctor import mpi_checks
from joulemark.doctor.site import Site
from joulemark.doctor.slurmconf import SlurmConf

#: as Slurm's srun, Open MPI's ompi_info and MPICH's mpichversion write it
NO_PMIX = "MPI plugin types are...\n\tnone\n\tpmi2\n"
SRUN = f"{NO_PMIX}\tpmix\nspecific pmix plugin versions available: pmix_v4\n"
DEBIANS = """\
ompi:version:full:4.1.4
mca:pmix:ext3x:version:"mca:2.1.0"
mca:pmix:isolated:version:"mca:2.1.0"
"""
WITH_PMI2 = """\
ompi:version:full:4.0.5
mca:pmix:isolated:version:"mca:2.1.0"
mca:pmix:s1:version:"mca:2.1.0"
mca:pmix:s2:version:"mca:2.1.0"
"""
WITH_NOTHING = 'ompi:version:full:4.0.5\nmca:pmix:isolated:version:"mca:2.1.0"\n'
FIVE = "ompi:version:full:5.0.7\nmca:prte:version\n"
MPICH = "MPICH Version:    \t4.0.2\nMPICH configure: \t--prefix=/usr --with-pm=hydra\n"
MPICH_PMIX = "MPICH Version: 4.2.1\nMPICH configure: --with-pmix=/usr --with-pm=no\n"


@pytest.fixture
def found(tmp_path, monkeypatch):
    """The findings of a machine that has these programs alone, which say so much."""

    def find(default: str, environment: str = "", **programs: str):
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setenv("JM_MPI", environment)
        for name, said in programs.items():
            (tmp_path / name).write_text(f"#!/bin/sh\nprintf '%s' '{said}'\n")
            (tmp_path / name).chmod(0o755)
        conf = tmp_path / "slurm.conf"
        conf.write_text(f"ClusterName=demo\n{default}\n")
        return list(mpi_checks.ranks(Site(SlurmConf(conf), "n1")))

    return find


@pytest.mark.parametrize(
    ("default", "srun", "mpi"),
    [
        ("MpiDefault=pmix", SRUN, {"ompi_info": DEBIANS}),
        ("MpiDefault=pmix_v4", SRUN, {"ompi_info": DEBIANS}),
        ("MpiDefault=none", SRUN, {"ompi_info": DEBIANS}),  # as job templates take it
        ("", SRUN, {"ompi_info": FIVE}),
        ("MpiDefault=pmi2", NO_PMIX, {"ompi_info": WITH_PMI2}),
        ("MpiDefault=pmi2", SRUN, {"mpichversion": MPICH}),
        ("MpiDefault=pmix", SRUN, {"mpichversion": MPICH_PMIX}),
        ("MpiDefault=pmi2", SRUN, {}),
        ("MpiDefault=pmi2", "", {"ompi_info": DEBIANS}),  # no configuration: no list
    ],
)
def test_ranks_that_start_as_one_job_are_no_finding(found, default, srun, mpi):
    assert not found(default, srun=srun, **mpi)


@pytest.mark.parametrize(
    ("default", "srun", "mpi", "values", "fix"),
    [
        (
            "MpiDefault=pmi2",
            SRUN,
            {"ompi_info": DEBIANS},
            ("MpiDefault=pmi2;", "Open MPI 4.1.4 speaks pmix;", "has none pmi2 pmix pmix_v4"),
            "set MpiDefault=pmix, or JM_MPI=pmix for job templates",
        ),
        (
            "MpiDefault=none",
            SRUN,
            {"ompi_info": WITH_PMI2},
            ("where job templates take pmix", "Open MPI 4.0.5 speaks pmi2"),
            "set MpiDefault=pmi2,",
        ),
        ("MpiDefault=pmix", SRUN, {"ompi_info": WITH_NOTHING}, ("speaks none of",), "build Open"),
        ("MpiDefault=pmi2", NO_PMIX, {"ompi_info": FIVE}, ("5.0.7 speaks pmix",), "build Open"),
        ("MpiDefault=pmix", SRUN, {"mpichversion": MPICH}, ("4.0.2 speaks pmi2",), "JM_MPI=pmi2"),
        ("MpiDefault=pmi2", SRUN, {"mpichversion": MPICH_PMIX}, ("speaks pmix",), "JM_MPI=pmix"),
        ("", NO_PMIX, {}, ("job templates take pmix; srun --mpi=list has none pmi2",), "build Sl"),
        ("MpiDefault=pmix_v5", SRUN, {"ompi_info": DEBIANS}, ("pmix_v5; srun",), "build Slurm"),
    ],
)
def test_ranks_that_would_each_be_alone_are_told(found, default, srun, mpi, values, fix):
    (one,) = found(default, srun=srun, **mpi)
    assert all(value in one.value for value in values), one
    assert fix in one.fix and one.where.endswith("/slurm.conf"), one


def test_what_job_templates_are_told_goes_before_the_default(found):
    assert not found("MpiDefault=none", "pmi2", srun=SRUN, ompi_info=WITH_PMI2)
    (one,) = found("MpiDefault=pmi2", "pmix", srun=SRUN, ompi_info=WITH_PMI2)
    assert one.where == "environment" and one.value.startswith("JM_MPI=pmix;")
