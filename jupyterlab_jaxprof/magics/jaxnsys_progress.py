"""How far a cell under nsys is, each phase with the time it took; and what the cell prints and displays."""

from __future__ import annotations

import contextlib
import re
import shutil
import sys
import time
from collections.abc import Generator, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from jupyterlab_jaxprof.nsight.progress import Phase

from .display import SLOW_DISK, Display

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from jupyterlab_jaxprof.captures import Draft

_STOP = "Interrupt once to end the recording and have the report so far, twice to give it up."
_LEAST_S = 0.25
_FIGURES = re.compile(r"[\d,]+")
_MARKS = {"done": "✓", "now": "▸", "later": "○"}


class Progress:
    """Shows the phases: in a notebook where the card comes afterwards, in a terminal on the line below all.

    In a log or a pipe each step of the work is a line.
    """

    def __init__(self, shell: InteractiveShell, display: Display) -> None:
        self._publisher = shell.display_pub
        self._in_notebook = getattr(shell, "kernel", None) is not None
        self._display = display
        self._phase = Phase.START
        self._began_s = time.monotonic()
        self._took_s: dict[Phase, float] = {}
        self._doing = ""
        self._part: float | None = None
        self._shown, self._shown_s = "", 0.0
        self._at_line_start = True
        self._cleared_later = False

    def follow(self, draft: Draft, magic: str) -> None:
        """Let the sidebar show how `draft` goes, too."""
        self._display.follow(draft, self._doing, magic=magic)
        draft.on_slow_disk = lambda: self.tell(SLOW_DISK)

    def enter(self, phase: Phase, doing: str) -> None:
        """Begin a phase, with what is done first in it."""
        now_s = time.monotonic()
        self._took_s[self._phase] = now_s - self._began_s
        self._phase, self._began_s = phase, now_s
        self.tell(doing)

    def tell(self, doing: str, part: float | None = None) -> None:
        """Tell what is done now, and how much of it (0 to 1) where that is known."""
        doing = doing.removesuffix(" ...")
        news = doing != self._doing
        if not self._in_notebook and not sys.stderr.isatty() and _kind(doing) != _kind(self._doing):
            sys.stderr.write(f"{doing} ...\n")
        if _kind(doing) != _kind(self._doing):  # not each figure: something may be recorded meanwhile
            self._display.tell(doing)
        self._doing, self._part = doing, part
        self._show(at_once=news)

    def beat(self) -> None:
        """Show that time passes."""
        self._show(at_once=False)

    def write(self, stream: str, text: str) -> None:
        """Print what the body printed."""
        self.clear_line()
        target = sys.stderr if stream == "stderr" else sys.stdout
        target.write(text)
        target.flush()
        self._at_line_start = text.endswith("\n")
        self._body_showed()

    def publish(self, shown: Mapping[str, Any]) -> None:
        """Display what the body displayed."""
        self.clear_line()
        self._publisher.publish(**shown)
        if not shown["update"]:
            self._body_showed()

    def clear(self, *, wait: bool) -> None:
        """Clear the output as the body did, which takes the progress away too."""
        self.clear_line()
        self._publisher.clear_output(wait=wait)
        self._cleared_later = wait
        if not wait:
            self._display.forget()

    def end(self) -> None:
        """Leave nothing in a terminal but how long each phase took."""
        self._took_s[self._phase] = time.monotonic() - self._began_s
        if not self._in_notebook:
            self.clear_line()
            took = ", ".join(f"{phase} {_time(took_s)}" for phase, took_s in self._took_s.items())
            sys.stderr.write(f"{took}\n")

    @contextlib.contextmanager
    def until_it_runs(self) -> Generator[None]:
        """Leave nothing of it behind where an error within tells why nothing runs."""
        __tracebackhide__ = True
        try:
            yield
        except BaseException:
            self.clear_line()
            self._display.replace("Nothing was recorded.")
            raise

    def _body_showed(self) -> None:
        """Show the progress anew, should the body have cleared the output when it showed something."""
        if self._cleared_later:
            self._cleared_later = False
            self._display.forget()

    def _show(self, *, at_once: bool) -> None:
        now_s = time.monotonic()
        if not at_once and now_s - self._shown_s < _LEAST_S:
            return
        if self._in_notebook:
            sentence = self._sentence(now_s)
            if sentence != self._shown:
                self._display.show({"text/plain": sentence, "text/html": self._html(now_s)})
        elif sys.stderr.isatty() and self._at_line_start:
            sentence = f"{self._phase}: {self._now(now_s)}"
            if sentence != self._shown:
                width = shutil.get_terminal_size().columns - 1  # a second line would stay
                sys.stderr.write(f"\r\x1b[K{sentence[:width]}")
                sys.stderr.flush()
        else:
            return
        self._shown, self._shown_s = sentence, now_s

    def clear_line(self) -> None:
        """Take the line away, for what is printed next."""
        if self._shown and not self._in_notebook:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._shown = ""

    def _now(self, now_s: float) -> str:
        percent = f" {self._part:.0%}" if self._part is not None else ""
        return f"{self._doing}{percent}, {_time(now_s - self._began_s)}"

    def _sentence(self, now_s: float) -> str:
        took = [f"{phase} {_time(took_s)}" for phase, took_s in self._took_s.items()]
        return ", ".join([*took, f"{self._phase}: {self._now(now_s)}"])

    def _html(self, now_s: float) -> str:
        order = list(Phase)
        ahead = order[order.index(self._phase) :]
        items = [self._item(phase, now_s) for phase in order if phase in self._took_s or phase in ahead]
        return (
            '<div style="font-family:var(--jp-ui-font-family,sans-serif);font-size:13px;'
            'color:var(--jp-content-font-color1,inherit)">'
            '<ol aria-label="Progress" style="display:flex;flex-wrap:wrap;gap:4px 18px;list-style:none;'
            f'margin:0;padding:0">{"".join(items)}</ol>'
            f'<div style="margin-top:4px;color:var(--jp-content-font-color2,inherit)">{_STOP}</div></div>'
        )

    def _item(self, phase: Phase, now_s: float) -> str:
        if phase is self._phase:
            text, state = f"<b>{phase}</b> {escape(self._now(now_s))}", "now"
        elif phase in self._took_s:
            text, state = f"{phase} {_time(self._took_s[phase])}", "done"
        else:
            text, state = str(phase), "later"
        current = ' aria-current="step"' if state == "now" else ""
        dim = ";color:var(--jp-content-font-color2,inherit)" if state == "later" else ""
        return (
            f'<li{current} style="white-space:nowrap{dim}"><span aria-hidden="true">{_MARKS[state]}</span> '
            f"{text}</li>"
        )


def _kind(doing: str) -> str:
    """What is done, however far it is: a log has no line for each step."""
    return _FIGURES.sub("", doing)


def _time(took_s: float) -> str:
    return f"{took_s:.1f} s" if took_s < 10 else f"{took_s:,.0f} s"
