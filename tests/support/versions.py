"""What a version of JAX can't do, and so can't be tested on it."""

from __future__ import annotations

import jax
import pytest

#: JAX 0.6 computes at once, in the caller's thread, on a CPU once a callback has failed in the process.
enqueues_after_failures = pytest.mark.skipif(
    jax.__version_info__ < (0, 7), reason="JAX 0.6 enqueues nothing on a CPU once a callback has failed"
)
