"""NVTX ranges for whatever tool is attached to this process, by its own interface alone.

The Python package nvtx asks newer functions of the tool (nvtxDomainIsEnabled, since 0.2.12), which nsys up to
2023.4 lacks, and drops every range then without a word. Here the tool's library is initialised as NVIDIA's
header nvtx3 does it (InitializeInjectionNvtx2; the tables and their numbers are those of nvtxTypes.h), which
every nsys since 2022 knows. Names are registered strings, so that a capture range of nsys may begin at one
without NSYS_NVTX_PROFILER_REGISTER_ONLY=0.
"""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from typing import Any

from jupyterlab_jaxprof.environment.nsys import PADDING

_LIBRARY = "NVTX_INJECTION64_PATH"
_VERSION = 3
#: The tables of functions that a tool fills: the number of each, and how many functions it has.
_TABLE_SIZES = {1: 16, 2: 9, 3: 15, 4: 7, 5: 16, 6: 7}
_CORE2 = 5
_PUSH, _POP, _REGISTER, _CREATE = 4, 5, 10, 12
_CALLBACKS, _VERSION_INFO = 1, 3
_REGISTERED = 3

_GetTable = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_uint)
)
_SetVersion = ctypes.CFUNCTYPE(None, ctypes.c_uint32)
_GetExport = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)


class _Callbacks(ctypes.Structure):
    _fields_ = (("size", ctypes.c_size_t), ("get_table", _GetTable))


class _VersionInfo(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("version", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("set_version", _SetVersion),
    )


class _Attributes(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint16),
        ("size", ctypes.c_uint16),
        ("category", ctypes.c_uint32),
        ("color_type", ctypes.c_int32),
        ("color", ctypes.c_uint32),
        ("payload_type", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("payload", ctypes.c_uint64),
        ("message_type", ctypes.c_int32),
        ("message", ctypes.c_void_p),
    )


def package_version() -> str:
    """Give the version of the user's nvtx package; empty when nothing has imported it."""
    if "nvtx" not in sys.modules:
        return ""
    from importlib import metadata

    with suppress(metadata.PackageNotFoundError):
        return metadata.version("nvtx")
    return ""


class NotAttached(Exception):
    """No tool records NVTX ranges in this process; the text is a clause that says why."""


class _Tool:
    """The functions of the attached tool. All that it was given must live as long as the process."""

    def __init__(self) -> None:
        path = os.environ.get(_LIBRARY)
        if not path:
            raise NotAttached(f"{_LIBRARY} is not set")
        self._slots = {number: (ctypes.c_void_p * size)() for number, size in _TABLE_SIZES.items()}
        self._tables = {number: _table(slots) for number, slots in self._slots.items()}
        self._callbacks = _Callbacks(ctypes.sizeof(_Callbacks), _GetTable(self._get_table))
        self._version = _VersionInfo(ctypes.sizeof(_VersionInfo), _VERSION, 0, _SetVersion(_take_version))
        self._get_export = _GetExport(self._export)
        try:
            initialize: Any = ctypes.CDLL(path).InitializeInjectionNvtx2
        except (OSError, AttributeError) as error:
            raise NotAttached(f"{path} can't be loaded ({error})") from error
        initialize.argtypes, initialize.restype = [_GetExport], ctypes.c_int
        if not initialize(self._get_export):
            raise NotAttached(f"{path} refuses to be initialised")
        self.create = self._function(_CREATE, ctypes.c_void_p, ctypes.c_char_p)
        self.register = self._function(_REGISTER, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
        self.push = self._function(_PUSH, ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_Attributes))
        self.pop = self._function(_POP, ctypes.c_int, ctypes.c_void_p)

    def _get_table(self, number: int, table: Any, size: Any) -> int:
        if number not in self._tables:
            return 0
        table[0] = ctypes.addressof(self._tables[number])
        if size:
            size[0] = _TABLE_SIZES[number]
        return 1

    def _export(self, number: int) -> int | None:
        found = {_CALLBACKS: self._callbacks, _VERSION_INFO: self._version}.get(number)
        return None if found is None else ctypes.addressof(found)

    def _function(self, number: int, result: Any, *arguments: Any) -> Any:
        address = self._slots[_CORE2][number]
        if not address:
            raise NotAttached("the tool does not record ranges of NVTX")
        return ctypes.CFUNCTYPE(result, *arguments)(address)


def _take_version(version: int) -> None:
    """Take the tool's version, which nobody needs."""


def _table(slots: Any) -> Any:
    """Make the table that leads the tool to the slots; its first entry stands for none, a null ends it."""
    places = [ctypes.addressof(slots) + index * ctypes.sizeof(ctypes.c_void_p) for index in range(len(slots))]
    return (ctypes.c_void_p * (len(slots) + 1))(None, *places[1:], None)


class Domain:
    """A domain of NVTX, whose ranges nest. Raises NotAttached where no tool is there to record them."""

    def __init__(self, name: str) -> None:
        self._tool = _Tool()
        self._domain = self._tool.create(name.encode())
        self._known: dict[str, _Attributes] = {}
        self._spare = 0

    def push(self, name: str) -> None:
        """Begin a range."""
        attributes = self._known.get(name)
        if attributes is None:
            message = self._tool.register(self._domain, name.encode())
            size = ctypes.sizeof(_Attributes)
            attributes = _Attributes(_VERSION, size, message_type=_REGISTERED, message=message)
            self._known[name] = attributes
        self._tool.push(self._domain, ctypes.byref(attributes))

    def pad(self, count: int) -> None:
        """Register strings before XLA registers its own, each named after its handle.

        The importer of nsys 2025.3 gives up all events of a process at the first payload that it can't
        resolve. XLA's ranges hold in theirs the handles of strings (the operation, its source lines, what it
        calls), and the importer resolves one of the three twice: the second time it takes for a handle what
        is already the number of a text in the report. Such numbers begin at 1, as handles do. So all is well
        where the handles up to there are in use; and where a handle is known by its name, what it stood for
        can be told (see timeline/nsight_payloads.py).
        """
        handle = self._tool.register(self._domain, PADDING.encode()) or 0
        for number in range(handle + 1, handle + count):
            if self._tool.register(self._domain, f"{PADDING} {number}".encode()) != number:
                return  # an nsys whose handles are no small numbers

    def pad_again(self, count: int) -> None:
        """Register more, after XLA has registered some of its own while nsys records."""
        for number in range(self._spare, self._spare + count):
            self._tool.register(self._domain, f"{PADDING}-spare {number}".encode())
        self._spare += count

    def pop(self) -> None:
        """End the range that was begun last."""
        self._tool.pop(self._domain)
