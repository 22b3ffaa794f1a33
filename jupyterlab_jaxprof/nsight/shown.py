"""What the body displays, sent to the notebook by a shell of IPython's that the program has of its own.

IPython is imported only if something needs it, and its shell is made the moment it has been imported: that is
when libraries look for one (matplotlib's inline backend registers itself with it).
"""

from __future__ import annotations

import base64
import importlib.util
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

#: A widget lives in a kernel, which this process has none of.
_WIDGET = "application/vnd.jupyter.widget-view+json"
_INLINE = "matplotlib_inline.backend_inline"
#: Backends of matplotlib's that `%matplotlib` may select where there is neither a window nor a widget.
_WITHOUT_WINDOW = ("agg", "cairo", "inline", "pdf", "pgf", "ps", "svg", "template")
#: How long to wait for whoever shows it. It keeps text and displays in order, and only that.
_PATIENCE_S = 10.0


class Shown:
    """Tells of what is displayed: in full, or of nothing while it is `muted`."""

    def __init__(self, tell: Callable[..., None]) -> None:
        """`tell` is given the name of an event and its values."""
        self._tell = tell
        self._taken = threading.Semaphore(0)
        self._unseen: set[str] = set()
        self.muted = False
        self.has_widgets = False

    def taken(self) -> None:
        """Note that what was displayed last has been taken."""
        self._taken.release()

    def publish(
        self, data: Mapping[str, Any], metadata: Mapping[str, Any], transient: Mapping[str, Any], update: bool
    ) -> None:
        """Send a bundle. What was displayed while nothing was shown appears at its first update."""
        display_id = transient.get("display_id")
        if self.muted:
            self._unseen |= {display_id} if display_id else set()
            return
        if display_id in self._unseen:
            self._unseen.remove(display_id)
            update = False
        self.has_widgets |= _WIDGET in data
        kept = {kind: _plain(value) for kind, value in data.items() if kind != _WIDGET}
        shown = {"data": kept, "metadata": _plain(metadata), "transient": dict(transient), "update": update}
        self._send("display", shown=shown)

    def clear(self, wait: bool) -> None:
        """Clear the output."""
        if not self.muted:
            self._send("clear", wait=bool(wait))

    def value(self, value: Any) -> None:
        """Display the value of the cell, as a notebook does."""
        from IPython.display import display

        display(value)

    def flush_figures(self) -> None:
        """Display matplotlib's figures that were drawn, as a notebook does at a cell's end."""
        if _INLINE in sys.modules:
            sys.modules[_INLINE].flush_figures()

    def _send(self, event: str, **said: Any) -> None:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()  # what was printed before comes before
        self._tell(event, **said)
        self._taken.acquire(timeout=_PATIENCE_S)


def _plain(value: Any) -> Any:
    """Give a value as JSON has it, pictures as the messages of Jupyter have them."""
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case Mapping():
            return {str(key): _plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
        case None | bool() | int() | float() | str():
            return value
        case _:
            return str(value)


def show_through(shown: Shown, inline: Mapping[str, Any]) -> None:
    """From now on have a shell that displays through `shown` as soon as IPython is imported.

    `inline` are settings of matplotlib's inline backend.
    """
    sys.meta_path.insert(0, _AfterImport("IPython", lambda: _make_shell(shown, inline)))


def _make_shell(shown: Shown, inline: Mapping[str, Any]) -> None:
    from IPython.core.displaypub import DisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    class Publisher(DisplayPublisher):
        def publish(
            self,
            data: dict[str, Any],
            metadata: dict[str, Any] | None = None,
            source: Any = None,
            *,
            transient: dict[str, Any] | None = None,
            update: bool = False,
            **others: Any,
        ) -> None:
            shown.publish(data, metadata or {}, transient or {}, update)

        def clear_output(self, wait: bool = False) -> None:
            shown.clear(wait)

    class Shell(InteractiveShell):
        """A shell without a window and without a keyboard."""

        def enable_gui(self, gui: str | None = None) -> None:
            """Do nothing: no event loop runs between the cells of this process."""

        def enable_matplotlib(self, gui: str | None = None) -> tuple[Any, Any]:
            """Draw into the notebook where a window is asked for."""
            return super().enable_matplotlib(gui if gui in _WITHOUT_WINDOW else "inline")

        def ask_exit(self) -> None:
            """End the cell: `exit` and `quit` without an argument."""
            raise SystemExit

    config = Config()
    config.HistoryManager.enabled = False
    config.InlineBackend.update(inline)
    main = sys.modules["__main__"]
    names = dict(vars(main))
    shell = Shell.instance(config=config, user_module=main)
    shell.display_pub = Publisher(parent=shell, shell=shell)
    vars(main).update(names)  # the notebook's own variables, however they are named


class _AfterImport(MetaPathFinder):
    """Does something once a module has been imported."""

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self._name = name
        self._then = then

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find that module as it is found without this, and have its loader do more."""
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_more(module: ModuleType) -> None:
                execute(module)
                self._then()

            spec.loader.exec_module = execute_and_more
        return spec
