"""In the child process: the notebook's variables made again, in a `__main__` of their own.

Imports the standard library and what the variables themselves need; IPython only for a body with magics.
"""

from __future__ import annotations

import json
import linecache
import pickle
import sys
import types
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupyterlab_jaxprof.nsight.carry.modules import differences
from jupyterlab_jaxprof.nsight.carry.rebuild import HERE, let_go, numbered
from jupyterlab_jaxprof.nsight.carry.refusal import RestoreError
from jupyterlab_jaxprof.nsight.carry.surroundings import (
    set_last_of_all,
    set_settings_with_devices,
    set_surroundings,
    transfers_allowed,
)

_MISSING = object()


@dataclass
class Restored:
    """The namespace to run the body in, and sentences on what is not as in the notebook."""

    namespace: dict[str, Any]
    notices: list[str] = field(default_factory=lambda: [])


def restore(folder: Path) -> Restored:
    """Make a notebook's variables again from the folder of a plan; `__main__` is the notebook's from now on.

    The folder may be deleted once the body has run: large arrays are read from it as they are used.
    Raises RestoreError, a sentence that names the variable.
    """
    said = json.loads((folder / "steps.json").read_text())
    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main
    restored = Restored(main.__dict__)
    HERE.folder, HERE.namespace, HERE.definitions, HERE.referents = folder, main.__dict__, {}, {}
    for filename, text in said["files"].items():
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    _add_ipython(main, said)
    with (folder / "pickles").open("rb") as stream, ExitStack() as stack:
        load = pickle.Unpickler(stream).load
        for step in said["steps"]:
            try:
                _STEPS[step["do"]](step, load, restored)
                if step["do"] == "settings":
                    stack.enter_context(transfers_allowed())
            except RestoreError as error:
                raise RestoreError(
                    f"{_what(step)} can't be made in the child process, since {error}."
                ) from error
            except Exception as error:
                raise RestoreError(
                    f"{_what(step)} can't be made in the child process: {type(error).__name__}: {error}"
                ) from error
        del load  # it has held all that it has made
    let_go()
    return restored


def _surroundings(step: dict[str, Any], load: Callable[[], Any], restored: Restored) -> None:
    restored.notices += set_surroundings(load())


def _settings(step: dict[str, Any], load: Callable[[], Any], restored: Restored) -> None:
    restored.notices += set_settings_with_devices(load())


def _variable(step: dict[str, Any], load: Callable[[], Any], restored: Restored) -> None:
    restored.namespace[step["name"]] = load()


def _define(step: dict[str, Any], load: Callable[[], Any], restored: Restored) -> None:
    name, names = step["name"], restored.namespace
    before = names.get(name, _MISSING)
    exec(compile(step["text"], step["filename"], "exec", step["flags"], dont_inherit=True), names)
    HERE.definitions[step["number"]] = names.pop(name)
    if before is not _MISSING:
        names[name] = before


def _class(step: dict[str, Any], load: Callable[[], Any], restored: Restored) -> None:
    cls, attributes, defaults, registration = load()
    for name, value in attributes.items():
        if vars(cls).get(name, _MISSING) is not value:
            type.__setattr__(cls, name, value)
    for name, (by_position, by_name) in defaults.items():
        function = vars(cls)[name]
        function = getattr(function, "__func__", function)
        function.__defaults__, function.__kwdefaults__ = by_position, by_name
    if registration is not None:
        from jupyterlab_jaxprof.nsight.carry.internals import register

        register(cls, registration)


def _run(step: dict[str, Any], load: Callable[[], Any], restored: Restored) -> None:
    text, filename = step["text"], step["filename"]
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    exec(compile(text, filename, "exec", dont_inherit=True), restored.namespace)


def _last(step: dict[str, Any], load: Callable[[], Any], restored: Restored) -> None:
    set_last_of_all(load())


def _by_value(step: dict[str, Any], load: Callable[[], Any], restored: Restored) -> None:
    HERE.definitions |= numbered(load())


def _modules(step: dict[str, Any], load: Callable[[], Any], restored: Restored) -> None:
    restored.notices += differences(step["were"])


_STEPS = {
    "by-value": _by_value,
    "modules": _modules,
    "last": _last,
    "surroundings": _surroundings,
    "settings": _settings,
    "variable": _variable,
    "define": _define,
    "class": _class,
    "run": _run,
}


def _what(step: dict[str, Any]) -> str:
    match step["do"]:
        case "variable":
            return f"{step['name']} ({step['type']})"
        case "define" | "class":
            return f"class {step['name']}"
        case "run":
            return step["filename"].strip("<>")
        case _:
            return "the notebook's settings"


def _add_ipython(main: types.ModuleType, said: dict[str, Any]) -> None:
    if said["needs_ipython"]:
        from IPython.core.interactiveshell import InteractiveShell

        if not InteractiveShell.initialized():  # else the process has a shell of its own kind
            from traitlets.config import Config

            config = Config()
            config.HistoryManager.enabled = False
            InteractiveShell.instance(config=config, user_module=main)
    elif said["needs_display"]:
        from IPython.display import display

        main.__dict__["display"] = display
