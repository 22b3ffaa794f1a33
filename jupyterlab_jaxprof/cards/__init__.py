"""A capture shown: text, HTML and JSON, from one model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jupyterlab_jaxprof.captures import Record

from . import html, small, text
from .model import Card
from .paper import PLAIN, Paper, paper_of

MIME_TYPE = "application/vnd.jaxprof.capture+json"
#: What the three forms take together in a notebook's file.
MAX_BYTES = 100_000
#: What the JSON may take however large the others are.
_LEAST_BYTES = 20_000

__all__ = ["MIME_TYPE", "PLAIN", "Card", "Paper", "bundle", "page", "paper_of", "plain"]


def bundle(record: Record, *, directory: Path, in_store: bool, paper: Paper = PLAIN) -> dict[str, Any]:
    """Make the MIME bundle of a capture whose files lie in `directory`: plain text, HTML and JSON.

    `in_store` tells whether the sidebar lists it (False for one that went elsewhere with `--dir`).
    """
    card = Card.of(record, directory=directory, in_store=in_store)
    forms = {"text/plain": text.render(card, paper), "text/html": html.render(card)}
    left = MAX_BYTES - sum(small.size(form) for form in forms.values())
    return {**forms, MIME_TYPE: _json(record, directory, in_store, max(left, _LEAST_BYTES))}


def plain(record: Record, *, directory: Path, in_store: bool, paper: Paper = PLAIN) -> str:
    """Write a capture's card for a terminal."""
    return text.render(Card.of(record, directory=directory, in_store=in_store), paper)


def page(record: Record, *, directory: Path, in_store: bool) -> str:
    """Write a capture's card as a whole HTML page."""
    return html.page(Card.of(record, directory=directory, in_store=in_store))


def _json(record: Record, directory: Path, in_store: bool, most_bytes: int) -> dict[str, Any]:
    """Give the record as the REST route does, without what would swell the notebook."""
    data = record.to_json() | {
        "size_bytes": record.size_bytes,
        "directory": str(directory),
        "in_store": in_store,
    }
    return small.shrunk(data, most_bytes)
