"""jax.profiler made safe: options, steps, recovery, and captures from other processes.

Importing this imports no jax; its functions do.
"""

from __future__ import annotations

from .options import OptionError, profile_options
from .profiler import AlreadyRunning, Profiler, ProfilerError
from .steps import step_name
from .surroundings import devices, trace_environment
from .trace import Outcome, Source, Trace

__all__ = [
    "AlreadyRunning",
    "OptionError",
    "Outcome",
    "Profiler",
    "ProfilerError",
    "Source",
    "Trace",
    "devices",
    "profile_options",
    "step_name",
    "trace_environment",
]
