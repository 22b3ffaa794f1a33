"""Steps: what they are called, and the numbers of them that a record keeps."""

from __future__ import annotations

import ast
import builtins
import statistics
from collections.abc import Sequence
from typing import Any

DEFAULT_NAME = "step"
_MAX_DURATIONS = 10_000


def step_name(body: str) -> str:
    """Name the steps after the one function that the body calls, where there is just one statement; else
    'step'.

    `params, loss = train_step(params, batch)` makes steps named `train_step`; waiting for the result, by
    `.block_until_ready()` or `jax.block_until_ready(...)`, doesn't hide the function.
    """
    try:
        statements = ast.parse(body).body
    except SyntaxError:  # IPython's own syntax: magics, shell commands
        return DEFAULT_NAME
    if len(statements) != 1 or not isinstance(
        statements[0], ast.Expr | ast.Assign | ast.AnnAssign | ast.AugAssign
    ):
        return DEFAULT_NAME
    name = _called(statements[0].value)
    return DEFAULT_NAME if not name or hasattr(builtins, name) else name


def _called(node: ast.expr | None) -> str:
    if isinstance(node, ast.Await):
        return _called(node.value)
    if not isinstance(node, ast.Call):
        return ""
    function = node.func
    if isinstance(function, ast.Attribute) and function.attr == "block_until_ready":
        return _called(node.args[0] if node.args else function.value)
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def summarize(name: str, durations_ms: Sequence[float]) -> dict[str, Any]:
    """Give the record's `summary.steps` for durations in the order of the steps (at most 10,000 are kept)."""
    quartiles_ms = list(durations_ms[:1]) * 2
    if len(durations_ms) > 1:
        lower_ms, _, upper_ms = statistics.quantiles(durations_ms, n=4, method="inclusive")
        quartiles_ms = [lower_ms, upper_ms]
    return {
        "name": name,
        "count": len(durations_ms),
        "median_ms": statistics.median(durations_ms),
        "min_ms": min(durations_ms),
        "max_ms": max(durations_ms),
        "quartiles_ms": quartiles_ms,
        "durations_ms": [round(duration_ms, 6) for duration_ms in durations_ms[:_MAX_DURATIONS]],
    }
