"""The documentation's page about each finding, which is part of the package: no network is needed."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path

from .examine import pattern_ids
from .find import ReportError

_PACKAGE = Path(__file__).parents[1]
#: In an installed package, and in a checkout.
_PLACES = (_PACKAGE / "docs" / "patterns", _PACKAGE.parent / "docs" / "patterns")
_LINK = re.compile(r"\[([^\]]*)\]\((?!\w+:)([^)]*)\)")


def page_of(name: str) -> str:
    """Give the Markdown of the page about a finding, by its name; raises ReportError."""
    name = name.strip()
    if name not in pattern_ids():
        close = get_close_matches(name, pattern_ids(), n=1)
        meant = f"Did you mean {close[0]}?" if close else f"There are: {', '.join(pattern_ids())}."
        raise ReportError(f"No finding is called {name!r}. {meant}")
    for place in _PLACES:
        try:
            text = (place / f"{name}.md").read_text("utf-8")
        except FileNotFoundError:
            continue
        except OSError as error:
            raise ReportError(f"The page about {name} can't be read: {error.strerror or error}.") from error
        return _LINK.sub(r"\1", text)  # where it is shown, a link to another page leads nowhere
    raise ReportError(f"There is no page about {name} in this installation: install the package once more.")
