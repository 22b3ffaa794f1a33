"""The wire format: what is found in places that were guessed is what is there."""

from __future__ import annotations

import numpy as np
import pytest

from jupyterlab_jaxprof.timeline.wire import Buffer, DamagedError, events, field_at, scan, varints
from tests.support.xspace import block, number, varint


def test_numbers_of_every_length():
    values = [
        0,
        1,
        127,
        128,
        300,
        *(2**bits - 1 for bits in range(7, 65)),
        *(2**bits for bits in range(7, 64)),
    ]
    written = [varint(value) for value in values]
    places = np.cumsum([0, *(len(one) for one in written)])[:-1]
    read, sizes = varints(Buffer(b"".join(written)), places)
    assert read.tolist() == values
    assert sizes.tolist() == [len(one) for one in written]


@pytest.mark.parametrize("seed", range(4))
def test_events_are_found_whatever_they_hold(seed):
    """Texts that look like events, and events longer than a piece, deceive the guesses."""
    random = np.random.default_rng(seed)
    lure = block(4, number(1, 3) + number(2, 10**9) + number(3, 7))
    contents = []
    for _ in range(3000):
        stats = (
            block(4, number(1, 5) + block(5, lure * int(random.integers(0, 9))))
            if random.random() < 0.5
            else b""
        )
        if random.random() < 0.01:
            stats += block(4, number(1, 5) + block(5, lure * int(random.integers(300, 900))))
        times = number(2, int(random.integers(0, 2**45))) + number(3, int(random.integers(0, 2**40)))
        contents.append(number(1, int(random.integers(1, 2**15))) + times + stats)
    written = b"".join(block(4, content) for content in contents) + number(9, 1)
    starts, ends, stop = events(Buffer(written), 0, len(written))
    assert [written[start:end] for start, end in zip(starts, ends, strict=True)] == contents
    assert stop == len(written) - 2
    first_numbers = next(scan(Buffer(written), starts, ends))
    assert (first_numbers.number == 1).all()


@pytest.mark.parametrize(
    "damaged", [b"\xff" * 11, b"\x0a\x05abc", b"\x0b\x01", b"\x00\x01", b"\x09abc", b"\x22"]
)
def test_what_is_not_whole_is_refused(damaged):
    with pytest.raises(DamagedError):
        field_at(Buffer(damaged), 0, len(damaged))
    with pytest.raises(DamagedError):
        list(scan(Buffer(damaged), np.array([0]), np.array([len(damaged)])))
