# One line of the doctor's: what is wrong, where, what it is now, and the fix.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from dataclasses import asdict, dataclass

from joulemark.output import printable

ERROR, WARNING = "error", "warning"


@dataclass(frozen=True)
class Finding:
    """Something that is set up wrongly; an error costs energy figures, a warning less."""

    check: str  # its name, such as `contain`
    level: str  # ERROR or WARNING
    where: str  # a file, a program, a node's part
    value: str  # what is there
    fix: str
    node: str = ""  # "": this machine

    def line(self) -> str:
        """For people: `error: contain: slurm.conf: PrologFlags=none: add Contain`."""
        at = f"{self.node}: " if self.node else ""
        text = f"{self.level}: {at}{self.check}: {self.where}: {self.value}: {self.fix}"
        return printable(text)

    def data(self) -> dict[str, str]:
        """For programs."""
        return asdict(self)
