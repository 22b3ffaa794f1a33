"""The settings of JAX's profiler: asked for as text, checked against what the installed JAX has."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

ADVANCED = "advanced_configuration"
_OURS = {
    "session_id": "the capture's name decides the session's name",
    "repository_path": "--dir decides where the trace is written",
}
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


class OptionError(ValueError):
    """A profiler option that can't be used; the message is a sentence for the user."""


def profile_options(requested: Mapping[str, int | bool | str]) -> Any:
    """Build `jax.profiler.ProfileOptions` with the Python tracer off and then every requested field.

    A field is one that the installed JAX's ProfileOptions has, or `advanced_configuration.KEY` where it has
    that. Values may be text, as a user types them. Zero is a value like any other.

    Raises:
        OptionError: no such field, or no such value of it.
    """
    import jax

    options = jax.profiler.ProfileOptions()
    fields = available_fields(options)
    if "python_tracer_level" in fields:
        # On by default in JAX, it fills the trace viewer's million events and slows what is measured.
        options.python_tracer_level = 0
    advanced: dict[str, int | bool | str] = {}
    for name, value in requested.items():
        head, _, key = name.partition(".")
        if head == ADVANCED and ADVANCED in fields:
            advanced[_advanced_key(key)] = _plain(value)
        else:
            _set(options, name, value, fields)
    if advanced:
        options.advanced_configuration = {**fields[ADVANCED], **advanced}
    return options


def available_fields(options: Any) -> dict[str, Any]:
    """Give the fields that these ProfileOptions really have, with their present values.

    Before JAX 0.12 ProfileOptions takes any attribute and ignores it, so only what its C++ class defines
    counts.
    """
    names = (name for name in dir(type(options)) if isinstance(getattr(type(options), name, None), property))
    return {name: _value(options, name) for name in names if name not in _OURS}


def _value(options: Any, name: str) -> Any:
    try:
        return getattr(options, name)
    except TypeError:  # advanced_configuration of JAX 0.6 can be set, but not read
        return {}


def _set(options: Any, name: str, value: int | bool | str, fields: Mapping[str, Any]) -> None:
    if name in _OURS:
        raise OptionError(f"The profiler option {name} can't be set here: {_OURS[name]}.")
    if name not in fields or name == ADVANCED:
        raise OptionError(_unknown(name, fields))
    kind = type(fields[name])
    try:
        setattr(options, name, _converted(value, kind))
    except (TypeError, ValueError, OverflowError) as error:
        expected = {bool: "true or false", int: "a whole number, 0 or more"}.get(kind, "text")
        raise OptionError(f"The profiler option {name} takes {expected}, not '{value}'.") from error


def _unknown(name: str, fields: Mapping[str, Any]) -> str:
    import jax

    if name == "device_tracer_level":
        return (
            f"The installed JAX {jax.__version__} always traces its devices: its ProfileOptions has no "
            "device_tracer_level (--device-level), which only --remote can send."
        )
    known = [f"{field}.KEY" if field == ADVANCED else field for field in sorted(fields)]
    close = get_close_matches(name, known, n=1)
    meant = f" Did you mean {close[0]}?" if close else ""
    return (
        f"The installed JAX {jax.__version__} has no profiler option {name}.{meant} "
        f"Its options are {', '.join(known)}."
    )


def _advanced_key(key: str) -> str:
    if not key:
        raise OptionError(
            f"Write {ADVANCED}.KEY=VALUE, for example {ADVANCED}.gpu_max_activity_api_events=4000000."
        )
    return key


def _converted(value: int | bool | str, kind: type) -> int | bool | str:
    if kind is bool:
        text = str(value).lower()
        if text not in _TRUE + _FALSE:
            raise ValueError(text)
        return text in _TRUE
    if kind is int:
        return int(value)
    return str(value)


def _plain(value: int | bool | str) -> int | bool | str:
    """Read a value of a field whose type nothing tells: a whole number, true or false, else text."""
    if not isinstance(value, str):
        return value
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    try:
        return int(value)
    except ValueError:
        return value
