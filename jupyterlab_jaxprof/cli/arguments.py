"""What `jaxprof` can be asked for."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from jupyterlab_jaxprof.environment import own_version

_STATUS = """\
exit status: 0 done; 1 --fail-on matched a finding, or the doctor found something that must be mended;
2 wrong arguments, or something that can't be read or written (a sentence on stderr says what); 130 Ctrl-C.
"""
_TARGET = (
    "a capture's name or identifier; or the path of a trace or report, whoever recorded it: a directory, "
    "*.xplane.pb, *.nsys-rep, *.qdstrm, *.sqlite (./NAME for a path without a slash that a capture is called "
    "too; NAME~1 for the capture before the newest of that name)"
)

#: Makes a command's parser, of its name and what it does.
_Add = Callable[[str, str], argparse.ArgumentParser]


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line; ends the process, with status 2, where it is wrong or says nothing."""
    reader = parser()
    if not (sys.argv[1:] if arguments is None else arguments):
        reader.print_help(sys.stderr)
        reader.exit(2)
    return reader.parse_args(arguments)


def parser() -> argparse.ArgumentParser:
    """Give what reads the command line."""
    reader = argparse.ArgumentParser(
        prog="jaxprof",
        description="What captures of JAX programs, traces and Nsight reports say.",
        epilog=_STATUS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    reader.add_argument("--version", action="version", version=f"jaxprof {own_version() or 'not installed'}")
    commands = reader.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def add(name: str, told: str) -> argparse.ArgumentParser:
        return commands.add_parser(
            name,
            help=told,
            description=told[0].upper() + told[1:] + ".",
            epilog=_STATUS,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    _add_reading(add)
    _add_import(add)
    explain = add("explain", "show the documentation's page about a finding")
    explain.add_argument("pattern", metavar="PATTERN", help="its name, such as host-starves-device")
    doctor = add("doctor", "look at tools, versions, devices and permissions, and say what helps")
    doctor.add_argument("--json", action="store_true", help="print JSON, for programs")
    _add_nsys_kernel(add)
    listed = add("list", "list the captures in the store, the newest first")
    listed.add_argument("--json", action="store_true", help="print JSON, for programs")
    listed.add_argument("-n", type=_positive, default=20, metavar="N", help="at most so many (default 20)")
    return reader


def _add_reading(add: _Add) -> None:
    report = add("report", "show the findings, steps and tables of a capture, trace or report")
    report.add_argument("target", metavar="PATH|NAME", help=_TARGET)
    report.add_argument("--json", action="store_true", help="print JSON, for programs")
    report.add_argument(
        "--fail-on",
        metavar="PATTERN[,PATTERN]",
        help="exit with 1 if one of these findings is there: names such as recompilation, with * for any "
        "characters; 'problem' is every finding that costs time",
    )
    report.add_argument(
        "--html", type=_file, metavar="FILE", help="write the report to FILE as an HTML page too"
    )
    compare = add("compare", "show what changed from one capture, trace or report to others")
    compare.add_argument("before", metavar="BEFORE", help=_TARGET)
    compare.add_argument("after", metavar="AFTER", nargs="+", help="those compared with it, one or more")
    compare.add_argument("--json", action="store_true", help="print JSON, for programs")


def _add_import(add: _Add) -> None:
    imported = add("import", "make a capture of a trace or report, of any origin")
    imported.add_argument(
        "path",
        metavar="FILE",
        help="a trace (*.xplane.pb, or a directory with one), a report (*.nsys-rep, *.qdstrm, *.sqlite), or "
        "the zip that a capture downloads as; it is copied into the store",
    )
    imported.add_argument("--name", default="", help="what the capture is called; else as the file is")
    imported.add_argument("--json", action="store_true", help="print JSON, for programs")
    imported.add_argument("--move", action="store_true", help="take the file away instead of copying it")


def _add_nsys_kernel(add: _Add) -> None:
    kernel = add("install-nsys-kernel", "make a kernel for JupyterLab's launcher that Nsight Systems starts")
    kernel.add_argument("--trace", metavar="NAMES", help="what nsys traces in it (default cuda,nvtx)")
    kernel.add_argument("--osrt", action="store_true", help="calls of the operating system's library too")
    kernel.add_argument("--name", metavar="NAME", help="the kernelspec's name (default python3-nsys)")
    kernel.add_argument(
        "--display-name",
        metavar="TEXT",
        help="its name in the launcher (default 'Python 3 (Nsight Systems)')",
    )
    kernel.add_argument(
        "--sys-prefix", action="store_true", help="write it into this Python's environment, not the user's"
    )
    kernel.add_argument("--remove", action="store_true", help="remove it again")


def _file(text: str) -> str:
    if text in ("", "-"):
        raise argparse.ArgumentTypeError(f"it takes the path of a file to write, not {text!r}")
    return text


def _positive(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"it takes a whole number of 1 or more, not {text!r}")
    return number
