"""The store on disk, and the record of one capture. Standard library and jupyter_core only."""

from .capture import Capture
from .draft import Draft, drafts
from .errors import InvalidValue, StoreError, UnknownCapture, UnreadableCapture
from .names import is_id, session_slug
from .page import OverLimit, Page, Row
from .progress import Origin, Progress, Running
from .record import SCHEMA, CaptureFile, DamagedRecord, NewerRecord, Record, RecordError, Status
from .store import Store
from .workspace import Workspace

__all__ = [
    "SCHEMA",
    "Capture",
    "CaptureFile",
    "DamagedRecord",
    "Draft",
    "InvalidValue",
    "NewerRecord",
    "Origin",
    "OverLimit",
    "Page",
    "Progress",
    "Record",
    "RecordError",
    "Row",
    "Running",
    "Status",
    "Store",
    "StoreError",
    "UnknownCapture",
    "UnreadableCapture",
    "Workspace",
    "drafts",
    "is_id",
    "session_slug",
]
