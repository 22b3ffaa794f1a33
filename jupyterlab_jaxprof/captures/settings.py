"""The user's settings: `settings.json` in the store, which the front end writes and the magics read.

`{"defaults": {magic: options}, "size_limit": "20 GB"}`, and keys of other parts, which everybody leaves as
they are. A value that can't be used counts as missing, and a file that can't be read as empty; each is told
in a sentence.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import disk
from .errors import InvalidValue, StoreError, sentence
from .record import load
from .sizes import parse_size

SETTINGS_FILE = "settings.json"
LIMIT_BYTES = 64 * 1024
MAX_OPTIONS = 1000
#: The magics that take default options, as the settings name them.
MAGICS = ("jaxtrace", "jaxtime", "jaxsweep", "jaxmem", "nsys")


@dataclass(frozen=True)
class Settings:
    """What the file says, less what can't be used; `problem` is a sentence about that, else empty."""

    values: Mapping[str, Any] = field(default_factory=lambda: {})
    problem: str = ""

    @property
    def defaults(self) -> dict[str, str]:
        """Each magic's default options."""
        return dict(self.values.get("defaults") or {})


def read_settings(root: Path) -> Settings:
    """Read the settings of the store at `root`. Raises nothing for what is on the disk."""
    path = root / SETTINGS_FILE
    try:
        data: Any = load(disk.read_below(root, SETTINGS_FILE, LIMIT_BYTES))
    except FileNotFoundError:
        return Settings()
    except OSError as error:
        return Settings({}, sentence("The settings can't be read", path, error))
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        return Settings(
            {}, f"The settings in {path} are damaged and count for nothing: mend or delete that file."
        )
    values: dict[str, Any] = dict(data)
    problems: list[str] = []
    if isinstance(values.get("defaults"), dict):  # one that can't be used costs no other
        usable = dict(values["defaults"])
        for magic in _unusable(usable):
            wrong = _misfit({magic: usable.pop(magic)})
            problems.append(f"A part of the settings' 'defaults' in {path} counts for nothing. {wrong}")
        values["defaults"] = usable
    for key, check in CHECKS.items():
        try:
            if key in values:
                check(values[key])
        except InvalidValue as error:
            del values[key]
            problems.append(f"The settings' {key!r} in {path} counts for nothing. {error}")
    return Settings(values, " ".join(problems))


def write_settings(root: Path, changes: Mapping[str, Any]) -> Settings:
    """Put `changes` in place of these keys; all others stay as they are. Gives the settings that result.

    Raises InvalidValue for a key or value that can't be used, StoreError where the disk refuses or the
    file is damaged (which is not overwritten: somebody's values may be saved from it).
    """
    for key, value in changes.items():
        if key not in CHECKS:
            raise InvalidValue(f"There is no setting {key!r:.80}; there are: {', '.join(CHECKS)}.")
        CHECKS[key](value)
    path = root / SETTINGS_FILE
    try:
        disk.make_private(root)
        with disk.locked(root / "lock"):
            kept = _kept(path)
            changed = {**kept, **changes}
            if "defaults" in changes and isinstance(kept.get("defaults"), dict):
                # of a later version, maybe: whoever changes the others has not seen them
                unseen = {magic: kept["defaults"][magic] for magic in _unusable(kept["defaults"])}
                changed["defaults"] = {**unseen, **changes["defaults"]}
            content = json.dumps(changed, indent=2, ensure_ascii=False) + "\n"
            if len(content.encode()) > LIMIT_BYTES:
                raise InvalidValue(
                    f"The settings would take more than {LIMIT_BYTES >> 10} KiB: shorten them."
                )
            disk.write_atomically(path, content.encode())
    except OSError as error:
        raise StoreError(sentence("The settings can't be saved", path, error)) from error
    return read_settings(root)


def _unusable(defaults: Mapping[str, Any]) -> list[str]:
    """Give the magics whose default options can't be used here."""
    return [magic for magic, options in defaults.items() if _misfit({magic: options}) is not None]


def _misfit(defaults: Mapping[str, Any]) -> InvalidValue | None:
    try:
        _check_defaults(defaults)
    except InvalidValue as error:
        return error
    return None


def _kept(path: Path) -> dict[str, Any]:
    """Give all that the file holds, the keys that nobody here knows too; raises StoreError for damage."""
    try:
        data: Any = load(disk.read_below(path.parent, path.name, LIMIT_BYTES))
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise StoreError(
            f"The settings in {path} are damaged, and are not overwritten: mend or delete that file."
        )
    return data


def _check_defaults(value: object) -> None:
    if not isinstance(value, Mapping):
        raise InvalidValue('\'defaults\' must be an object: {"jaxtrace": "--steps 5"}, for example.')
    for magic, options in value.items():
        if magic not in MAGICS:
            raise InvalidValue(
                f"There is no magic {magic!r:.80} with default options; there are: {', '.join(MAGICS)}."
            )
        if not isinstance(options, str) or not options.isprintable() or len(options) > MAX_OPTIONS:
            raise InvalidValue(
                f"The default options of {magic} must be text on one line of at most {MAX_OPTIONS} "
                "characters, as they would stand behind the magic."
            )


def _check_size_limit(value: object) -> None:
    if not isinstance(value, str):
        raise InvalidValue(
            "'size_limit' must be text such as '20 GB'; an empty one is no limit of the user's."
        )
    parse_size(value)


#: What checks each key that this package writes; each raises InvalidValue with a sentence.
CHECKS: dict[str, Callable[[object], None]] = {
    "defaults": _check_defaults,
    "size_limit": _check_size_limit,
}
