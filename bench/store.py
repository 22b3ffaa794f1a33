"""10,000 captures: listed, searched, and asked for over REST."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.many import COUNT, fill
from bench.table import Figure, Limit
from bench.turns import in_turns, timed
from jupyterlab_jaxprof.captures import Store
from tests.support.servers import running_server

ROUNDS = 5
WANTED = f"run {COUNT - 50}"


def figures(long: bool) -> Iterator[Figure]:
    """Measure."""
    rounds = ROUNDS * (3 if long else 1)
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        captures = fill(root).captures_dir

        def parse_all() -> None:
            for place in captures.glob("*/capture.json"):
                json.loads(place.read_bytes())

        ours, theirs = in_turns(
            rounds, lambda: timed(lambda: Store(root).list(limit=50)), lambda: timed(parse_all)
        )
        name = "10,000 captures listed, in a new process"
        yield Figure.of_pairs(name, ours, "json.loads of each record", theirs, "s", Limit("value", 1.5))
        yield from _known(root, rounds)
        yield from _over_rest(root, rounds)


def _known(root: Path, rounds: int) -> Iterator[Figure]:
    """What a store that has listed them once takes for the next look."""
    store, other = Store(root), Store(root)
    newest = store.list(limit=1).rows[0].id
    changes = iter(range(1000))

    def after_a_change() -> float:
        other.update(newest, notes=f"change {next(changes)}")
        return timed(lambda: store.list(limit=50))

    yield Figure.of_values(
        "listed again after a change", [after_a_change() for _ in range(rounds)], "s", Limit("value", 0.3)
    )

    def search() -> None:
        assert [row.name for row in store.list(text=f"TRAIN_STEP {WANTED}").rows] == [WANTED]

    def grep() -> None:
        command = ["grep", "-rlF", "--include=capture.json", f'"{WANTED}"', str(store.captures_dir)]
        assert subprocess.check_output(command).count(b"\n") == 1

    ours, theirs = in_turns(rounds, lambda: timed(search), lambda: timed(grep))
    yield Figure.of_pairs(
        "searched for three words", ours, "grep for one of them", theirs, "s", Limit("value", 0.3)
    )


def _over_rest(root: Path, rounds: int) -> Iterator[Figure]:
    """What the sidebar waits for."""
    with running_server(store=root) as server:
        server.get_json("jaxprof/api/captures")
        for name, query in (("the newest 50", "limit=50"), ("a search", f"q=train_step {WANTED}")):
            times = [
                timed(lambda q=query: server.get_json(f"jaxprof/api/captures?{q}")) for _ in range(rounds)
            ]
            yield Figure.of_values(f"{name} of 10,000 over REST", times, "s", Limit("value", 0.3))
