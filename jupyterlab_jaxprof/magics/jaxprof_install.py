"""`%jaxprof install-nsys-kernel`: a kernel for the launcher that nsys starts."""

from __future__ import annotations

import sys

from jupyterlab_jaxprof.nsight import kernelspec
from jupyterlab_jaxprof.nsight.kernelspec import KernelspecError

from .arguments import one_line, read, split, usage_error
from .jaxprof_arguments import INSTALL, parser

_MAGIC = f"%jaxprof {INSTALL}"


def install(line: str) -> None:
    """Make the kernelspec, or remove it, and say what was done."""
    __tracebackhide__ = True
    values = read(parser(_MAGIC), split(_MAGIC, line))
    if values.name:
        raise usage_error(
            _MAGIC, f"it takes options only, and there is '{values.name}': --name {values.name}?"
        )
    try:
        said = kernelspec.done(
            _MAGIC,
            name=values.kernel,
            display_name=one_line(_MAGIC, values.display_name or ""),
            trace=values.trace,
            osrt=values.osrt,
            in_environment=values.sys_prefix,
            removes=values.remove,
        )
    except KernelspecError as error:
        raise usage_error(_MAGIC, str(error)) from None
    sys.stdout.write(said)
