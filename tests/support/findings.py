"""Records with findings and a timeline: what a diagnosis of a starved H200 says."""

from __future__ import annotations

from typing import Any

STEP_MS = 31.9


def finding(text: str = "load_data") -> dict[str, Any]:
    """A finding that has everything; `text` stands wherever a user's text may."""
    return {
        "id": "host-starves-device",
        "title": f"The host starves the device: it waits for {text}",
        "level": "problem",
        "lost_ms": 178.4,
        "share": 0.932,
        "evidence": [
            f"The device was idle for 178 ms of 191 ms; 171 ms of that the host was in {text}.",
            f"{text} takes 28.6 ms of a step of 31.9 ms (median of 6).",
        ],
        "ranges": [
            {
                "start_ms": 1204.1 + STEP_MS * step,
                "end_ms": 1232.9 + STEP_MS * step,
                "label": f"{text}, step {step}",
            }
            for step in range(5)
        ],
        "meaning": "The program makes each batch while the device waits, instead of while it computes.",
        "next": [
            f"Run {text} in a thread that is a batch or two ahead: put its results into a queue.Queue(2).",
            "Make the batches once, before the loop, if they fit into memory.",
        ],
        "doc": "patterns/host-starves-device",
    }


def note(text: str = "train_step") -> dict[str, Any]:
    return {
        "id": "host-device-copies",
        "title": "A batch is copied to the device in every step",
        "level": "note",
        "lost_ms": 1.31,
        "share": 0.0069,
        "evidence": [f"6 copies, 1.05 MB each from pageable memory, 218 µs each, in {text}."],
        "ranges": [],
        "meaning": "Copies from pageable memory run at about half the speed of those from pinned memory.",
        "next": [
            "Put the next batch on the device while this one is computed: jax.device_put does not wait."
        ],
        "doc": "patterns/host-device-copies",
    }


FINE: dict[str, Any] = {
    "id": "nothing-wrong",
    "title": "Nothing wrong: the device was busy 92 % of the time",
    "level": "fine",
    "lost_ms": None,
    "share": None,
    "evidence": ["Busy for 53.6 ms of 58.2 ms; the longest gap took 0.41 ms."],
    "ranges": [],
    "meaning": "The device is what limits the program.",
    "next": ["To go faster, make the work less: lower precision, or fewer operations."],
    "doc": "patterns/device-bound",
}


def timeline(text: str = "load_data", steps: int = 6) -> dict[str, Any]:
    starts = [1203.2 + STEP_MS * number for number in range(steps)]
    ops = [[start + 29.4, start + 30.0] for start in starts]
    return {
        "source": "xplane",
        "window_ms": STEP_MS * steps,
        "window": "From the first step's start to the last step's end.",
        "busy_share": 0.0189,
        "devices": [
            {
                "device": "GPU 0", "busy_ms": 3.6, "busy_share": 0.0189, "compute_ms": 2.3, "copy_ms": 1.3,
                "collective_ms": 0.0, "idle_ms": 187.6, "ops": 72,
            }
        ],
        "partial": False,
        "blind": ["python"],
        "drawing": {
            "start_ms": 1203.2,
            "end_ms": 1203.2 + STEP_MS * steps,
            "lanes": [
                {
                    "label": text, "kind": "steps",
                    "intervals": [[at, at + 31.5, str(number)] for number, at in enumerate(starts)],
                },
                {"label": "compiles", "kind": "compiles", "intervals": []},
                {"label": "GPU 0", "kind": "device", "intervals": ops},
                {"label": "copies", "kind": "copies", "intervals": [[at + 28.9, at + 29.2] for at in starts]},
            ],
            "gaps": [
                {"start_ms": start + 0.4, "end_ms": start + 28.9, "device": "GPU 0", "cause": text}
                for start in starts
            ] + [{"start_ms": starts[0] + 30.2, "end_ms": starts[1], "device": "GPU 0", "cause": "Python"}],
        },
    }  # fmt: skip


def tables(text: str = "gemm_fusion_dot_3") -> dict[str, Any]:
    spent = {"count": 6, "total_ms": 0.75, "share_wall": 0.0039}
    return {
        "kernels": [
            {
                "name": f"{text}_{number}", "device": "GPU 0", "count": 6, "total_ms": 0.75 / (number + 1),
                "median_us": 125.1, "max_us": 131.0, "share_device": 0.207, "share_wall": 0.0039,
            }
            for number in range(20)
        ],
        "hlo_ops": [
            {
                "name": f"{text}.3", "module": "jit_train_step", "scope": f"jit(train_step)/jvp()/{text}",
                "source": "model.py:12", "share_device": 0.207, **spent,
            }
        ],
        "copies": [
            {
                "kind": "host to device", "memory": "pageable", "count": 6, "bytes": 6_291_456,
                "total_ms": 1.31, "gb_per_s": 4.8, "share_wall": 0.0069,
            }
        ],
        "calls": [{"name": "cuLaunchKernel", **spent}],
        "annotations": [{"name": text, **spent, "device_ms": 0.0}],
        "modules": [{"name": "jit_train_step", "share_device": 0.98, **spent}],
    }  # fmt: skip


def summary(text: str = "load_data", **changes: Any) -> dict[str, Any]:
    steps = {
        "name": text, "count": 6, "median_ms": STEP_MS, "min_ms": 31.4, "max_ms": 33.8,
        "durations_ms": [33.8, 31.9, 31.4, 31.9, 31.8, 32.1],
        "slowest": [{"number": 0, "duration_ms": 33.8, "why": f"{text} took 2.1 ms longer."}],
        "parts": {"compute_ms": 0.38, "copy_ms": 0.22, "collective_ms": 0.0, "host_ms": 29.9, "idle_ms": 1.4},
    }  # fmt: skip
    return {
        "headline": {"label": "median step", "value": STEP_MS, "unit": "ms"},
        "wall_ms": 192.7,
        "steps": steps,
        "timeline": timeline(text),
        "tables": tables(text),
        "tables_left_out": {"kernels": 4, "calls": 100},
        **changes,
    }
