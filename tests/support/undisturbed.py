"""Tests that measure real time, on machines where something else may run at the same moment."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

TRIES = 4


def undisturbed(test: Callable[..., None]) -> Callable[..., None]:
    """Give a test that compares measured times some tries: what disturbs one of them is not the code's fault.

    Code that measures wrongly fails every time. The test must not depend on what an earlier try left behind.
    It is marked `measures_time`: `make test` runs it while no other test runs.
    """

    @functools.wraps(test)
    def tried(*args: Any, **kwargs: Any) -> None:
        for left in reversed(range(TRIES)):
            try:
                return test(*args, **kwargs)
            except AssertionError:
                if not left:
                    raise
        return None

    return pytest.mark.measures_time(tried)
