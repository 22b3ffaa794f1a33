"""Points of a sweep: the knee, series, peaks a device each, and which errors are of memory."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from jupyterlab_jaxprof.timing import time
from jupyterlab_jaxprof.timing.compiles import Phases
from jupyterlab_jaxprof.timing.memory import DeviceMemory, largest_need_bytes
from jupyterlab_jaxprof.timing.points import Ending, Peak, Point, Value, series_of
from jupyterlab_jaxprof.timing.repeats import Repeats, Sample
from jupyterlab_jaxprof.timing.result import TimedResult
from jupyterlab_jaxprof.timing.sweep import SweepResult, is_out_of_memory

NOTHING = Phases(0, 0, 0, 0, 0)


def point(ending: Ending = Ending.OK, *, ms: float = 1.0, items: float | None = None, **values) -> Point:
    repeats = Repeats([Sample(1, ms * 1e6, 0, 0)] * 5) if ending is Ending.OK else None
    result = TimedResult("", None, None, ms, ms, 0, NOTHING, [], repeats)
    return Point({name: Value(value, str(value)) for name, value in values.items()}, result, ending, items)


def swept(times_ms: dict[int, float]) -> list[Point]:
    return [point(batch=batch, ms=ms, items=batch) for batch, ms in times_ms.items()]


@pytest.mark.parametrize(
    ("times_ms", "knee", "verdict"),
    [
        ({1: 1.0, 8: 1.0, 32: 1.0, 128: 4.0, 512: 15.6}, 32, "stops growing at batch=32 (32,000 b/s)"),
        ({1: 1.0, 8: 4.0, 32: 13.0}, None, "still grows at batch=32 (2,460 b/s)"),
        ({8: 8.0, 1: 1.0, 2: 2.0}, 1, "does not grow beyond its smallest value, batch=1 (1,000 b/s)"),
        ({4: 1.0, 16: 2.0, 64: 16.0}, 16, "stops growing at batch=16 (8,000 b/s)"),  # and falls
        ({1: 1.0, 2: 1.0}, None, ""),
    ],
)  # fmt: skip
def test_the_knee_is_the_smallest_value_with_90_percent_of_the_best_rate(times_ms, knee, verdict):
    (series,) = series_of(swept(times_ms), ["batch"], "")
    found = series.knee()
    assert (found and found.values["batch"].plain) == knee
    assert series.verdict("b/s") == (f"the rate {verdict}" if verdict else "")


def test_values_that_are_no_numbers_have_no_knee():
    points = [point(kind=kind, items=1) for kind in ("a", "b", "c")]
    (series,) = series_of(points, ["kind"], "")
    assert (series.knee(), series.verdict("x/s")) == (None, "")


def test_a_sentence_names_what_failed():
    points = [*swept({1: 1.0, 8: 1.0, 32: 4.0}), point(Ending.OUT_OF_MEMORY, batch=64)]
    result = SweepResult("", ["batch"], "", "batch/s", 4, points)
    assert str(result) == (
        "4 values of batch: the rate stops growing at batch=8 (8,000 batch/s); batch=64 ran out of memory."
    )
    points += [point(Ending.FAILED, batch=batch) for batch in (3, 4, 5)]
    result = SweepResult("", ["batch"], "", "batch/s", 9, points)
    assert str(result).startswith("7 of 9 values of batch: ")
    assert str(result).endswith("batch=64 ran out of memory; 3 values failed.")
    assert result.interrupted


def test_peaks_are_told_a_device_each():
    before = [DeviceMemory("cuda:0", 5, 100), DeviceMemory("cuda:1", 5, 300), DeviceMemory("cpu:0")]
    after = [DeviceMemory("cuda:0", 5, 200), DeviceMemory("cuda:1", 5, 300), DeviceMemory("cpu:0")]
    assert Peak.of(before, after) == [Peak("cuda:0", 200, raised=True), Peak("cuda:1", 300, raised=False)]


def test_a_programs_need_is_told_only_where_it_is_known_which_ran():
    @jax.jit
    def product(x):
        return x @ x.T

    small, large = jnp.ones((16, 8)), jnp.ones((64, 8))
    used = {"product": product}
    compiled = time(product, small).compiles
    need = largest_need_bytes(compiled, used)
    assert need >= 16 * 8 * 4 + 16 * 16 * 4
    assert largest_need_bytes([], used) == need  # there is one program so far
    assert largest_need_bytes(time(product, large).compiles, used) > need
    assert largest_need_bytes([], used) is None  # there are two
    assert largest_need_bytes([], {}) is None


def test_which_errors_are_of_memory():
    with pytest.raises(RuntimeError) as raised:
        jnp.zeros(1 << 50).block_until_ready()
    assert is_out_of_memory(raised.value)
    assert is_out_of_memory(MemoryError())
    assert not is_out_of_memory(ValueError("RESOURCE_EXHAUSTED"))
    assert not is_out_of_memory(RuntimeError("INTERNAL: broken"))
