"""A capture shown: text, HTML and JSON, from one model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jupyterlab_jaxprof.captures import Record

from . import html, text
from .model import Card
from .paper import PLAIN, Paper, paper_of

MIME_TYPE = "application/vnd.jaxprof.capture+json"
MAX_DURATIONS = 1000

MAX_JSON_BYTES = 100_000

__all__ = ["MIME_TYPE", "PLAIN", "Card", "Paper", "bundle", "page", "paper_of", "plain"]


def bundle(record: Record, *, directory: Path, in_store: bool, paper: Paper = PLAIN) -> dict[str, Any]:
    """Make the MIME bundle of a capture whose files lie in `directory`: plain text, HTML and JSON.

    `in_store` tells whether the sidebar lists it (False for one that went elsewhere with `--dir`).
    """
    card = Card.of(record, directory=directory, in_store=in_store)
    return {
        "text/plain": text.render(card, paper),
        "text/html": html.render(card),
        MIME_TYPE: _json(record, directory, in_store),
    }


def plain(record: Record, *, directory: Path, in_store: bool, paper: Paper = PLAIN) -> str:
    """Write a capture's card for a terminal."""
    return text.render(Card.of(record, directory=directory, in_store=in_store), paper)


def page(record: Record, *, directory: Path, in_store: bool) -> str:
    """Write a capture's card as a whole HTML page."""
    return html.page(Card.of(record, directory=directory, in_store=in_store))


def _json(record: Record, directory: Path, in_store: bool) -> dict[str, Any]:
    """Give the record as the REST route does, without what would swell the notebook.

    That is a long list of durations; and, of what is too large still, the drawing, which HTML shows too.
    """
    data = record.to_json()
    steps = data["summary"].get("steps")
    if isinstance(steps, dict) and len(steps.get("durations_ms") or ()) > MAX_DURATIONS:
        del steps["durations_ms"]
    timeline = data["summary"].get("timeline")
    if isinstance(timeline, dict) and len(json.dumps(data)) > MAX_JSON_BYTES:
        timeline.pop("drawing", None)
    return data | {"size_bytes": record.size_bytes, "directory": str(directory), "in_store": in_store}
