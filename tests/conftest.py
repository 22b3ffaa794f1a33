"""For all tests."""

from __future__ import annotations

import signal

# A shell without job control lets what it starts in the background ignore Ctrl-C; the tests send some.
signal.signal(signal.SIGINT, signal.default_int_handler)
