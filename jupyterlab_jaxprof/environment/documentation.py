"""The documentation's page about each finding, which is part of the package: no network is needed."""

from __future__ import annotations

import re
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
#: In an installed package, and in a checkout.
_PLACES = (_PACKAGE / "docs" / "patterns", _PACKAGE.parent / "docs" / "patterns")
#: Where it is shown, a link to another page leads nowhere.
_LINK = re.compile(r"\[([^\]]*)\]\((?!\w+:)([^)]*)\)")
#: What stands behind a block's language is for the tests.
_MARKS = re.compile(r"^(```\w+) .*$", re.MULTILINE)


def finding_page(name: str) -> str | None:
    """Give the Markdown of the page about a finding, by its name; None where there is none.

    Raises OSError for a page that can't be read.
    """
    if name == "index" or not re.fullmatch(r"[a-z0-9-]{1,80}", name):
        return None
    for place in _PLACES:
        try:
            text = (place / f"{name}.md").read_text("utf-8")
        except FileNotFoundError:
            continue
        return _MARKS.sub(r"\1", _LINK.sub(r"\1", text))
    return None
