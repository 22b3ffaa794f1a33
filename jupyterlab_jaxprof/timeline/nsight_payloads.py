"""The source of each HLO operation, from the payloads of XLA's ranges.

A payload of the schema `XlaInstruction` is three numbers of texts: the operation, its source, what it calls.
nsys puts before it 32 bytes: how many payloads there are, the schema, the size, and where this one begins.

nsys 2025.3 resolves the source twice: the number of its text in the report (1, 2, ...) is then taken for the
handle of a registered string, and what is told is the text of that one. `%%nsys` registers strings that name
their own handles before all others, from which the number can be told again.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping

from jupyterlab_jaxprof.environment.nsys import PADDING

from .figures import read_number, whole_number
from .nsight_database import Database
from .nsight_hlo import is_source

_PADDING = re.compile(rf"{PADDING} (\d+)")
_NUMBER = re.compile(r"\bunique_hlo_op_id=(\d+)")
_SCHEMA = "XlaInstruction"
_PAYLOAD = struct.Struct("<7Q")
_HEADER_BYTES, _PAYLOAD_BYTES = 32, 24


def read_sources(database: Database, strings: Mapping[int, str]) -> dict[str, str]:
    """Give the text of the source of each operation that has one, by its number (`unique_hlo_op_id`)."""
    table, schemas = database.table("NVTX_EVENTS"), database.table("NVTX_PAYLOAD_SCHEMAS")
    if table is None or schemas is None:
        return {}
    if not database.has(table, "textId", "binaryData") or not database.has(schemas, "schemaId", "name"):
        return {}
    own = {
        whole_number(row[0])
        for row in database.rows(f'select schemaId, name from "{schemas}"')
        if row[1] == _SCHEMA
    }
    query = f'select textId, min(binaryData) from "{table}" where binaryData is not null group by textId'
    found: dict[str, str] = {}
    for text_id, payload in database.rows(query):
        number = _NUMBER.search(strings.get(whole_number(text_id), ""))
        source = _source(payload, own, strings) if number is not None else ""
        if number is not None and source:
            found[number.group(1)] = source
    return found


def _source(payload: object, schemas: set[int], strings: Mapping[int, str]) -> str:
    content = _content(payload)
    if len(content) != _PAYLOAD.size:
        return ""
    _count, schema, size, begin, _operation, source, _called = _PAYLOAD.unpack(content)
    if schema not in schemas or (size, begin) != (_PAYLOAD_BYTES, _HEADER_BYTES):
        return ""
    text = strings.get(source, "")
    if padding := _PADDING.fullmatch(text):
        text = strings.get(read_number(padding.group(1)), "")
    return text if is_source(text) else ""


def _content(payload: object) -> bytes:
    """Give the bytes of a payload, which some versions export as text in hexadecimal."""
    if isinstance(payload, bytes):
        return payload
    try:
        return bytes.fromhex(str(payload))
    except ValueError:
        return b""
