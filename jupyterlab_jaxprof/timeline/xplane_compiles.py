"""When a thread traced, lowered and compiled, and for which function.

JAX marks lowering and compiling in all its versions, tracing and reading from the persistent cache only in
some. In its first call, `PjitFunction(f)`, a function is traced, lowered, compiled or read, and executed; so
what is not marked lies between what is.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .build import Texts, columns
from .intervals import union, union_of
from .model import Compiles, Floats, Numbers, Phase

_PHASES = (
    (re.compile(r"trace_to_jaxpr"), Phase.TRACE),
    (re.compile(r"lower_sharding_computation$|lower_xla_callable$"), Phase.LOWER),
    (re.compile(r"backend_compile"), Phase.COMPILE),
    (
        re.compile(r"\w+::Deserialize(AndLoad)?Executable$|PJRT_Executable_DeserializeAndLoad$"),
        Phase.CACHE_READ,
    ),
)
_FUNCTION = re.compile(r"PjitFunction\((?:jit\()?(.*?)\)?\)$")
#: XLA's events that name the module, as `fusion (jit_f)`, `CompileAndLoad(jit_f)`, `HLO Transforms:jit_f`.
_MODULE = re.compile(r".*[ (:]jit_(\w+)\)?$")
_LAMBDA = re.compile(r"^_lambda_?$")
#: The magics' own (cell/barrier.py).
_FENCE = "jaxprof_fence"
_EXECUTION = re.compile(r"shard_args$|ExecuteReplicated")
_CALL, _RUN = 10, 11


def read_compiles(
    thread: int,
    name: Numbers,
    used: NDArray[np.intp],
    names: list[str],
    start_ns: Floats,
    duration_ns: Floats,
    texts: Texts,
) -> Compiles:
    """Read the compiles of one thread; `names` are the texts of the numbers `used`."""
    role_of = np.full(int(used[-1]) + 1 if len(used) else 1, -1, dtype=np.int8)
    functions: dict[int, str] = {}
    for number, text in zip(used.tolist(), names, strict=True):
        role = next((phase for pattern, phase in _PHASES if pattern.match(text)), None)
        if role is not None:
            role_of[number] = role
        elif match := _FUNCTION.match(text):
            role_of[number], functions[number] = _CALL, match[1]
        elif _EXECUTION.match(text):
            role_of[number] = _RUN
    rows = np.flatnonzero((role_of >= 0)[name]) if len(name) else np.zeros(0, dtype=np.intp)
    roles = role_of[name[rows]]
    is_phase = roles < _CALL
    if not is_phase.any():
        return columns(Compiles)
    # Only calls in which something was compiled matter: a program has many others.
    starts, ends = start_ns[rows], start_ns[rows] + duration_ns[rows]
    phases = union_of(starts[is_phase], (ends - starts)[is_phase])
    calls = union_of(*_with_phases(starts, ends, (roles == _CALL) & (phases.covered(starts, ends) > 0)))
    kept = is_phase | calls.contain(starts)
    rows, starts, ends, roles = rows[kept], starts[kept], ends[kept], roles[kept]
    order = np.lexsort((-ends, starts))
    told = (functions.get(number, "") for number in name[rows[order]].tolist())
    events = list(zip(starts[order].tolist(), ends[order].tolist(), roles[order].tolist(), told, strict=True))
    found = _walk(events)
    return columns(
        Compiles,
        thread=thread,
        phase=np.array([phase for _, _, phase, _ in found], dtype=np.int8),
        function=texts.numbers(function for _, _, _, function in found),
        start_ns=np.array([start for start, _, _, _ in found]),
        duration_ns=np.array([end - start for start, end, _, _ in found]),
    )


def _with_phases(starts: Floats, ends: Floats, chosen: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    return starts[chosen], (ends - starts)[chosen]


def modules_being_compiled(
    name: Numbers, used: NDArray[np.intp], names: list[str], start_ns: Floats
) -> list[tuple[float, str]]:
    """Tell when events named the function whose module XLA was compiling."""
    functions = {
        number: _LAMBDA.sub("<lambda>", match[1])
        for number, text in zip(used.tolist(), names, strict=True)
        if (match := _MODULE.match(text)) and "Execute" not in text
    }
    rows = np.flatnonzero(np.isin(name, list(functions))) if functions else np.zeros(0, dtype=np.intp)
    return [
        (start, functions[number])
        for start, number in zip(start_ns[rows].tolist(), name[rows].tolist(), strict=True)
    ]


def with_functions(compiles: Compiles, modules: list[tuple[float, str]], texts: Texts) -> Compiles:
    """Name the functions that were compiled ahead of time, outside a call; and leave out the magics' own."""
    modules = sorted(modules)
    times = np.array([start for start, _ in modules])
    function = compiles.function.copy()
    for row in np.flatnonzero((function == 0) & (compiles.phase == Phase.COMPILE)):
        start, thread = compiles.start_ns[row], compiles.thread[row]
        first = int(np.searchsorted(times, start))
        if first < len(times) and times[first] < start + compiles.duration_ns[row]:
            function[row] = texts.number(modules[first][1])
            before = np.flatnonzero((compiles.thread == thread) & (compiles.start_ns < start))
            if len(before) and compiles.phase[before[-1]] == Phase.LOWER and not function[before[-1]]:
                function[before[-1]] = function[row]
    return replace(compiles, function=function).take(function != texts.number(_FENCE))


class _Call:
    """A call of a function that was compiled in it, while its events are walked through."""

    def __init__(self, start: float, end: float, function: str) -> None:
        self.since, self.end, self.function = start, end, function
        """`since` then lies what no phase has explained yet."""
        self.lowered_at = 0.0
        """When lowering ended; 0 before, and once it is known what came after it."""


def _walk(events: list[tuple[float, float, int, str]]) -> list[tuple[float, float, int, str]]:
    """Give phases with their functions, those that are not marked too, from events sorted as they nest.

    What comes before a call's lowering is its tracing; marks of tracing inside (of the functions that it
    calls, of loops while it is lowered, in some versions of itself) are parts of that.
    """
    found: list[tuple[float, float, int, str]] = []
    traces: list[tuple[float, float, int, str]] = []
    calls: list[_Call] = []

    def between(start: float, end: float, phase: Phase, function: str) -> None:
        if end >= start:  # events that cross, and don't nest, leave nothing between them
            found.append((start, end, phase, function))

    for start, end, role, function in events:
        while calls and start >= calls[-1].end:
            calls.pop()
        call = calls[-1] if calls else None
        if role == _CALL:
            # JAX marks a call twice, one in the other.
            if call is None or call.function != function or call.lowered_at:
                calls.append(_Call(start, end, function))
        elif role == _RUN:
            if call and call.lowered_at:
                between(call.lowered_at, start, Phase.CACHE_READ, call.function)
                call.lowered_at = 0.0
        elif role == Phase.TRACE:
            traces.append((start, end, role, call.function if call else ""))
        else:
            if call and role == Phase.LOWER:
                between(call.since, start, Phase.TRACE, call.function)
            if call:
                call.since, call.lowered_at = end, end if role == Phase.LOWER else 0.0
            found.append((start, end, role, call.function if call else ""))
    told = [(start, end) for start, end, role, _ in found if role in (Phase.TRACE, Phase.LOWER)]
    inside = (
        union(*np.array(told).T).contain([trace[0] for trace in traces]) if told else [False] * len(traces)
    )
    return found + [trace for trace, is_part in zip(traces, inside, strict=True) if not is_part]
