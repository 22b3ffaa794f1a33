"""From a name or a path to what a capture, a trace or an Nsight report says; and captures compared.

For the magics and for the terminal alike. Importing this imports neither numpy nor jax.
"""

from __future__ import annotations

from . import columns, compared
from .around import differences
from .compare import Comparison, compare
from .doctor import CheckUp, check_up, doctor
from .examine import Examined, devices_of, examine, headline, pattern_ids
from .find import ReportError, find
from .importing import DuplicateError, import_path
from .pages import as_text, page_of
from .report import Report, report
from .side_by_side import SideBySide, side_by_side
from .unseen import not_seen, unseen

__all__ = [
    "CheckUp",
    "Comparison",
    "DuplicateError",
    "Examined",
    "Report",
    "ReportError",
    "SideBySide",
    "as_text",
    "check_up",
    "columns",
    "compare",
    "compared",
    "devices_of",
    "differences",
    "doctor",
    "examine",
    "find",
    "headline",
    "import_path",
    "not_seen",
    "page_of",
    "pattern_ids",
    "report",
    "side_by_side",
    "unseen",
]
