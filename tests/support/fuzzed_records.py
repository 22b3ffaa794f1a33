"""Records of every kind of capture, changed anywhere; and settings, as their files hold them."""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from jupyterlab_jaxprof.reports.examine import examine
from jupyterlab_jaxprof.reports.report import record_of
from tests.cards.test_cards import ID
from tests.cards.test_cards import record as made
from tests.cards.test_sweep_memory import swept, watched
from tests.cards.test_timed import summary as timed
from tests.support.captures import unpacked
from tests.support.odd_values import byte_changes, changed_json, mutated, odd_change, pool


@cache
def bases() -> list[str]:
    """Give one record of each kind that has everything, as JSON."""
    records = [
        made(),
        made(kind="time", summary=timed()),
        made(kind="sweep", summary=swept()),
        made(kind="memory", summary=watched()),
    ]
    for name, kind in (("two_hosts_r0.xplane.pb", "trace"), ("nsys_child_graphs.sqlite", "nsys")):
        path = unpacked(name)
        found = record_of(examine([path]), path, path.parent)
        records.append(made(kind=kind, summary=_few(dict(found.summary)), findings=found.findings[:2]))
    return [json.dumps(record.to_json()) for record in records]


def _few(value: Any) -> Any:
    """Cut long lists, for the sake of speed."""
    if isinstance(value, dict):
        return {key: _few(item) for key, item in value.items()}
    return [_few(item) for item in value[:4]] if isinstance(value, list) else value


def _content(base: int, changes: list[Any], damage: list[tuple[int, int, bytes]]) -> bytes:
    data = json.loads(bases()[base])
    for change in changes:
        changed_json(data, copy.deepcopy(change))
    return mutated(json.dumps(data).encode(), damage)


#: What a `capture.json` may hold: valid in most parts, and rarely damaged as text.
contents = st.builds(
    _content,
    st.integers(0, 5),
    st.lists(pool(odd_change, 6000), max_size=4),
    st.one_of(st.just([]), st.just([]), st.just([]), byte_changes(3)),
)
DIRECTORY = Path("/home/me/.local/share/jupyter/jaxprof/captures") / ID
