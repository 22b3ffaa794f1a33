"""What code depends on beside its variables: JAX's settings, NumPy's and Python's random numbers, paths."""

from __future__ import annotations

import os
import random
import sys
import types
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

_PLAIN = (bool, int, float, str, type(None))


def surroundings() -> dict[str, Any]:
    """Gather them, all of plain values."""
    found: dict[str, Any] = {"sys_path": list(sys.path), "folder": str(Path.cwd())}
    if "jax" in sys.modules:
        found["jax"] = {name: value for name, value in _settings().items() if _is_plain(value)}
    return found


def settings_with_devices() -> dict[str, Any]:
    """Gather JAX's settings that hold devices."""
    jax: Any = sys.modules.get("jax")
    if jax is None:
        return {}
    return {name: value for name, value in _settings().items() if isinstance(value, jax.Device)}


def last_of_all() -> dict[str, Any]:
    """Gather what is set when all else has been made: the making itself depends on it, or would change it.

    These are the states of Python's and of NumPy's random numbers, and the mesh that was set for all cells.
    """
    numpy: Any = sys.modules.get("numpy.random")
    return {
        "random": random.getstate(),
        "numpy_random": None if numpy is None else numpy.get_state(),
        "mesh": _mesh(),
    }


def set_last_of_all(found: Mapping[str, Any]) -> None:
    """Make them this process's own."""
    if found["mesh"] is not None:
        import jax

        set_mesh: Any = getattr(jax, "set_mesh", None) or getattr(jax.sharding, "set_mesh")  # noqa: B009 - until 0.6
        set_mesh(found["mesh"])
    random.setstate(found["random"])
    if found["numpy_random"] is not None:
        import numpy as np

        np.random.set_state(found["numpy_random"])


def transfers_allowed() -> AbstractContextManager[Any]:
    """Let arrays be copied whatever transfer guard the user has set; JAX is not imported for it."""
    jax: Any = sys.modules.get("jax")
    return nullcontext() if jax is None else jax.transfer_guard("allow")


def set_surroundings(found: Mapping[str, Any]) -> list[str]:
    """Make them this process's own; gives sentences on what could not be set."""
    sys.path[:] = found["sys_path"]
    notices: list[str] = []
    try:
        os.chdir(found["folder"])
    except OSError as error:
        notices.append(f"The notebook's folder {found['folder']} can't be entered: {error.strerror}.")
    if "jax" in found:
        notices += _set(found["jax"])
    return notices


def set_settings_with_devices(found: Mapping[str, Any]) -> list[str]:
    """Set JAX's settings that hold devices, after the others; gives sentences on what could not be set."""
    return _set(found) if found else []


def _mesh() -> Any:
    jax: Any = sys.modules.get("jax")
    get_mesh: Any = None if jax is None else getattr(jax.sharding, "get_mesh", None)
    mesh = None if get_mesh is None else get_mesh()
    return mesh if getattr(mesh, "devices", None) is not None and getattr(mesh, "axis_names", ()) else None


def _settings() -> Mapping[str, Any]:
    import jax

    values: Any = getattr(jax.config, "values", None)
    return types.MappingProxyType({}) if values is None else values


def _is_plain(value: Any) -> bool:
    return isinstance(value, _PLAIN) or (isinstance(value, tuple) and all(map(_is_plain, value)))


def _set(wanted: Mapping[str, Any]) -> list[str]:
    import jax

    now, notices = _settings(), list[str]()
    for name, value in wanted.items():
        if name in now and now[name] != value:
            try:
                jax.config.update(name, value)
            except Exception as error:  # noqa: BLE001 - each setting checks its value in its own way
                notices.append(
                    f"jax.config.{name} could not be set to {value!r} in the child process: {error}."
                )
    return notices
