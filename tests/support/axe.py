"""axe-core on a page: what stands in the way of somebody with a keyboard, a screen reader, or poor sight."""

from __future__ import annotations

from playwright.sync_api import Frame, Page

from tests.support.servers import ROOT

SCRIPT = ROOT / "node_modules/axe-core/axe.min.js"
OPTIONS = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}
# What only a whole page of its own must have; ours are parts of JupyterLab's.
PAGE_RULES = (
    "bypass",
    "document-title",
    "heading-order",
    "landmark-one-main",
    "page-has-heading-one",
    "region",
)


def violations(page: Page | Frame, selector: str) -> list[str]:
    """Give each violation below `selector` as 'rule: help (target)'; rules for whole pages are left out."""
    assert SCRIPT.is_file(), "There is no axe-core: run `jlpm install`."
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(SCRIPT.read_text())  # unlike a script element, no policy of the page stops it
    rules = {name: {"enabled": False} for name in PAGE_RULES}
    found = page.evaluate(
        "([selector, options]) => axe.run(selector, options)", [selector, {**OPTIONS, "rules": rules}]
    )
    return [
        f"{one['id']}: {one['help']} ({node['target'][0]}: {node['html'][:200]}); {node['failureSummary']}"
        for one in found["violations"]
        for node in one["nodes"]
    ]
