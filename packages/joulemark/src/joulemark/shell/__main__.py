# Writes completions, man pages and Grafana's dashboards below a prefix:
# `python -m joulemark.shell ~/.local`.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import sys
from pathlib import Path

from joulemark.accounting import dashboards
from joulemark.shell import bash, fish, man, tree, zsh


def files(root: tree.Command) -> dict[str, str]:
    """Each file's text by its path below share/."""
    return {
        "bash-completion/completions/joulemark": bash.script(root),
        "fish/vendor_completions.d/joulemark.fish": fish.script(root),
        "zsh/site-functions/_joulemark": zsh.script(root),
        **{f"man/man1/{name}": text for name, text in man.pages(root).items()},
        **{f"joulemark/grafana/{name}": text for name, text in dashboards.files().items()},
    }


def main(prefix: Path) -> None:
    """Makes what is missing of the folders."""
    for name, text in files(tree.read()).items():
        path = prefix / "share" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
