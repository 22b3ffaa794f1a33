"""Figures that need a GPU, as they were recorded: a run on another machine can't repeat them."""

MACHINE = "an NVIDIA H200 with nsys 2025.3.1"
DATE = "30 November 2026"

RECORDED = (
    (
        "an operation of microseconds under `%%jaxtime`, against a loop by hand",
        "1.00 (-0.11 us)",
        "1.10, +0.5 us",
    ),
    ("a 700x700 product, against a loop by hand", "1.006", "1.03"),
    ("`%jaxmem --watch`, of a processor", "0.72 %", "1 %"),
    ("one run under `%%jaxtime`, 1,000 arrays alive", "+1.5 to +2.7 ms: missed", "+1 ms"),
    (
        "cached median of a device-bound step, against the device's time of the same runs",
        "24.8 ms against 23.7 to 24.8 ms: within 3 % in 2 of 5 runs",
        "never below, within 3 %",
    ),
    ("`%%nsys` report of an MLP's training step, 5 steps", "138 to 160 kB", "1 MB"),
    ("the same with `--gpu-metrics`", "551 kB", ""),
    ("compiling in a second run of `%%nsys`", "0.2 s after 3.8 s: 5 %", "50 %"),
    (
        "totals of kernels, copies and calls, against `nsys stats`",
        "equal to the nanosecond in 13 reports",
        "equal",
    ),
    ("one interrupt of `%%nsys`: its report after", "3.8 s", ""),
)
"""Figure, what was recorded, what was aimed at."""
