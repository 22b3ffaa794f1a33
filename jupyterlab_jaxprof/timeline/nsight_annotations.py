"""What the names of ranges say: XLA's own, which tell the operation and the module, and the user's."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass

#: Domains of ranges that libraries push themselves; all others are the user's.
LIBRARY_DOMAINS = re.compile(r"TSL|XLA|NCCL|NVSHMEM|CCCL|UCX|(?:lib)?cu[A-Z]\w*", re.ASCII)
_XLA = re.compile(r"(\w[\w:]*):#(.*)#", re.DOTALL)
#: The fields that XLA writes; a value may hold commas of its own.
_FIELD = re.compile(
    r"(?:^|,)(name|hlo_op|unique_hlo_op_id|hlo_module|program_id|prefix|module|func|global|local|process"
    r"|partition)="
)


@dataclass(frozen=True)
class XlaName:
    """A range of XLA, `Thunk:#name=jit(f)/mul,hlo_op=loop_multiply_fusion#`: its kind and fields."""

    kind: str
    fields: Mapping[str, str]

    @property
    def detail(self) -> str:
        """The fields as one text."""
        return ",".join(f"{name}={value}" for name, value in self.fields.items())


def parse(text: str) -> XlaName | None:
    """Take apart the name of a range of XLA; None for other names."""
    match = _XLA.fullmatch(text)
    if match is None:
        return None
    content = html.unescape(match.group(2))
    places = list(_FIELD.finditer(content))
    ends = [place.start() for place in places[1:]] + [len(content)]
    fields = {place.group(1): content[place.end() : end] for place, end in zip(places, ends, strict=False)}
    return XlaName(match.group(1), fields)


_LAST_NUMBER = re.compile(r"(\d{1,15})[\])]?\s*\Z")
_SEPARATORS = "_-=:#.,/[("


def numbered(text: str) -> tuple[str, int] | None:
    """Split a name that ends with a number: `train_step_3`, `step=3`, `train 3`; None for all others."""
    match = _LAST_NUMBER.search(text)
    if match is None:
        return None
    # Not by a pattern: on a name of a hundred thousand blanks it would try each beginning with each end.
    end = match.start()
    while end and (text[end - 1] in _SEPARATORS or text[end - 1].isspace()):
        end -= 1
    name = text[:end].strip()
    return (name, int(match.group(1))) if name else None
