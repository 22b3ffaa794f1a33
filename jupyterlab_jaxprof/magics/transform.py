"""The input transformer: what has to happen to a cell with a magic of ours before IPython compiles it.

IPython knows a cell magic only on the very first line, and calls it synchronously. Here a cell may begin
with comments or blank lines, its body may await, and a syntax error in the body is reported as the cell's
own. A magic of ours further down is refused before anything runs, with what to do. Others pass unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_MAGIC = re.compile(r"%%(\w+)(?![\w?])")


class InputTransformer:
    """Rewrites a cell that starts with a magic of ours; `is_ours` tells which names are."""

    # IPython leaves out transformers with side effects when a terminal asks whether a cell is complete. It
    # has to see `%%name` then, so that it waits for the body.
    has_side_effects = True

    def __init__(self, shell: InteractiveShell, is_ours: Callable[[str], bool]) -> None:
        self._shell = shell
        self._is_ours = is_ours

    def __call__(self, lines: list[str]) -> list[str]:
        """Transform a cell's lines.

        Raises UsageError for a magic of ours below other code, and the body's SyntaxError.
        """
        if not any("%%" in line for line in lines):
            return lines
        above = next((i for i, line in enumerate(lines) if not _is_blank_or_comment(line)), len(lines))
        cell = _dedented(lines[above:])
        name = self._magic_on(cell[0]) if cell else None
        if name is not None:
            return self._rewritten(name, lines[:above], cell)
        if cell and not cell[0].startswith("%%"):
            self._refuse_magic_below(lines)
        return lines

    def _magic_on(self, line: str) -> str | None:
        match = _MAGIC.match(line)
        return match[1] if match and self._is_ours(match[1]) else None

    def _rewritten(self, name: str, above: list[str], cell: list[str]) -> list[str]:
        from jupyterlab_jaxprof.cell import check, line_was_added

        line = cell[0].rstrip().removeprefix(f"%%{name}").lstrip(" ")
        # IPython refuses an empty body itself, and advises the line magic of that name, which is another.
        body = "".join(cell[1:]) or "\n"
        call = "get_ipython().run_cell_magic"
        head_text = "" if line_was_added(self._shell, body) else "".join(above) + cell[0]
        if check(self._shell, head_text, body):
            call = f"await get_ipython().find_cell_magic({name!r}).awaited"
        # IPython would drop blank lines at the top, and move every line that follows up.
        head = [line if line.strip() else "#\n" for line in above]
        return [*head, f"{call}({name!r}, {line!r}, {body!r})\n"]

    def _refuse_magic_below(self, lines: list[str]) -> None:
        from IPython.core.error import UsageError

        for name in _magics_at_statements(lines):
            if self._is_ours(name):
                raise UsageError(
                    f"%%{name}: it stands below other code in this cell, but measures the whole cell: put it "
                    "on the first line, or move the code above it to a cell of its own. Nothing has run."
                )


def _is_blank_or_comment(line: str) -> bool:
    stripped = line.strip()
    return not stripped or stripped.startswith("#")


def _dedented(lines: list[str]) -> list[str]:
    from IPython.core.inputtransformer2 import leading_indent

    return leading_indent(lines)


def _magics_at_statements(lines: list[str]) -> list[str]:
    """Names of the cell magics that stand where a statement starts, not inside a string, say."""
    from IPython.core.inputtransformer2 import make_tokens_by_line

    found: list[str] = []
    for tokens in make_tokens_by_line(lines):
        first = next((token for token in tokens if token.string.strip()), None)
        if first is not None and first.string.startswith("%"):
            match = _MAGIC.match(first.line[first.start[1] :])
            if match:
                found.append(match[1])
    return found
