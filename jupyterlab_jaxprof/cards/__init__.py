"""A capture shown: text, HTML and JSON, from one model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jupyterlab_jaxprof.captures import Record

from . import html, text
from .model import Card

MIME_TYPE = "application/vnd.jaxprof.capture+json"
MAX_DURATIONS = 1000

__all__ = ["MIME_TYPE", "Card", "bundle"]


def bundle(record: Record, *, directory: Path, in_store: bool) -> dict[str, Any]:
    """Make the MIME bundle of a capture whose files lie in `directory`: plain text, HTML and JSON.

    `in_store` tells whether the sidebar lists it (False for one that went elsewhere with `--dir`).
    """
    card = Card.of(record, directory=directory, in_store=in_store)
    return {
        "text/plain": text.render(card),
        "text/html": html.render(card),
        MIME_TYPE: _json(record, directory, in_store),
    }


def _json(record: Record, directory: Path, in_store: bool) -> dict[str, Any]:
    """Give the record as the REST route does, without a list of durations that would swell the notebook."""
    data = record.to_json()
    steps = data["summary"].get("steps")
    if isinstance(steps, dict) and len(steps.get("durations_ms") or ()) > MAX_DURATIONS:
        del steps["durations_ms"]
    return data | {"size_bytes": record.size_bytes, "directory": str(directory), "in_store": in_store}
