"""Memory: devices, programs, arrays with their holders, and variables that come too late."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections import namedtuple
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

from jupyterlab_jaxprof.cell import barrier
from jupyterlab_jaxprof.timing import time
from jupyterlab_jaxprof.timing.holders import holders
from jupyterlab_jaxprof.timing.memory import (
    DeviceMemory,
    MemoryWatch,
    _peak_notices,
    largest_need_bytes,
    live_bytes,
    report_now,
)


def test_a_cpu_says_that_it_knows_nothing():
    report = report_now({})
    assert [device.known for device in report.after] == [False] * len(jax.local_devices())
    assert "nothing of memory in use" in report.notices[0]


def test_our_own_arrays_are_not_counted():
    before = jax.live_arrays()
    barrier._fences.clear()
    barrier.Barrier().wait()
    made = [array for array in jax.live_arrays() if all(array is not old for old in before)]
    assert made
    assert all(barrier.is_own(array) for array in made)
    assert report_now({}).arrays_count <= len(before)


def test_programs_that_were_compiled_and_those_compiled_before():
    @jax.jit
    def product(x):
        return (x @ x) @ x

    x = jnp.ones((64, 64))

    def body():
        return product(x)

    for _ in range(2):
        programs = time(body, memory=True).memory.programs
        assert [program.name for program in programs] == ["product"]
        assert programs[0].needs["argument_bytes"] == 64 * 64 * 4


def test_operations_outside_of_jit_are_programs_too():
    @jax.jit
    def small(x):
        return x + 1

    def body():
        return jnp.zeros((307, 1000)), small(jnp.ones(3))

    result = time(body, memory=True)
    programs = [(program.name, program.needs["output_bytes"]) for program in result.memory.programs]
    assert ("small", 3 * 4) in programs
    assert programs[0][1] == 307 * 1000 * 4  # what needs most comes first
    assert largest_need_bytes(result.compiles, {"small": small}) >= 307 * 1000 * 4


# Large ones: arrays that other tests have left alive are among the largest otherwise


def test_new_arrays_come_with_their_holders():
    old = jnp.ones((3000, 3000))
    names = {"old": old}
    watch = MemoryWatch()
    names["new"] = {"w": [jnp.ones((4000, 4000))]}
    report = watch.report(names, [], {})
    found = {array.holders: (array.size_bytes, array.new) for array in report.arrays}
    assert found["new['w'][0]",] == (64_000_000, True)
    assert found["old",] == (36_000_000, False)
    assert report.arrays_count >= 2
    assert report.arrays_bytes >= 100_000_000
    sizes = [array.size_bytes for array in report.arrays]
    assert sizes == sorted(sizes, reverse=True)


def test_what_shows_anothers_memory_takes_none():
    gc.collect()  # what other tests have dropped
    before = report_now({}).arrays_bytes
    x = jax.jit(lambda x: x + 1)(np.ones((3000, 5000), np.float32)).block_until_ready()
    str(x)  # JAX makes an array to read it
    view = x.addressable_data(0).block_until_ready()
    report = report_now({"x": x, "view": view})
    assert report.arrays_bytes - before == 60_000_000
    assert [array.holders for array in report.arrays if array.shape == (3000, 5000)] == [("x",)]
    assert sum(live_bytes().values()) >= report.arrays_bytes
    del view
    assert sum(live_bytes().values()) == pytest.approx(report.arrays_bytes, abs=60_000_000 / 2)


def test_the_shell_itself_holds_nothing():
    shell = InteractiveShell()
    x = jnp.ones((30, 40))
    shell.user_ns_hidden["x"] = x
    assert holders({"get_ipython": shell.get_ipython, "ip": shell, "x": x}, [x]) == {id(x): ("x",)}


@dataclass
class State:
    params: dict


class Slotted:
    __slots__ = ("array", "empty")

    def __init__(self, array):
        self.array = array


Pair = namedtuple("Pair", "left right")


class Hostile:
    @property
    def __dict__(self):
        raise RuntimeError("no")

    def __getattr__(self, name):
        raise RuntimeError("no")


def test_holders_of_every_kind():
    arrays = [jnp.ones(n + 1) for n in range(8)]
    closure = arrays[5]

    def function():
        return closure

    names = {
        "state": State({"w": arrays[0]}),
        "slotted": Slotted(arrays[1]),
        "pair": Pair(arrays[2], 1),
        "listed": [0, (arrays[3],)],
        "numbered": {7: arrays[4]},
        "function": function,
        "hostile": Hostile(),
        "Out": {3: arrays[6]},
        "_": arrays[6],
        "__": [arrays[7]],  # as in `__, y = f(x)`: the user's, no output
        "_3": arrays[6],
        "_i3": "x",
    }
    names["self"] = names
    found = holders(names, arrays)
    assert [found.get(id(array)) for array in arrays] == [
        ("state.params['w']",), ("slotted.array",), ("pair.left",), ("listed[1][0]",), ("numbered[7]",),
        ("function (closure: closure)",), ("Out[3]",), ("__[0]",),
    ]  # fmt: skip


@pytest.mark.measures_time
def test_a_large_namespace_is_searched_quickly():
    import time as clock

    names = {f"x{n}": {"deep": [{"deeper": list(range(1000))}]} for n in range(3000)}
    began = clock.perf_counter()
    holders(names, [jnp.ones(3)])
    assert clock.perf_counter() - began < 10


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [(100, 200, "raised the process's peak from 100 B to 200 B"), (200, 200, "reached before this ran")],
)
def test_whether_the_peak_is_this_cells(before, after, expected):
    def device(peak):
        return [DeviceMemory("cuda:0", in_use_bytes=10, peak_bytes=peak)]

    (notice,) = _peak_notices(device(before), device(after))
    assert notice.startswith("cuda:0: ")
    assert expected in notice


LATE = """
import os, sys
{watch}
os.environ["XLA_PYTHON_CLIENT_ALLOCATOR"] = "default"  # in time
import jax, jax.numpy as jnp
jnp.ones(1)
{late}
from jupyterlab_jaxprof.timing.memory import report_now
print([n for n in report_now({{}}).notices if "XLA_" in n])
"""
WATCH = "from jupyterlab_jaxprof import timing; timing.watch()"
SET = "os.environ['XLA_PYTHON_CLIENT_PREALLOCATE'] = 'false'"


@pytest.mark.parametrize(("watch", "late", "expected"), [(WATCH, SET, 1), ("", SET, 2), (WATCH, "", 0)])
def test_variables_that_are_set_too_late(watch, late, expected):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("XLA_PYTHON")}
    done = subprocess.run(
        [sys.executable, "-c", LATE.format(watch=watch, late=late)],
        capture_output=True, text=True, check=False, timeout=120, env=environment,
    )  # fmt: skip
    assert done.stdout.count("Restart the kernel") == expected, done.stdout + done.stderr
    if expected:
        assert "XLA_PYTHON_CLIENT_PREALLOCATE is set to 'false' now" in done.stdout
