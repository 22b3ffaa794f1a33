"""The directive `{recorded} NAME`: what a cell of the course gave, on each device where it was recorded.

`recorded/<device>/<page>-<NAME>.txt` beside this folder has on its first line what it was recorded on, then
an empty line, then the text as it was printed. `python -m scripts.record_lessons` writes these files;
`scripts/lessons.py` says what a page is.
"""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

RECORDED = Path(__file__).parents[1] / "recorded"
DEVICES = {"cpu": "CPU", "gpu": "GPU"}


class Recorded(SphinxDirective):
    """A tab for each device; nothing for one on which the cell was not recorded."""

    required_arguments = 1
    option_spec = {"raises": directives.flag, "gpu": directives.flag}  # noqa: RUF012 (as docutils has it)

    def run(self) -> list[nodes.Node]:
        """Give the tabs."""
        name = f"{Path(self.env.docname).name}-{self.arguments[0]}.txt"
        tabs = [
            tab for device, title in DEVICES.items() if (tab := self._tab(RECORDED / device / name, title))
        ]
        if not tabs and "gpu" in self.options:
            return []
        if not tabs:
            raise self.error(f"{name} is not in docs/recorded: python -m scripts.record_lessons makes it.")
        return self.parse_text_to_nodes("\n".join(["::::{tab-set}", ":sync-group: device", *tabs, "::::"]))

    def _tab(self, file: Path, title: str) -> str:
        self.env.note_dependency(str(file))
        if not file.is_file():
            return ""
        caption, _, text = file.read_text("utf-8").partition("\n\n")
        return "\n".join(
            [
                f":::{{tab-item}} {title}",
                f":sync: {file.parent.name}",
                "",
                "````{code-block} none",
                ":class: recorded",
                text.rstrip("\n"),
                "````",
                "",
                f"[{caption}]{{.recorded-on}}",
                ":::",
            ]
        )


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx of the directive and its style."""
    app.add_directive("recorded", Recorded)
    app.add_css_file("recorded.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
