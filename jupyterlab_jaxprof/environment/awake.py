"""A clock for limits on how long another program may take."""

from __future__ import annotations

import time

_LONGEST_S = 5.0


class AwakeClock:
    """Counts the seconds in which this process ran; `now_s` must be asked every second or so.

    The system's monotonic clock stands still while a machine sleeps, but goes on while a container or a
    process is paused (SIGSTOP, `docker pause`). The programs that we wait for are paused with us: between two
    looks no more than some seconds count.
    """

    def __init__(self) -> None:
        self._looked_s = time.monotonic()
        self._now_s = 0.0

    def now_s(self) -> float:
        """Give the seconds since it was made, without pauses."""
        looked_s = time.monotonic()
        self._now_s += min(looked_s - self._looked_s, _LONGEST_S)
        self._looked_s = looked_s
        return self._now_s
