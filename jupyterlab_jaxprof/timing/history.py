"""What each function has been compiled for so far, in a bounded memory."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from typing import Any

from jupyterlab_jaxprof.timing.signatures import Function, Reason, Signature, explain

MAX_FUNCTIONS = 1000
MAX_SIGNATURES = 16
MAX_ARGUMENTS = 200_000


class History:
    """The compiles of this process, by function. The functions longest not compiled are forgotten first."""

    def __init__(self) -> None:
        self._signatures: OrderedDict[str, deque[Signature]] = OrderedDict()
        self._memory: dict[str, Mapping[str, int]] = {}
        self._arguments = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Count the functions that are remembered."""
        return len(self._signatures)

    @property
    def arguments(self) -> int:
        """How many arguments of all compiles are remembered: what the history takes in memory."""
        return self._arguments

    def memory_of(self, function: Callable[..., Any]) -> Mapping[str, int] | None:
        """Give what a function's program that was compiled last needs, in bytes; None when it isn't known."""
        return self._memory.get(Function.of(function).key)

    def add(self, signature: Signature, memory: Mapping[str, int] | None) -> Reason:
        """Take a compile into the history, and say why it happened."""
        if signature.transformed:  # JAX makes several programs of one call then, alike from here
            return explain((), signature)
        with self._lock:
            known = self._signatures.setdefault(signature.key, deque())
            reason = explain(known, signature)
            known.append(signature)
            if memory is not None:
                self._memory[signature.key] = memory
            self._arguments += signature.size
            if len(known) > MAX_SIGNATURES:
                self._arguments -= known.popleft().size
            self._signatures.move_to_end(signature.key)
            while len(self._signatures) > MAX_FUNCTIONS or (
                self._arguments > MAX_ARGUMENTS and len(self._signatures) > 1
            ):
                key, forgotten = self._signatures.popitem(last=False)
                self._memory.pop(key, None)
                self._arguments -= sum(old.size for old in forgotten)
        return reason
