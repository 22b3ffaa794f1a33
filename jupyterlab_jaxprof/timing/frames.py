"""Results as tables of pandas, which need not be installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def data_frame(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Give rows as a pandas DataFrame; raises ImportError with a sentence when pandas is not installed."""
    try:
        import pandas as pd  # pyright: ignore[reportMissingImports] - optional
    except ImportError as error:
        raise ImportError(
            "pandas is not installed in this environment. Install it (pip install pandas), or use to_dict()."
        ) from error
    return pd.DataFrame([dict(row) for row in rows])
