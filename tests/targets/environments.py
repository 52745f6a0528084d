# Installs an environment by the state's own Spack, with what this machine's has in its store.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import shutil
from pathlib import Path

from tests.cluster import CHECKOUT, cache_folder
from tests.stranger import need_spack
from tests.targets import backends

CACHE = cache_folder()
SPACK = CACHE / "bin" / "spack"
PLACE = CACHE / "targets" / "environments"
EXTERNAL = """\
  {name}:
    externals:
    - spec: {name}@{version}
      prefix: {prefix}
"""


def external(name: str, version: str, prefix: Path) -> str:
    """Lines of a packages.yaml: it is there already, in this prefix."""
    return EXTERNAL.format(name=name, version=version, prefix=prefix)


def install(name: str, externals: str = "", files: dict[str, str] | None = None) -> Path:
    """Builds environments/NAME, with more externals or files; the folder of its programs."""
    need_spack()
    for part, source in (("common", CACHE), ("sites", CACHE), (name, CHECKOUT)):
        shutil.rmtree(PLACE / part, ignore_errors=True)
        if (source / "environments" / part).exists():
            shutil.copytree(source / "environments" / part, PLACE / part)
    for file, text in (files or {}).items():
        (PLACE / name).mkdir(exist_ok=True)
        (PLACE / name / file).write_text(text)
    detected = PLACE / "sites" / "debian" / "detected.yaml"
    if externals.partition("\n")[0] not in detected.read_text().splitlines():
        detected.write_text(detected.read_text() + externals)
    link = PLACE.parent / "spack-repo"
    link.unlink(missing_ok=True)
    link.symlink_to(CHECKOUT / "spack-repo")
    here = (SPACK, "-e", PLACE / name)
    backends.must(*here, "concretize", "-f")
    backends.must(*here, "install", "-j", backends.JOBS)
    return PLACE / name / ".spack-env" / "view" / "bin"


def having_recipes(backend: str) -> list[Path]:
    """The benchmarks that the suite takes, with their backend."""
    recipes = CHECKOUT / "spack-repo/spack_repo/joulemark/packages"
    found = backends.having(backend)
    return [one for one in found if (recipes / one.name.replace("-", "_")).is_dir()]
