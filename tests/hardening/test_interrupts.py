"""Ctrl-C at any line that any magic runs: nothing half done, a sentence, and a kernel that goes on."""

from __future__ import annotations

import gc
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from jupyterlab_jaxprof.captures import Store
from jupyterlab_jaxprof.captures.owner import OWNER_FILE
from jupyterlab_jaxprof.tracing import Trace, profiler
from tests.support.endurance import tries
from tests.support.shells import Outcome, Shell, running_shell

from .moments import Moments, spread

SETUP = """
import jax, jax.numpy as jnp
f = jax.jit(lambda x: x @ x)
x = jnp.ones((8, 8))
f(x).block_until_ready()
n = 7
"""
MAGICS = {
    "trace": ["%%jaxtrace t\nf(x)"],
    "steps": ["%%jaxtrace t --steps 2\nf(x)"],
    "start and stop": ["%jaxtrace start t", "%jaxtrace stop"],
    "time": ["%%jaxtime t -r 2 --transfers --memory\nf(x)"],
    "expression": ["%jaxtime f(x)"],
    "sweep": ["%%jaxsweep n=1,2\nf(x * n)"],
    "memory": ["%jaxmem"],
    "watch": ["%jaxmem --watch", "%jaxmem --stop"],
    "report": ["%jaxprof report known"],
}
#: Moments for each cell of a magic; in CI each at a random place of an equal part of its lines.
TRIES = tries(2, 50)


@dataclass
class Bench:
    shell: Shell
    store: Store

    def ids(self) -> set[str]:
        return {row.id for row in self.store.list(limit=1_000_000).rows}

    def surroundings(self) -> dict[str, Any]:
        """What a magic changes for a while, and has to bring back."""
        events = self.shell.ip.events.callbacks
        return {
            "handler": signal.getsignal(signal.SIGINT),
            "collector": list(gc.callbacks),
            "stderr": str(Path("/proc/self/fd/2").readlink()),
            "threads": sorted(one.name for one in threading.enumerate() if "jaxprof" in one.name),
            "swept": self.shell.names["n"],
            "events": {name: len(callbacks) for name, callbacks in events.items()},
        }


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    root = Path(tempfile.mkdtemp(prefix="jaxprof-interrupts-"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAXPROF_DIR", str(root))
        with running_shell("jupyterlab_jaxprof") as shell:
            shell.run(SETUP)
            assert shell.run("%%jaxtrace known\nf(x)").error is None
            yield Bench(shell, Store(root))
    shutil.rmtree(root)


def check_said(outcome: Outcome, moments: Moments) -> None:
    """An interrupt is obeyed, and told; nobody sees lines of ours."""
    assert isinstance(outcome.error, KeyboardInterrupt), (outcome.error, moments.struck)
    assert "nterrupted" in outcome.text.replace("KeyboardInterrupt", ""), (outcome.text, moments.struck)
    assert "jupyterlab_jaxprof/" not in outcome.text, (outcome.text, moments.struck)


def check_kept(bench: Bench, before: set[str], outcome: Outcome) -> None:
    """At most one capture is there, whole; one that is not called interrupted was told to be whole."""
    rows = [row for row in bench.store.list(limit=1_000_000).rows if row.id not in before]
    assert len(rows) <= 1
    for row in rows:
        assert (row.problem, row.record is not None) == (None, True)
        assert row.record.status == "interrupted" or "is kept, and whole" in outcome.text, outcome.text
    left = [path for path in (bench.store.root / "partial").iterdir() if (path / OWNER_FILE).exists()]
    assert left == []
    assert bench.store.running() == []


def check_usable(bench: Bench, surroundings: dict[str, Any]) -> None:
    """JAX's profiler is free, and all that was changed is as it was."""
    assert Trace.running is None
    assert profiler._current_session() is None
    assert bench.surroundings() == surroundings


@pytest.mark.parametrize("twice", [False, True], ids=["once", "twice"])
@pytest.mark.parametrize("name", MAGICS)
def test_interrupts_at_any_line(bench: Bench, name: str, twice: bool) -> None:
    cells = MAGICS[name]
    shell, chance = bench.shell, Random(f"{name} {twice}")
    surroundings = bench.surroundings()
    for number, cell in enumerate(cells):
        before, after = cells[:number], cells[number + 1 :]
        for each in before:
            assert shell.run(each).error is None
        with Moments() as whole:
            assert shell.run(cell).error is None
        for each in after:
            assert shell.run(each).error is None
        for moment in spread(whole.count, TRIES, chance):
            for each in before:
                shell.run(each)
            known = bench.ids()
            with Moments(moment, chance.randrange(200) if twice else -1) as moments:
                outcome = shell.run(cell)
            if moments.struck:  # the second time some lines of the first are not needed
                check_said(outcome, moments)
            if Trace.running is not None or "goes on until it is stopped" in outcome.text:
                assert "goes on until it is stopped" in outcome.text or outcome.error is None
                for each in after or cells[1:]:
                    assert shell.run(each).error is None
            elif outcome.error is None:
                for each in after:
                    shell.run(each)
            if outcome.error is not None and "goes on" not in outcome.text:
                check_kept(bench, known, outcome)
            check_usable(bench, surroundings)
    assert shell.run("%%jaxtrace known\nf(x)").error is None
