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
        self._memory: dict[str, tuple[Function | None, Mapping[str, int] | None]] = {}
        self._arguments = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Count the functions that are remembered."""
        return len(self._signatures)

    @property
    def arguments(self) -> int:
        """How many arguments of all compiles are remembered: what the history takes in memory."""
        return self._arguments

    def knows(self, function: Callable[..., Any]) -> bool:
        """Whether a function has been compiled, and is remembered."""
        return Function.of(function).key in self._signatures

    def memory_of(self, function: Callable[..., Any]) -> Mapping[str, int] | None:
        """Give what a function's programs need, in bytes.

        None when it isn't known, or not the same for all of them: which one a call runs is not seen.
        """
        wanted = Function.of(function)
        known, memory = self._memory.get(wanted.key, (None, None))
        return memory if known == wanted else None

    def add(self, signature: Signature, memory: Mapping[str, int] | None) -> Reason:
        """Take a compile into the history, and say why it happened."""
        if signature.transformed:  # JAX makes several programs of one call then, alike from here
            return explain((), signature)
        with self._lock:
            known = self._signatures.setdefault(signature.key, deque())
            reason = explain(known, signature)
            known.append(signature)
            self._remember_memory(signature, memory)
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

    def _remember_memory(self, signature: Signature, memory: Mapping[str, int] | None) -> None:
        """Keep what its programs need while it is the same; a new function object starts anew, as in JAX."""
        function, known = signature.function, self._memory.get(signature.key)
        if known is not None and known[0] == function and known[1] != memory:
            memory = None
        self._memory[signature.key] = (function, memory)
