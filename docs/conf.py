"""How Sphinx builds the documentation: `make docs`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ipython_pygments_lexers import IPython3Lexer
from sphinx.highlighting import lexers

_ROOT = Path(__file__).parents[1]

project = "jupyterlab-jaxprof"
author = "The jupyterlab-jaxprof developers"
copyright = f"2026, {author}"
version = release = json.loads((_ROOT / "package.json").read_text("utf-8"))["version"]

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
extensions = ["myst_parser", "recorded", "sphinx_copybutton", "sphinx_design"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "recorded"]
nitpicky = True

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 3

# pages are looked at without the network too: on a machine of a cluster, from a folder
html_theme = "pydata_sphinx_theme"
html_title = "jupyterlab-jaxprof"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_copy_source = False
html_show_sourcelink = False
#: A page of no section has no navigation of one.
html_sidebars = {"troubleshooting": []}
html_theme_options = {
    "logo": {"text": "jupyterlab-jaxprof"},
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "show_nav_level": 2,
    "navigation_depth": 2,
    "show_toc_level": 2,
    "show_prev_next": True,
    "use_edit_page_button": False,
    "footer_start": ["copyright"],
    "footer_end": [],
}
# what can't be copied: the prompts of a terminal
copybutton_prompt_text = r"\$ "
copybutton_prompt_is_regexp = True

# cells: Python with magics
lexers["python"] = IPython3Lexer()

# a file of the repository's root is a page here where it is there
_of_the_root = {"development/contributing.md": "CONTRIBUTING.md", "development/security.md": "SECURITY.md"}
exclude_patterns += [page for page, file in _of_the_root.items() if not (_ROOT / file).exists()]
