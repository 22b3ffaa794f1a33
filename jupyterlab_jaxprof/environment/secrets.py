"""Which environment variables, and options of commands, may hold a secret, going by their names."""

from __future__ import annotations

import re

_SECRET = re.compile(
    r"TOKEN(?!IZER)|SECRET|PASSW|PASSPHRASE|CREDENTIAL|API_?KEY|PRIVATE|COOKIE"
    r"|(?:^|_)(?:KEYS?|AUTH|PASS|PWD|DSN|SAS)(?:_|$)",
    re.IGNORECASE,
)
_INNOCENT = re.compile(r"(?:OLD)?PWD|.*_(?:DIR|FILE|PATH|SOCK)", re.IGNORECASE)
_SHORTEST = 8
_SHORTEST_WORD = 20
_PATH = re.compile(r"~?/[\w./~+ -]*")


def is_secret(name: str) -> bool:
    """Tell whether a variable of this name, or an option (`--ServerApp.token`), may hold a secret."""
    plain = name.strip("-").replace("-", "_").replace(".", "_")
    return _SECRET.search(plain) is not None and _INNOCENT.fullmatch(plain) is None


def is_telling(value: str) -> bool:
    """Tell whether a secret can be known by its value wherever it stands: no word, number or path is one."""
    if len(value) < _SHORTEST or set(value) == {"*"} or _PATH.fullmatch(value):
        return False
    has_letters, has_digits = re.search(r"[^\W\d]", value), re.search(r"\d", value)
    return bool(has_letters and has_digits) or (bool(has_letters) and len(value) >= _SHORTEST_WORD)
