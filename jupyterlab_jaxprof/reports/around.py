"""What differs around two captures, as far as both recorded it; for timings and timelines alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

Data = Mapping[str, Any]

_LABELS = {
    "jax": "jax",
    "jaxlib": "jaxlib",
    "python": "Python",
    "host": "host",
    "platform": "platform",
    "xla_flags": "XLA_FLAGS",
    "cuda": "CUDA",
    "x64": "jax_enable_x64",
    "matmul_precision": "jax_default_matmul_precision",
}
#: What of a setting stands for 'none': the text of flags that are not set, and JAX's own choice.
_NONE = {"xla_flags": "", "matmul_precision": None}


def differences(first: Data, second: Data, sides: tuple[str, str] = ("before", "after")) -> list[str]:
    """Name what differs in two environments, as 'jax: 0.9.0 before, 0.10.2 after', where both tell it."""
    pairs = [("devices", _devices(first), _devices(second))]
    pairs += [(label, _value(first, key), _value(second, key)) for key, label in _LABELS.items()]
    return [
        f"{label}: {one} {sides[0]}, {other} {sides[1]}"
        for label, one, other in pairs
        if one and other and one != other
    ]


def _value(environment: Data, key: str) -> str:
    """Give a value as text; empty where it was not recorded."""
    if key not in environment:
        return ""
    value = environment[key]
    if key in _NONE and value == _NONE[key]:
        return "none"
    return "" if value is None else str(value)


def _devices(environment: Data) -> str:
    listed = environment.get("devices")
    devices = cast("Sequence[Any]", listed) if isinstance(listed, (list, tuple)) else ()
    kinds = [str(device.get("kind")) for device in devices if isinstance(device, Mapping)]
    return ", ".join(f"{kinds.count(kind)} × {kind}" for kind in dict.fromkeys(kinds))
