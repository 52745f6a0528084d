"""A whole machine of our own: Debian's kernel and systemd, cgroup v2, any topology, under QEMU.

    with Machine(folder, topology="sockets=2,cores=2,threads=2") as machine:
        machine.put(prefix)
        machine.write("/etc/slurm/joulemark.yaml", text)
        machine.run("systemctl start joulemarkd")
        machine.cut_power()
        print(machine.run("journalctl -b -1 -u joulemarkd"))

It is up in about a minute, for QEMU interprets each instruction. Its disk is made once for all
checkouts, in the user's cache; what a machine writes is gone with it.
"""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from tests.vm.machine import Machine

__all__ = ["Machine"]
