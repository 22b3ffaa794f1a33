"""The way back: what the body has left under some names in the child process, for the notebook.

Values travel as they came: arrays as files, the rest in one stream of pickles, instances of the notebook's
classes as instances of what these are there.
"""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from jupyterlab_jaxprof.nsight.carry.arrays import Arrays
from jupyterlab_jaxprof.nsight.carry.definitions import Definitions
from jupyterlab_jaxprof.nsight.carry.pickler import Pickler, why_not
from jupyterlab_jaxprof.nsight.carry.rebuild import HERE
from jupyterlab_jaxprof.nsight.carry.refusal import CannotCarry
from jupyterlab_jaxprof.nsight.carry.sources import Sources


def write_back(folder: Path, namespace: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """In the child process: write the values of some names into a new folder.

    Gives a sentence for each name that the body has not bound, or whose value can't be sent back.
    """
    folder.mkdir(mode=0o700, parents=True)
    known = _Known(namespace)
    stream, arrays = io.BytesIO(), Arrays()
    sent, notices = list[str](), list[str]()
    for name in names:
        if name not in namespace:
            notices.append(f"{name} does not come back: the cell has not bound it.")
            continue
        try:
            Pickler(io.BytesIO(), namespace, Arrays(), known, {}).dump(namespace[name])
        except Exception as error:  # noqa: BLE001 - objects of any library fail in any way
            kind = type(namespace[name]).__qualname__
            notices.append(f"{name} ({kind}) does not come back, since {why_not(error)}.")
        else:
            sent.append(name)
    Pickler(stream, namespace, arrays, known, {}).dump({name: namespace[name] for name in sent})
    arrays.write(folder, lambda size_bytes: None)
    (folder / "pickles").write_bytes(stream.getvalue())
    (folder / "names.json").write_text(json.dumps(sent))
    return notices


def read_back(folder: Path, namespace: dict[str, Any], classes: Mapping[int, type]) -> dict[str, Any]:
    """In the kernel: read what `write_back` wrote; `classes` are the plan's.

    Large arrays are mapped into memory: the folder may be deleted afterwards, but must not be written to.
    """
    before = replace(HERE)
    HERE.folder, HERE.namespace, HERE.definitions = folder, namespace, dict(classes)
    try:
        return pickle.loads((folder / "pickles").read_bytes())
    finally:
        HERE.folder, HERE.namespace, HERE.definitions = before.folder, before.namespace, before.definitions


class _Known(Definitions):
    """The notebook's classes that came along; one that the body itself defined can't go back."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        super().__init__(namespace, Sources())
        self._known = {cls: number for number, cls in HERE.definitions.items()}

    def number(self, cls: type) -> int | None:
        """Give a class's number. Raises CannotCarry for one that the notebook does not have."""
        if cls in self._known:
            return self._known[cls]
        raise CannotCarry(f"class {cls.__name__} was defined by the cell itself")
