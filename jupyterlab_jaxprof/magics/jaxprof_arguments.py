"""The arguments of %jaxprof: its commands and their options, and the help."""

from __future__ import annotations

from .arguments import MagicParser

#: What may stand first behind %jaxprof.
COMMANDS = {
    "doctor": "what there is, and what is amiss",
    "report": "what a capture or trace says",
    "compare": "what changed between two or more",
    "explain": "the page about a finding",
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
    %jaxprof explain PATTERN         the page about a finding, such as host-starves-device

Options of report and compare
  --json          print it as JSON, for programs, instead of the card
  --save VAR      set VAR to the capture (VAR.findings, VAR.summary), or to the comparison

A name or path that holds spaces stands in quotes. %jaxprof and %jaxprof doctor give an object back:
`sheet = %jaxprof doctor`, then `sheet.facts`. In a terminal, `jaxprof` does the same.
"""


def parser(magic: str) -> MagicParser:
    """Give what reads the line behind %jaxprof report or %jaxprof compare; the others have no options."""
    parser = MagicParser(magic, name_is="captures")
    command = magic.partition(" ")[2]
    if command == "compare":
        parser.option("after", nargs="*", text="the ones after", values="captures")
    if command in ("report", "compare"):
        parser.option("--json", action="store_true", text="print it as JSON")
        parser.option("--save", default="", text="set a variable to it", values="variables")
    return parser
