"""Many made-up inputs for one check, each bounded in time and memory: few in CI, 100,000 for endurance.

What a fuzzer finds becomes an ordinary test of the room that it stands in. No database of examples is kept:
CI tries the same inputs each time.
"""

from __future__ import annotations

import inspect
import math
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.support.endurance import FULL, tries

#: What one input may take. Inputs are below a megabyte, and take milliseconds and a few megabytes.
MOST_CPU_S = 5.0
MOST_GROWTH_BYTES = 256 << 20
FULL_INPUTS = 100_000
#: hypothesis keeps a tree of what it has tried: it is begun anew after so many.
_ROUND = 5_000
_PAGE_BYTES = resource.getpagesize()


class _TooLongError(BaseException):
    """Raised within the work; no `except Exception` of the work's takes it."""


def _too_long(_number: int, _frame: FrameType | None) -> None:
    raise _TooLongError


@contextmanager
def bounded(growth_bytes: int = MOST_GROWTH_BYTES) -> Iterator[None]:
    """Fail where the work within takes more processor time, or address space, than one input may.

    The processor's time, for a loaded machine lets everything wait. What exceeds the memory ends in a
    MemoryError.
    """
    before = signal.signal(signal.SIGPROF, _too_long)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with Path("/proc/self/statm").open() as file:
        now_bytes = int(file.read().split()[0]) * _PAGE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (now_bytes + growth_bytes, hard))
    signal.setitimer(signal.ITIMER_PROF, MOST_CPU_S)
    try:
        yield
    except _TooLongError:
        raise AssertionError(f"took more than {MOST_CPU_S} s of the processor") from None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def fuzzed(
    in_ci: int, *, full: int = FULL_INPUTS, **strategies: st.SearchStrategy[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Turn a check into a test that makes it with many inputs; arguments without a strategy are fixtures."""

    def decorate(check: Callable[..., None]) -> Callable[..., None]:
        fixtures = [name for name in inspect.signature(check).parameters if name not in strategies]

        def test(**given_fixtures: Any) -> None:
            began, inputs = time.monotonic(), 0

            def one(**drawn: Any) -> None:
                nonlocal inputs
                inputs += 1
                with bounded():
                    check(**given_fixtures, **drawn)

            for number in range(tries(1, -(-full // _ROUND))):
                run = settings(
                    max_examples=tries(in_ci, min(full, _ROUND)),
                    deadline=None,
                    database=None,
                    phases=[Phase.generate, Phase.shrink],
                    suppress_health_check=list(HealthCheck),
                )(given(**strategies)(one))
                seed(number)(run)()
                if FULL:
                    took_s = time.monotonic() - began
                    print(f"{check.__name__}: {inputs:,} inputs in {took_s:,.0f} s", file=sys.__stderr__)

        test.__name__, test.__doc__, test.__module__ = check.__name__, check.__doc__, check.__module__
        test.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in fixtures]
        )
        return test

    return decorate


def assert_figures(value: Any, path: str = "") -> None:
    """Fail where a figure is not finite; or is negative, or a share above 1, where that can't be."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            assert_figures(item, f"{path}.{key}")
            if isinstance(item, (int, float)) and not isinstance(item, bool):
                _assert_sane(str(key), item, f"{path}.{key}")
    elif isinstance(value, (list, tuple)):
        for item in value:
            assert_figures(item, f"{path}[]")
    elif isinstance(value, float):
        assert math.isfinite(value), f"{path} is {value}"


#: Moments, which may lie before the origin; a counter's values may be anything.
_SIGNED = frozenset(
    {"start_ms", "end_ms", "number", "drift", "mean", "max", "line", "value", "value_ms", "own_ms"}
)
#: Parts of one thing: of a window, or of a device's time. Others may be done by several threads at once.
_SHARES = frozenset({"busy_share", "share_device"})


def _assert_sane(key: str, value: float, path: str) -> None:
    if key not in _SIGNED:
        assert value >= 0, f"{path} is {value}"
    if key in _SHARES:
        assert value <= 1.000001, f"{path} is {value}"
