"""Points of a sweep: the knee, series, peaks a device each, and which errors are of memory."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from jupyterlab_jaxprof.timing import time
from jupyterlab_jaxprof.timing.compiles import Phases
from jupyterlab_jaxprof.timing.memory import DeviceMemory, largest_need_bytes
from jupyterlab_jaxprof.timing.points import Ending, Peak, Point, Value
from jupyterlab_jaxprof.timing.repeats import Repeats, Sample
from jupyterlab_jaxprof.timing.result import TimedResult
from jupyterlab_jaxprof.timing.series import series_of
from jupyterlab_jaxprof.timing.sweep import is_out_of_memory
from jupyterlab_jaxprof.timing.swept import SweepResult

NOTHING = Phases(0, 0, 0, 0, 0)


def point(
    ending: Ending = Ending.OK, *, ms: float = 1.0, samples: int = 5, items: float | None = None, **values
) -> Point:
    repeats = Repeats([Sample(1, ms * 1e6, 0, 0)] * samples) if ending is Ending.OK else None
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
        # In step with the values, in which the last lie within a tenth of each other.
        ({91: 1.0, 95: 1.0, 99: 1.0}, None, "still grows at batch=99 (99,000 b/s)"),
        (dict.fromkeys(range(1, 200), 1.0), None, "still grows at batch=199 (199,000 b/s)"),
        ({10: 1.0, 100: 1.0, 110: 1.1, 120: 1.2}, None, "can't be told"),
        ({-2: 1.0, -1: 1.0, 8: 1.0}, None, ""),
        ({1: 1.0, 2: 1.0}, None, ""),
    ],
)  # fmt: skip
def test_the_knee_is_the_smallest_value_with_90_percent_of_the_best_rate(times_ms, knee, verdict):
    (series,) = series_of(swept(times_ms), ["batch"], "")
    found = series.knee()
    assert (found and found.values["batch"].plain) == knee
    if verdict == "can't be told":
        assert series.verdict("b/s").startswith(
            "it reaches 100,000 b/s at batch=100, and the values beyond lie"
        )
    else:
        assert series.verdict("b/s") == (f"the rate {verdict}" if verdict else "")


@pytest.mark.parametrize(
    ("doubtful", "told"),
    [
        ({32}, "batch=32"),  # the knee itself
        ({8}, "batch=8"),  # it would be the knee if it were faster
        ({32, 512}, "batch=32 and batch=512"),  # the best
        ({1, 128, 2048}, ""),  # whatever they are, the knee stays
    ],
)
def test_a_verdict_that_rests_on_doubtful_runs_says_so(doubtful: set[int], told: str):
    times_ms = {1: 1.0, 8: 1.0, 32: 1.0, 128: 4.0, 512: 15.6, 2048: 65.0}
    points = [
        point(batch=batch, ms=ms, items=batch, samples=3 if batch in doubtful else 5)
        for batch, ms in times_ms.items()
    ]
    (series,) = series_of(points, ["batch"], "")
    doubt = f", which is doubtful, as the runs at {told} are" if told else ""
    assert series.verdict("b/s") == f"the rate stops growing at batch=32 (32,000 b/s){doubt}"


def test_other_sentences_of_doubtful_runs_say_so_too():
    doubt = ", which is doubtful, as the runs at {} are."
    (last,) = series_of(
        [*swept({1: 1.0, 8: 4.0}), point(batch=32, ms=13.0, items=32, samples=2)], ["batch"], ""
    )
    assert last.verdict("b/s") + "." == "the rate still grows at batch=32 (2,460 b/s)" + doubt.format(
        "batch=32"
    )
    for items, told in (
        (1, "the highest rate is 1,000 x/s, at kind=a"),
        (None, "the shortest call takes 1.00 ms, at kind=a"),
    ):
        result = SweepResult("", ["kind"], "", "x/s", 1, [point(kind="a", items=items, samples=1)])
        assert str(result) == f"1 value of kind: {told}{doubt.format('kind=a')}"


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


def test_a_rate_is_compared_whatever_its_size():
    huge = [point(batch=2**power, ms=1e-9, items=1e300) for power in (1, 2, 3)]
    assert [one.rate for one in huge] == [None] * 3  # no float holds it
    points = [point(batch=batch, items=1e290) for batch in (1, 2, 10**400)]
    result = SweepResult("", ["batch"], "", "batch/s", 3, points)
    assert str(result) == "3 values of batch: the highest rate is 1.00e293 batch/s, at batch=1."


def test_series_are_of_the_name_asked_for():
    points = [point(n=n, m=m, k=k, o=1) for n in (1, 2) for m in (4, 5) for k in (6, 7)]
    names = ["n", "m", "k", "o"]
    plain = series_of(points, names, "")
    assert [one.label for one in plain] == [
        "m=4, k=6, o=1",
        "m=4, k=7, o=1",
        "m=5, k=6, o=1",
        "m=5, k=7, o=1",
    ]
    by = series_of(points, names, "m")
    assert [(one.label, one.title, len(one.points)) for one in by] == [
        ("m=4, o=1", "n, k", 4), ("m=5, o=1", "n, k", 4),
    ]  # fmt: skip
    assert [by[0].value(one) for one in by[0].points] == ["1, 6", "1, 7", "2, 6", "2, 7"]
    assert str(SweepResult("", names[:3], "m", "", 8, points)).startswith("8 values of n, m and k: ")


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
