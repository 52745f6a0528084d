# The options that the tables and plots of benchmarks share: which results, which variants.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse
import os


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """KERNEL, --from, --with and --best."""
    add_measured(parser)
    parser.add_argument(
        "--with",
        dest="prototypes",
        type=names,
        default=[],
        metavar="NAMES",
        help="beside them, prototypes by table 21 of PRACE-1IP D9.3.3, such as LRZ,SNIC,PSNC-IB",
    )
    parser.add_argument(
        "--best",
        action="store_true",
        help="one table or line a thread count: at each size the fastest variant, as a program "
        "that chooses for itself (jm-stream's auto) has it, and what failed",
    )


def add_measured(parser: argparse.ArgumentParser) -> None:
    """KERNEL and --from."""
    parser.add_argument(
        "kernel", metavar="KERNEL", help="copy, scale, sum, triad, mod2am, or a benchmark's name"
    )
    add_all(parser)


def add_all(parser: argparse.ArgumentParser) -> None:
    """--from alone."""
    add_from(parser, "cooked files", "$JOULEMARK_RESULTS, or .")


def add_from(parser: argparse.ArgumentParser, files: str, default: str) -> None:
    """--from; files: what they are; default: what is read without, in words."""
    parser.add_argument(
        "--from",
        dest="sources",
        nargs="+",
        action="extend",
        default=[],
        metavar="PATH",
        help=f"{files}, or folders with *.cooked.jsonl (default: {default})",
    )


def add_figures(parser: argparse.ArgumentParser, folder: str, **how) -> None:
    """The option that names the figures' folder, and --figures."""
    from joulemark.output import FIGURES

    parser.add_argument(folder, type=_folder, metavar="DIR", **how)
    parser.add_argument(
        "--figures",
        choices=[suffix.lstrip(".") for suffix in FIGURES],
        help="the figures' kind (default: png)",
    )


def check_figures(options: argparse.Namespace) -> None:
    """They are drawn with --plot alone."""
    from joulemark.errors import UsageError

    if options.figures and not options.plot:
        raise UsageError(f"--figures {options.figures}: goes with --plot")


def _folder(text: str) -> str:
    """No figure's name, which would become a folder with figures of another kind."""
    from joulemark.output import FIGURES, check_plots

    check_plots()
    folder, name = os.path.split(text)
    suffix = os.path.splitext(name)[1].lower()
    if suffix in FIGURES:
        kind = suffix.lstrip(".")
        raise argparse.ArgumentTypeError(
            f"'{text}' is no folder: name one, such as {folder or '.'}, with --figures {kind}"
        )
    return text


def names(text: str) -> list[str]:
    """Abbreviations, each once."""
    found = [name for name in text.split(",") if name]
    if not found:
        raise argparse.ArgumentTypeError("must be prototypes such as LRZ,SNIC")
    return list(dict.fromkeys(found))


def measurements(options: argparse.Namespace) -> list:
    """All, at least one."""
    from joulemark.bench import cooked
    from joulemark.errors import UsageError

    found = cooked.load(options.sources)
    if not found:
        raise UsageError("--from: there are no measurements")
    return found


def series(options: argparse.Namespace) -> list:
    """The measured ones that were asked for, and published ones beside them."""
    from joulemark.bench import compare, cooked, stats

    found = stats.series_of(cooked.load(options.sources), options.kernel)
    found = stats.best_of(found) if options.best else found
    return found + list(compare.beside(found, options.kernel, options.prototypes))
