"""For all tests."""

from __future__ import annotations

import signal

import pytest

# A shell without job control lets what it starts in the background ignore Ctrl-C; the tests send some.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take long: none is then left for one process alone at the end."""
    items.sort(key=lambda item: not any(item.iter_markers("long")) and not any(item.iter_markers("browser")))
