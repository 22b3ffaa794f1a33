"""Which environment variables may hold a secret, going by their names."""

from __future__ import annotations

import re

_SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|API_?KEY|PRIVATE", re.IGNORECASE)


def is_secret(name: str) -> bool:
    """Tell whether a variable of this name may hold a secret."""
    return _SECRET.search(name) is not None
