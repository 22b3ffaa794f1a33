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
    values = read(_parser(magic), _with_python_level(split(magic, line)))
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
    _check_remote(magic, arguments)
    return arguments


def _parser(magic: str) -> MagicParser:
    parser = MagicParser(magic)
    parser.add_argument("--steps", type=whole(1, MAX_STEPS))
    parser.add_argument("--step-name", type=filled("a name for the steps"))
    parser.add_argument("--python", type=whole(0, 1))
    parser.add_argument("--host-level", type=whole(0, 3))
    parser.add_argument("--device-level", type=whole(0, 1))
    parser.add_argument("--option", action="append", default=[])
    parser.add_argument("--perfetto", action="store_true")
    parser.add_argument("--dir", type=filled("a directory"))
    parser.add_argument("--save", type=filled("the name of a variable"))
    parser.add_argument("--no-card", action="store_true")
    parser.add_argument("--remote", type=filled("HOST:PORT, for example localhost:9012"))
    parser.add_argument("--duration-ms", type=whole(1, MAX_DURATION_MS))
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


def _check_remote(magic: str, arguments: Arguments) -> None:
    if not arguments.remote:
        if arguments.duration_ms is not None:
            raise usage_error(magic, "--duration-ms is for --remote; a cell is traced until it has ended.")
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
            )
