"""Rows that have the same values, numbered; and the largest of many values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def dense(*columns: NDArray[np.integer]) -> NDArray[np.int64]:
    """Number the different combinations of several columns from 0; at least one row."""
    combined = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        part = _compact(column.astype(np.int64))
        combined = _compact(combined * (int(part.max()) + 1) + part)
    return combined


def _compact(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number the different values from 0; by a table where it is small, since sorting takes far longer."""
    values = values - values.min()
    if int(values.max()) < 4 * len(values) + 1_000_000:
        seen = np.zeros(int(values.max()) + 1, dtype=np.bool_)
        seen[values] = True
        return (np.cumsum(seen) - 1)[values]
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def largest(values: NDArray[np.floating], count: int) -> NDArray[np.intp]:
    """Give the places of the largest values, the largest first; of equal ones the first. Doesn't sort all."""
    chosen = np.arange(len(values))
    if len(values) > count:
        least = np.partition(values, len(values) - count)[len(values) - count]
        chosen = np.flatnonzero(values >= least)
    return chosen[np.argsort(-values[chosen], kind="stable")][:count]
