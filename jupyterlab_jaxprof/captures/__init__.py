"""The store on disk, and the record of one capture. Standard library and jupyter_core only."""

from .capture import Capture
from .draft import Draft
from .errors import InvalidValue, StoreError, UnknownCapture, UnreadableCapture
from .names import is_id, session_slug
from .page import OverLimit, Page, Row
from .record import SCHEMA, CaptureFile, DamagedRecord, NewerRecord, Record, RecordError, Status
from .store import Store

__all__ = [
    "SCHEMA",
    "Capture",
    "CaptureFile",
    "DamagedRecord",
    "Draft",
    "InvalidValue",
    "NewerRecord",
    "OverLimit",
    "Page",
    "Record",
    "RecordError",
    "Row",
    "Status",
    "Store",
    "StoreError",
    "UnknownCapture",
    "UnreadableCapture",
    "is_id",
    "session_slug",
]
