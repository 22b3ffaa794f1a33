"""Identifiers, names and session slugs of captures."""

from __future__ import annotations

import re
import secrets
import threading
import unicodedata
from datetime import UTC, datetime, timedelta

from .errors import InvalidValue

ID_PATTERN = re.compile(r"\d{8}-\d{6}-\d{3}-[0-9a-f]{6}", re.ASCII)
SESSION_PATTERN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
MAX_NAME_LENGTH = 200
MAX_NOTES_LENGTH = 64 * 1024
_MAX_SLUG_LENGTH = 64
_SMALL_STEP = timedelta(seconds=5)
_lock = threading.Lock()
#: The moment from which on the next identifier is.
_latest = datetime.fromtimestamp(0, UTC)
# Control characters, lone surrogates, line and paragraph separators: none can be shown on one line of text.
_UNPRINTABLE = frozenset({"Cc", "Cs", "Zl", "Zp"})
# They turn the order of what follows, and let one name look like another.
TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def new_id(now: datetime | None = None) -> str:
    """Make an identifier `YYYYMMDD-HHMMSS-mmm-xxxxxx` of the present moment (UTC); names sort by time."""
    now = now or _now()
    return f"{now:%Y%m%d-%H%M%S}-{now.microsecond // 1000:03d}-{secrets.token_hex(3)}"


def _now() -> datetime:
    """Give the present moment, later than before in this process where the clock went back a little.

    So captures stay in the order in which they were taken, those of the same millisecond too. Where the clock
    was set back by more, the new time is taken for the right one.
    """
    global _latest
    with _lock:
        now = datetime.now(UTC)
        if timedelta(0) <= _latest - now < _SMALL_STEP:
            now = _latest
        _latest = now + timedelta(milliseconds=1)
    return now


def is_id(text: str) -> bool:
    """Tell whether `text` is a capture's identifier; anything else in a store is left alone."""
    return ID_PATTERN.fullmatch(text) is not None


def created_at(capture_id: str) -> str:
    """Read the moment out of an identifier: ISO 8601, UTC; empty where its digits are no date."""
    day, clock = capture_id[:8], capture_id[9:15]
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}")
    except ValueError:
        return ""
    return f"{moment.isoformat()}.{capture_id[16:19]}Z"


def session_slug(name: str) -> str:
    """Turn a capture's name into one path component, `[A-Za-z0-9._-]+`, that XProf lists (no leading dot)."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode("ascii")
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", plain).strip("-._")
    return slug[:_MAX_SLUG_LENGTH].strip("-._") or "capture"


def checked_name(name: object) -> str:
    """Return the name as it is kept (NFC, no outer spaces), or raise InvalidValue with a sentence."""
    if not isinstance(name, str):
        raise InvalidValue(f"A capture's name must be text, not {type(name).__name__}.")
    name = unicodedata.normalize("NFC", name).strip(" \u00a0\u3000")
    if not name:
        raise InvalidValue("A capture's name can't be empty: give it at least one visible character.")
    if len(name) > MAX_NAME_LENGTH:
        raise InvalidValue(
            f"This name has {len(name)} characters, and a capture's name at most {MAX_NAME_LENGTH}: "
            "shorten it, and put the rest into the notes."
        )
    if any(not _fits(character) for character in name):
        raise InvalidValue(
            "A capture's name can't hold line breaks, tabs or other control characters: write it on one line."
        )
    return name


def cleaned_name(name: str) -> str:
    """Give a name from elsewhere, as a file's, without what a capture's name can't hold."""
    name = "".join(character for character in name if _fits(character)).strip()
    return name[:MAX_NAME_LENGTH] or "capture"


def _fits(character: str) -> bool:
    return unicodedata.category(character) not in _UNPRINTABLE and character not in TURNING


def checked_notes(notes: object) -> str:
    """Return the notes (any text, many lines), or raise InvalidValue with a sentence."""
    if not isinstance(notes, str):
        raise InvalidValue(f"Notes must be text, not {type(notes).__name__}.")
    if len(notes) > MAX_NOTES_LENGTH:
        raise InvalidValue(
            f"These notes have {len(notes)} characters; {MAX_NOTES_LENGTH} are allowed: shorten them."
        )
    if "\0" in notes or any("\ud800" <= character <= "\udfff" for character in notes):
        raise InvalidValue("Notes can't hold null or half characters: remove them and save again.")
    return notes
