# What a shell knows of the command: completion for bash, zsh and fish, and the man pages.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Ours, not shtab's and argparse-manpage's: pip installs the command without a network, with
whatever its Python has, and Spack's py-shtab 1.3 knows no fish."""
