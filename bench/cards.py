"""Cards of recorded captures: what they add to a saved notebook, how long until they are shown."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.pages import lab_server
from bench.table import Figure, Limit
from bench.turns import in_turns, timed
from jupyterlab_jaxprof import cards
from jupyterlab_jaxprof.captures import Record, Store
from tests.support.browser import chromium, lab_page, write_notebook
from tests.support.captures import TRACES, published
from tests.support.rendering import rendered_ms

ROUNDS = 15


def figures(long: bool) -> Iterator[Figure]:
    """Measure."""
    with tempfile.TemporaryDirectory() as directory:
        store = Store(Path(directory))
        records = [published(store, name, name) for name in TRACES]
        bundles = [_bundle(store, record) for record in records]
        sizes = [len(json.dumps(bundle)) for bundle in bundles]
        yield Figure(
            f"the largest of {len(sizes)} cards in a saved notebook",
            max(sizes),
            "bytes",
            (Limit("value", 100e3),),
        )
        largest = sizes.index(max(sizes))
        made = [timed(lambda: _bundle(store, records[largest])) for _ in range(ROUNDS)]
        yield Figure.of_values("that card made by a kernel", made, "s", Limit("value", 0.1))
        yield _shown(bundles[largest], ROUNDS * (3 if long else 1))


def _bundle(store: Store, record: Record) -> dict[str, Any]:
    return cards.bundle(record, directory=store.directory(record.id), in_store=True)


def _shown(bundle: dict[str, Any], rounds: int) -> Figure:
    with lab_server() as server, chromium() as browser:
        write_notebook(server, "cards.ipynb", ["1"])
        with lab_page(browser, server) as lab:
            lab.go("lab/tree/cards.ipynb")
            lab.wait_for_kernel()
            ours, theirs = in_turns(
                rounds,
                lambda: rendered_ms(lab, bundle, cards.MIME_TYPE, 1)[0] / 1e3,
                lambda: rendered_ms(lab, bundle, "text/html", 1)[0] / 1e3,
                warmups=2,
            )
    return Figure.of_pairs(
        "that card shown in JupyterLab", ours, "its HTML form", theirs, "s", Limit("value", 0.1)
    )
