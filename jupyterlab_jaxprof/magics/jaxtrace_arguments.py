"""The arguments of %%jaxtrace and %jaxtrace: read, checked as far as no JAX is needed, and explained."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .arguments import MagicParser, filled, identifier, one_line, read, split, usage_error, whole

MAX_STEPS = 100_000
MAX_DURATION_MS = 3_600_000
_BARE_PYTHON_LEVEL = 1

#: What may stand first behind %jaxtrace.
COMMANDS = {
    "start": "trace all cells until %jaxtrace stop",
    "stop": "end that trace and show its card",
    "help": "show the help",
}

HELP = """\
Trace a cell with JAX's profiler, tell what costs time in it, and keep the trace for XProf.

    %%jaxtrace [NAME] [options]         trace the cell below
    %jaxtrace start [NAME] [options]    trace all cells until %jaxtrace stop
    %jaxtrace stop                      end that trace and show its card
    %jaxtrace --remote HOST:PORT ...    trace other programs
    %jaxtrace                           tell what is running
    %jaxtrace --help                    show this text, as %%jaxtrace? does

The cell runs once, as it would without the magic, and the trace ends when everything that it
enqueued on the devices has ended. The trace is kept in the sidebar's list whatever came of the
cell: one that raises or is interrupted is kept too. The wall time shown has no share of the time
that the profiler takes to start and to write.

What to call it
  NAME                  in quotes if it holds spaces; default: the cell's number, such as In [5]

Steps
  --steps N             run the cell N times, each time as one step of the trace which ends only
                        when its work on the devices has. State carries over from step to step,
                        all output is shown, and the last value is the cell's. Without --steps
                        those count that the cell marks (jax.profiler.StepTraceAnnotation).
  --step-name NAME      what to call them; default: the function's name if the cell is one call,
                        else 'step'

What is recorded
  --python [LEVEL]      Python's function calls too; off by default (0), since they fill the
                        trace and slow the cell
  --host-level N        0 nothing, 1 annotations only, 2 and XLA's main events (default),
                        3 everything
  --device-level N      1 device events (default), 0 none; taken only by --remote, or where the
                        installed JAX's ProfileOptions has the field device_tracer_level
  --option FIELD=VALUE  any other field of jax.profiler.ProfileOptions, and
                        advanced_configuration.KEY=VALUE; may be given several times

Where it goes
  --perfetto            write perfetto_trace.json.gz too, for https://ui.perfetto.dev
                        (at most 1,000,000 events)
  --dir DIR             keep the capture in DIR instead of the sidebar's list
  --save VAR            set VAR to the capture: VAR.findings, VAR.steps, VAR.summary
  --no-card             show no card

The settings (JaxProf Magics) can hold options for every run. What stands on the line counts for
more than they do; --card undoes --no-card there, and so on for every option without a value.

Other programs
  --remote HOST:PORT[,HOST:PORT...]
                        trace programs that called jax.profiler.start_server(PORT), all at
                        once into one capture; each of them needs JAX 0.9 or later. Under
                        %%jaxtrace the cell runs meanwhile, itself untraced.
  --duration-ms N       for how long (default 1000)

Examples
    %%jaxtrace "first try" --steps 5
    params, loss = train_step(params, batch)

    %jaxtrace --remote localhost:9012,localhost:9013 --duration-ms 500
"""


@dataclass
class Arguments:
    """What was asked for. Option values are still text where only the installed JAX knows what is right."""

    name: str = ""
    steps: int | None = None
    step_name: str = ""
    profiler_options: dict[str, int | str] = field(default_factory=lambda: {})
    perfetto: bool = False
    directory: str = ""
    save: str = ""
    show_card: bool = True
    remote: str = ""
    duration_ms: int | None = None


def parse(magic: str, line: str) -> Arguments:
    """Read the line after `magic` (its name with the percent signs); raises UsageError with a sentence."""
    values = read(parser(magic), _with_python_level(split(magic, line)))
    arguments = Arguments(
        name=one_line(magic, values.name or ""),
        steps=values.steps,
        step_name=one_line(magic, values.step_name or ""),
        profiler_options=_profiler_options(magic, values),
        perfetto=values.perfetto,
        directory=values.dir or "",
        save=identifier(magic, values.save or ""),
        show_card=not values.no_card,
        remote=values.remote or "",
        duration_ms=values.duration_ms,
    )
    if "#" in arguments.step_name:
        raise usage_error(
            magic, "--step-name can't hold '#': JAX's profiler takes what follows it for other data."
        )
    _check_start(magic, arguments)
    _check_remote(magic, arguments)
    return arguments


def parser(magic: str) -> MagicParser:
    """Give what reads a line behind `magic`: %%jaxtrace, %jaxtrace, or %jaxtrace start or stop."""
    parser = MagicParser(magic)
    option, switch = parser.option, parser.switch
    option("--steps", type=whole(1, MAX_STEPS), text="run the cell N times, each as a step")
    option("--step-name", type=filled("a name for the steps"), text="what to call the steps")
    option("--python", type=whole(0, 1), text="record Python's function calls too")
    option("--host-level", type=whole(0, 3), text="what of the host: 0 nothing to 3 all")
    option("--device-level", type=whole(0, 1), text="device events: 1 yes, 0 no")
    option("--option", action="append", default=[], text="any field of ProfileOptions: FIELD=VALUE")
    switch("--perfetto", text="write a file for Perfetto too")
    option("--dir", type=filled("a directory"), text="keep the capture elsewhere", values="files")
    parser.variable_and_card("set a variable to the capture")
    option(
        "--remote", type=filled("HOST:PORT, for example localhost:9012"), text="trace programs at HOST:PORT"
    )
    option("--duration-ms", type=whole(1, MAX_DURATION_MS), text="how long to trace --remote")
    if magic == "%jaxtrace start":
        parser.refused = frozenset({"--steps", "--step-name", "--remote", "--duration-ms"})
    elif magic == "%jaxtrace stop":
        parser.refused = frozenset(parser.declared()) - {"--save", "--no-card", "--help"}
    return parser


def _with_python_level(words: Sequence[str]) -> list[str]:
    """Give a bare --python its level, so that it doesn't take the name that may follow for one."""
    result: list[str] = []
    for index, word in enumerate(words):
        following = words[index + 1] if index + 1 < len(words) else ""
        is_bare = word == "--python" and not re.fullmatch(r"-?\d+", following)
        result.append(f"--python={_BARE_PYTHON_LEVEL}" if is_bare else word)
    return result


def _profiler_options(magic: str, values: Any) -> dict[str, int | str]:
    requested: dict[str, int | str] = {}
    for field_name, level in (
        ("python_tracer_level", values.python),
        ("host_tracer_level", values.host_level),
        ("device_tracer_level", values.device_level),
    ):
        if level is not None:  # 0 is an answer
            requested[field_name] = level
    for option in values.option:
        field_name, equals, value = option.partition("=")
        if not equals or not field_name:
            raise usage_error(magic, f"--option takes FIELD=VALUE, not '{option}'.")
        requested[field_name.strip()] = value.strip()
    return requested


def _check_start(magic: str, arguments: Arguments) -> None:
    if magic != "%jaxtrace start":
        return
    for option, given in (("--steps", arguments.steps), ("--step-name", arguments.step_name)):
        if given:
            raise usage_error(
                magic,
                f"{option} needs a cell to repeat. Use %%jaxtrace {option}, or mark the steps in your code "
                "with jax.profiler.StepTraceAnnotation.",
                conflict=True,
            )
    if arguments.remote:
        raise usage_error(
            magic, "--remote has a duration of its own. Use %jaxtrace --remote HOST:PORT.", conflict=True
        )


def _check_remote(magic: str, arguments: Arguments) -> None:
    if not arguments.remote:
        if arguments.duration_ms is not None:
            raise usage_error(
                magic, "--duration-ms is for --remote; a cell is traced until it has ended.", conflict=True
            )
        return
    for option, given in (
        ("--steps", arguments.steps is not None),
        ("--step-name", arguments.step_name),
        ("--perfetto", arguments.perfetto),
    ):
        if given:
            raise usage_error(
                magic,
                f"{option} can't be combined with --remote, which traces other programs and not this cell.",
                conflict=True,
            )
