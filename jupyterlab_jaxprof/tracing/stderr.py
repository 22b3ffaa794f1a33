"""What C++ writes to file descriptor 2 while the profiler starts or stops, and what it means."""

from __future__ import annotations

import os
import sys
import tempfile
from types import TracebackType
from typing import Self

_PRIVILEGES = (
    "The NVIDIA driver refused its performance counters (CUPTI_ERROR_INSUFFICIENT_PRIVILEGES), so the "
    "trace has no GPU kernels. An administrator can allow them with the line 'options nvidia "
    "NVreg_RestrictProfilingToAdminUsers=0' in a file of /etc/modprobe.d/ and a reboot (cat "
    "/proc/driver/nvidia/params shows the value in force); in a container, start it with "
    "--cap-add=SYS_ADMIN, and on Kubernetes add SYS_ADMIN to the pod's capabilities."
)
_SUBSCRIBER = (
    "Another profiler already uses this GPU's tracing interface (CUPTI allows one subscriber a process), "
    "so the trace has no GPU kernels. If this kernel runs under nsys or another profiler, start it "
    "without, then trace again."
)
_EXPLANATIONS = (
    ("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES", _PRIVILEGES),
    ("CUPTI_ERROR_NOT_INITIALIZED_PRIVILEGES", _PRIVILEGES),
    ("CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED", _SUBSCRIBER),
    ("CUPTI_ERROR_MULTIPLE_SUBSCRIBERS", _SUBSCRIBER),
)


def explain(text: str) -> list[str]:
    """Give one sentence for each known trouble that these lines of JAX's profiler tell of."""
    found = dict.fromkeys(sentence for mark, sentence in _EXPLANATIONS if mark in text)
    return list(found)


class WatchedStderr:
    """Within it, what is written to file descriptor 2 is kept; at its end it is passed on unchanged.

    `notices` then explains the lines that mean something to the user. Python's own sys.stderr is a stream of
    its own in a notebook kernel and isn't touched; in a terminal it writes to the same descriptor, and so in
    order.
    """

    def __init__(self) -> None:
        self.text = ""
        self.notices: list[str] = []
        self._kept = self._original = -1

    def __enter__(self) -> Self:
        try:
            sys.stderr.flush()
            self._kept, path = tempfile.mkstemp(prefix="jaxprof-stderr-")
            os.unlink(path)  # noqa: PTH108 - the open descriptor is all that's needed
            self._original = os.dup(2)
            os.dup2(self._kept, 2)
        except (OSError, ValueError):  # no descriptor 2, no room for a file: nothing to watch, and no harm
            self._close()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._original < 0:
            return
        try:
            sys.stderr.flush()
        finally:
            os.dup2(self._original, 2)
        with open(self._kept, "rb", closefd=False) as kept:
            kept.seek(0)
            content = kept.read()
        if content:
            with open(2, "wb", closefd=False) as stderr:
                stderr.write(content)
        self.text = content.decode("utf-8", "replace")
        self.notices = explain(self.text)
        self._close()

    def _close(self) -> None:
        for descriptor in (self._kept, self._original):
            if descriptor >= 0:
                os.close(descriptor)
        self._kept = self._original = -1
