"""Listening to loggers of JAX's, from before JAX is imported.

A logger can be had by its name before the module that writes to it is there, so this costs a kernel next to
nothing when it starts, and nothing at all when JAX is never imported. What deals with the records is imported
with the first of them.
"""

from __future__ import annotations

import functools
import logging
from importlib import import_module


class LoggerTap(logging.Filter):
    """Sees every record that a logger is offered, from DEBUG on, whether it is written or not.

    It leaves levels and handlers alone: the logger's own `isEnabledFor` is asked whether a record would have
    been written without us, and only then it is let through. `module` has the function `on_record`, which
    must not raise.
    """

    def __init__(self, logger: str, module: str) -> None:
        super().__init__()
        self._module = module
        self._logger = logging.getLogger(logger)
        self._enabled = functools.partial(_enabled_at_debug, self._logger)

    def install(self) -> None:
        """Start to listen; again is no harm."""
        self._logger.addFilter(self)
        self._logger.isEnabledFor = self._enabled

    def remove(self) -> None:
        """Leave the logger as it was."""
        self._logger.removeFilter(self)
        if vars(self._logger).get("isEnabledFor") is self._enabled:
            del self._logger.isEnabledFor

    def filter(self, record: logging.LogRecord) -> bool:
        """Look at a record; true when it is to be written."""
        import_module(self._module).on_record(record)
        return type(self._logger).isEnabledFor(self._logger, record.levelno)


def _enabled_at_debug(logger: logging.Logger, level: int) -> bool:
    return level == logging.DEBUG or type(logger).isEnabledFor(logger, level)


#: Of the module that lowers programs, and of the one that starts the devices' backends.
LOWERINGS = LoggerTap("jax._src.interpreters.pxla", f"{__package__}.compiles")
BACKENDS = LoggerTap("jax._src.xla_bridge", f"{__package__}.variables")
