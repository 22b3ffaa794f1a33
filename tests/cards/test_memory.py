"""The card of a watch on several devices."""

from __future__ import annotations

from typing import Any

from jupyterlab_jaxprof.cards import memory
from jupyterlab_jaxprof.cards.blocks import Curve, Remark


def test_devices_are_drawn_to_one_scale_and_the_process_to_its_own() -> None:
    def one(device: str, most: float) -> dict[str, Any]:
        return {"label": device, "device": device, "most_bytes": most, "columns": [0.0, most]}

    series = [one("cpu:0", 1.6e6), one("cpu:1", 13.6e6), one("process", 4e8)]
    blocks = memory.blocks({"watch": {"duration_ms": 1500.0, "samples": 30, "series": series}})
    highest = [max(fraction for fraction, _ in block.bars) for block in blocks if isinstance(block, Curve)]
    assert highest == [1.6e6 / 13.6e6, 1, 1]
    told = next(block.text for block in blocks if isinstance(block, Remark))
    assert told == (
        "The devices are drawn to one scale, up to 13.6 MB. 30 samples, one every 50.0 ms on average."
    )
