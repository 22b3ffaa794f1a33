"""What code depends on beside its variables: JAX's settings, NumPy's and Python's random numbers, paths."""

from __future__ import annotations

import os
import random
import sys
import types
from collections.abc import Mapping
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
    """Gather JAX's settings that hold devices: the default device, and the mesh set for all cells."""
    jax: Any = sys.modules.get("jax")
    if jax is None:
        return {}
    found = {name: value for name, value in _settings().items() if isinstance(value, jax.Device)}
    get_mesh = getattr(jax.sharding, "get_mesh", None)
    mesh = get_mesh() if get_mesh is not None else None
    if mesh is not None and getattr(mesh, "devices", None) is not None and mesh.axis_names:
        found["mesh"] = mesh
    return found


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
    if not found:
        return []
    import jax

    mesh = found.get("mesh")
    if mesh is not None:
        set_mesh: Any = getattr(jax, "set_mesh", None) or jax.sharding.set_mesh  # pyright: ignore[reportAttributeAccessIssue]
        set_mesh(mesh)
    return _set({name: value for name, value in found.items() if name != "mesh"})


def random_states() -> tuple[Any, Any]:
    """Gather the states of Python's random numbers, and of NumPy's where it is imported."""
    numpy: Any = sys.modules.get("numpy.random")
    return random.getstate(), None if numpy is None else numpy.get_state()


def set_random_states(states: tuple[Any, Any]) -> None:
    """Set the states, last of all: what is imported before may use random numbers."""
    python, numpy = states
    random.setstate(python)
    if numpy is not None:
        import numpy as np

        np.random.set_state(numpy)


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
