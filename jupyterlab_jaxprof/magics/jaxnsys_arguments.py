"""The arguments of %%nsys: read, checked as far as no nsys is needed, and explained."""

from __future__ import annotations

import keyword
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from jupyterlab_jaxprof.environment.machine import gpus
from jupyterlab_jaxprof.nsight.flags import Wishes

from .arguments import MagicParser, filled, identifier, one_line, read, split, usage_error, whole

MAX_STEPS = 10_000
STEPS = 5

#: What may stand behind %nsys.
COMMANDS = {
    "start": "record this kernel until %nsys stop",
    "stop": "end that recording and show its card",
    "try": "try anew whether each nsys records here",
    "forget": "forget all set-up cells",
    "help": "show the help",
}
START, STOP = "%nsys start", "%nsys stop"
_OF_START = ("--gpu-metrics", "--sample", "--keep-env", "--dir", "--save", "--no-card", "--help")
_OF_STOP = ("--save", "--no-card", "--help")

HELP = """\
Run a cell under NVIDIA Nsight Systems, tell what costs time in it, and keep the report.

    %%nsys [NAME] [options]       the cell below, in a clean process with the notebook's variables
    %%nsys --setup [NAME]         run the cell here, and in that process too, before what is recorded
    %%nsys --in-kernel [NAME]     the cell in this kernel, if that was started under nsys: see below
    %nsys start [NAME]            record all that this kernel does until %nsys stop: the same kernels
    %nsys                         tell which nsys is used, which cells are set-up cells, and what is
                                  being recorded
    %nsys try                     try anew whether each nsys records here
    %nsys forget                  forget all set-up cells
    %%jaxnsys, %jaxnsys           the same, where another extension has the name nsys

The cell runs in a process of its own, which nsys starts: once to warm up, with no output, then as
recorded steps, each ended when all its work on the devices has ended. Whatever it needs from the
notebook is carried there: functions, classes, modules, arrays with their shardings, and JAX's
settings. What can't be carried is named before anything runs. The notebook's own variables stay as
they are: what the cell assigns does not come back, unless --return names it.

What runs
  --steps N             how many times the cell is recorded (default 5)
  --no-warmup           do not run it before, so that compiling is recorded
  --graphs=off          run without CUDA graphs (XLA's command buffers), which then hide nothing

What is carried
  --drop NAME           leave out a variable that the cell does not really use; may be given
                        several times
  --shapes-only[=random]
                        send zeros (or random numbers) of the same shape in place of arrays over
                        1 MB, and of deleted ones
  --return NAMES        bring these variables back, as a,b: arrays and all that can be carried
  --setup               run this cell here, and remember it: it makes its variables in that process,
                        in place of carrying them (open files, connections, locks)

What is recorded (default: CUDA and ranges of NVTX, the kernels inside CUDA graphs one by one)
  --libs                calls of cuDNN and cuBLAS too
  --osrt                calls of the operating system's library too
  --sample              samples of the CPU's call stacks too
  --gpu-metrics         the GPU's counters over time too (SM, memory, NVLink)
  --trace NAMES         exactly these, as nsys has them: cuda,nvtx,osrt,cudnn,cublas,mpi
  --nsys "FLAGS"        any other flags of 'nsys profile', as
                        --nsys "--cuda-memory-usage=true"

What is removed: nsys records the variables and command lines of all processes that it can look at.
The values of those that may be secrets, by their names, are removed from the report.
  --keep-env NAMES      start nsys with these variables too, and leave their values in the report;
                        'all' leaves the report as nsys has written it

Where it goes
  --dir DIR             keep the capture in DIR instead of the sidebar's list
  --save VAR            set VAR to the capture: VAR.findings, VAR.steps, VAR.file("nsys")
  --no-card             show no card

The settings (JaxProf Magics) can hold options for every run. What stands on the line counts for
more than they do; --card undoes --no-card there, and so on for every option without a value.

Interrupt once to end the recording and have the report so far; twice to give it up.

In the kernel itself
  %jaxprof install-nsys-kernel makes a kernel for the launcher, 'Python 3 (Nsight Systems)', which nsys
  starts. There %%nsys --in-kernel runs a cell in the notebook's own kernel, where its variables change
  as in a plain cell; with --steps, --no-warmup, --gpu-metrics, --sample, --keep-env, --dir, --save and
  --no-card. %nsys start takes NAME and the last six, %nsys stop --save and --no-card.

Examples
    %%nsys "steady state" --steps 10 --libs
    params, loss = train_step(params, batch)

    %%nsys --in-kernel warm
    params, loss = train_step(params, batch)
"""


@dataclass
class Arguments:
    """What was asked for."""

    name: str = ""
    steps: int = STEPS
    warm_up: bool = True
    set_up: bool = False
    in_kernel: bool = False
    shapes_only: Literal["", "zeros", "random"] = ""
    drop: frozenset[str] = frozenset()
    returned: tuple[str, ...] = ()
    graphs: bool = True
    keep_env: frozenset[str] = frozenset()
    wishes: Wishes = field(default_factory=Wishes)
    directory: str = ""
    save: str = ""
    show_card: bool = True


def parse(magic: str, line: str) -> Arguments:
    """Read the line after `magic`; raises UsageError with a sentence."""
    values = read(parser(magic), _with_plain_shapes_only(split(magic, line)))
    arguments = Arguments(
        name=one_line(magic, values.name or ""),
        steps=STEPS if values.steps is None else values.steps,
        warm_up=not values.no_warmup,
        set_up=values.setup,
        in_kernel=values.in_kernel,
        shapes_only=values.shapes_only or "",
        drop=frozenset(_names(magic, "--drop", values.drop)),
        returned=_names(magic, "--return", [values.returned] if values.returned else []),
        graphs=values.graphs != "off",
        keep_env=frozenset(_names(magic, "--keep-env", [values.keep_env or ""])),
        wishes=_wishes(values),
        directory=values.dir or "",
        save=identifier(magic, values.save or ""),
        show_card=not values.no_card,
    )
    _check_set_up(magic, arguments)
    if arguments.in_kernel or magic == START:
        _check_in_kernel(magic, arguments)
    if magic == START:
        _check_start(magic, arguments)
    return arguments


def parser(magic: str) -> MagicParser:
    """Give what reads the line behind %%nsys."""
    parser = MagicParser(magic)
    option, switch = parser.option, parser.switch
    option("--steps", type=whole(1, MAX_STEPS), text="how many times it is recorded")
    switch("--no-warmup", text="record compiling too")
    option("--setup", action="store_true", text="run this cell here, and in that process")
    option("--shapes-only", choices=("zeros", "random"), text="send zeros in place of large arrays")
    option(
        "--drop",
        action="append",
        default=[],
        type=filled("the name of a variable"),
        text="leave out a variable",
        values="variables",
    )
    option(
        "--return",
        dest="returned",
        type=filled("names of variables, as a,b"),
        text="bring variables back",
        values="variables",
    )
    option("--graphs", choices=("on", "off"), default="on", text="CUDA graphs: on or off")
    switch("--osrt", text="record the system library's calls")
    switch("--libs", text="record calls of cuDNN and cuBLAS")
    switch("--gpu-metrics", text="record the GPU's counters")
    switch("--sample", text="sample the CPU's call stacks")
    option("--trace", type=filled("names, as cuda,nvtx"), text="record exactly these: cuda,nvtx")
    option("--nsys", type=filled("flags of nsys profile"), text="any other flags of nsys profile")
    option("--keep-env", type=filled("names of variables"), text="leave these variables in the report")
    option("--dir", type=filled("a directory"), text="keep the capture elsewhere", values="files")
    option("--in-kernel", action="store_true", text="run it in this kernel, under nsys")
    parser.variable_and_card("set a variable to the capture")
    taken = {START: _OF_START, STOP: _OF_STOP}.get(magic)
    if taken is not None:
        parser.refused = frozenset(parser.declared()) - frozenset(taken)
    return parser


def _wishes(values: Any) -> Wishes:
    return Wishes(
        values.osrt, values.libs, values.gpu_metrics, values.sample, values.trace or "", values.nsys or ""
    )


def _with_plain_shapes_only(words: Sequence[str]) -> list[str]:
    """Give a bare --shapes-only its value, so that it does not take the name that may follow for one.

    A value that begins with a dash, as --nsys takes, needs an equals sign for argparse.
    """
    result: list[str] = []
    for word in words:
        if word == "--shapes-only":
            result.append("--shapes-only=zeros")
        elif result and result[-1] == "--nsys":
            result[-1] = f"--nsys={word}"
        else:
            result.append(word)
    return result


def _names(magic: str, option: str, given: Sequence[str]) -> tuple[str, ...]:
    names = [name.strip() for text in given for name in text.split(",") if name.strip()]
    for name in names:
        if not name.isidentifier() or keyword.iskeyword(name):
            raise usage_error(magic, f"{option} takes names of variables, and '{name}' can't be one.")
    return tuple(dict.fromkeys(names))


def _check_set_up(magic: str, arguments: Arguments) -> None:
    plain = Arguments(name=arguments.name, set_up=True)
    if arguments.set_up and arguments != plain:
        raise usage_error(
            magic,
            "--setup only marks this cell, and records nothing: give the other options to the cell that is "
            "recorded.",
            conflict=True,
        )


def _check_in_kernel(magic: str, arguments: Arguments) -> None:
    """Raise UsageError for what only a process of the cell's own can have."""
    wishes = arguments.wishes
    of_launch = {"--trace": wishes.trace, "--osrt": wishes.osrt, "--libs": wishes.libs, "--nsys": wishes.raw}
    of_child = {
        "--return": arguments.returned,
        "--drop": arguments.drop,
        "--shapes-only": arguments.shapes_only,
        "--setup": arguments.set_up,
    }
    sentence = ""
    if option := _given(of_launch):
        sentence = (
            f"{option} is decided when the kernel starts: %jaxprof install-nsys-kernel --trace "
            "cuda,nvtx,osrt makes one that traces those."
        )
    elif option := _given(of_child):
        sentence = (
            f"{option} is for a cell in a process of its own. This one runs in the kernel: nothing is "
            "carried, and its variables stay."
        )
    elif not arguments.graphs:
        sentence = (
            "--graphs=off must be there before JAX starts: restart the kernel, and put "
            "os.environ['XLA_FLAGS'] = '--xla_gpu_enable_command_buffer=' before the first import of jax."
        )
    if sentence:
        raise usage_error(magic, sentence, conflict=True)


def _given(options: Mapping[str, object]) -> str:
    return next((option for option, value in options.items() if value), "")


def _check_start(magic: str, arguments: Arguments) -> None:
    if arguments.in_kernel:
        raise usage_error(magic, "it records this kernel anyway: leave out --in-kernel.", conflict=True)
    if arguments.steps != STEPS or not arguments.warm_up:
        raise usage_error(
            magic,
            "--steps and --no-warmup need a cell to repeat: %%nsys --in-kernel --steps N.",
            conflict=True,
        )


def check_gpu_metrics(magic: str, arguments: Arguments) -> None:
    """Raise UsageError without a GPU: nsys hangs for minutes when it is asked for its counters."""
    if not arguments.wishes.gpu_metrics:
        return
    found, problems = gpus()
    if not found:
        why = " ".join(f"{one['what']} {one['remedy']}" for one in problems) or "There is none here."
        raise usage_error(magic, f"--gpu-metrics needs an NVIDIA GPU. {why}")
