"""The arguments of %jaxprof: its commands and their options, and the help."""

from __future__ import annotations

from .arguments import MagicParser, filled

INSTALL = "install-nsys-kernel"

#: What may stand first behind %jaxprof.
COMMANDS = {
    "doctor": "what there is, and what is amiss",
    "report": "what a capture or trace says",
    "compare": "what changed between two or more",
    "import": "make a capture of a file",
    "explain": "the page about a finding",
    "install-nsys-kernel": "make a kernel that Nsight Systems starts",
    "help": "show the help",
}

HELP = """\
Tell what jupyterlab-jaxprof finds here, and what captures say.

    %jaxprof                         the version, the store of captures, and which magics answer to
                                     which names
    %jaxprof doctor                  every tool, version, device and permission, and what is known to
                                     go wrong, each with its remedy; it imports JAX, which then takes
                                     its devices
    %jaxprof report NAME|ID|PATH     the findings, steps and tables of a capture (the newest of that
                                     name), or of any trace or report, whoever recorded it: a
                                     directory, *.xplane.pb, *.nsys-rep, *.qdstrm, *.sqlite;
                                     NAME~1 is the capture before the newest of that name
    %jaxprof compare BEFORE AFTER    two of those, or more: steps, findings, and what got slower and
                                     faster, each against the first
    %jaxprof import FILE             make a capture of a trace, a report, or the zip that a capture
                                     downloads as; --name NAME names it
    %jaxprof explain PATTERN         the page about a finding, such as host-starves-device
    %jaxprof install-nsys-kernel     make a kernel for the launcher that Nsight Systems starts, so that
                                     %%nsys --in-kernel and %nsys start can record it

Options of report and compare
  --json          print it as JSON, for programs, instead of the card
  --save VAR      set VAR to the capture (VAR.findings, VAR.summary), or to the comparison

Options of install-nsys-kernel
  --trace NAMES        what nsys traces in these kernels (default cuda,nvtx)
  --osrt               calls of the operating system's library too
  --name NAME          the kernelspec's name (default python3-nsys)
  --display-name TEXT  its name in the launcher (default "Python 3 (Nsight Systems)")
  --sys-prefix         write it into this Python's environment, not into the user's directory
  --remove             remove it again

A name or path that holds spaces stands in quotes. %jaxprof and %jaxprof doctor give an object back:
`sheet = %jaxprof doctor`, then `sheet.facts`. In a terminal, `jaxprof` does the same.
"""


def parser(magic: str) -> MagicParser:
    """Give what reads the line behind a command of %jaxprof; those of no options included."""
    command = magic.partition(" ")[2]
    parser = MagicParser(magic, name_is="" if command == INSTALL else "captures")
    if command == INSTALL:
        parser.option("--trace", type=filled("names, as cuda,nvtx"), text="what nsys traces: cuda,nvtx")
        parser.option("--osrt", action="store_true", text="trace the system library's calls")
        parser.option("--name", dest="kernel", type=filled("a name"), text="the kernelspec's name")
        parser.option("--display-name", type=filled("a text"), text="its name in the launcher")
        parser.option("--sys-prefix", action="store_true", text="write it into this environment")
        parser.option("--remove", action="store_true", text="remove it again")
    if command == "compare":
        parser.option("after", nargs="*", text="the ones after", values="captures")
    if command == "import":
        parser.option("--name", dest="called", default="", text="what it is called")
    if command in ("report", "compare", "import"):
        parser.option("--json", action="store_true", text="print it as JSON")
        parser.option("--save", default="", text="set a variable to it", values="variables")
    return parser
