"""The site builds without a warning, its links lead somewhere, and what the program links to is there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from jupyterlab_jaxprof.diagnosis import Finding, Level, patterns
from jupyterlab_jaxprof.environment.documentation import finding_page
from tests.support.pages import DOCS, ROOT, pages, tokens


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build it as `make docs` does: a warning is an error."""
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", str(DOCS), str(out)]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return out


def test_the_page_that_a_finding_names_is_in_the_site_and_in_the_package(site: Path) -> None:
    for name in patterns.IDS:
        finding = Finding(id=name, title="", level=Level.NOTE, evidence=[], ranges=[], meaning="", next=[])
        assert (site / f"{finding.to_json()['doc']}.html").is_file()
        shown = finding_page(name)
        assert shown is not None
        assert ".md)" not in shown, "a link to what is not there"
        assert not re.search(r"^```\w+ ", shown, re.MULTILINE)


def test_every_link_of_the_site_leads_to_a_file_of_it(site: Path) -> None:
    """Of directives too, as on the first page: what Sphinx can't resolve it takes for an address."""
    for page in site.rglob("*.html"):
        if "_static" in page.parts:
            continue
        for target in re.findall(r"<a[^>]*\shref=\"([^\"#]+)", page.read_text("utf-8")):
            parts = urlsplit(target)
            if not parts.scheme and parts.path:
                assert page.parent.joinpath(unquote(parts.path)).is_file(), f"{page.name}: {target}"


def test_the_site_asks_no_other_host_for_anything(site: Path) -> None:
    """A page is read on a cluster without the internet too, and tells nobody who reads it."""
    loaded = re.compile(r"<(?:script|img|iframe|link)[^>]*(?:src|href)=\"(https?:)?//[^\"]*\"")
    for page in site.rglob("*.html"):
        found = [
            one[0] for one in loaded.finditer(page.read_text("utf-8")) if 'rel="canonical"' not in one[0]
        ]
        assert not found, page


@pytest.mark.parametrize("page", pages())
def test_links_are_whole(page: str) -> None:
    """Those of the repository's own pages lead to files that are there, external ones are addresses."""
    for token in tokens(page):
        for child in token.children or []:
            if child.type not in ("link_open", "image"):
                continue
            target = str(child.attrGet("href") or child.attrGet("src"))
            parts = urlsplit(target)
            if parts.scheme in ("http", "https"):
                assert re.fullmatch(r"[\w-]+(\.[\w-]+)+|localhost", parts.hostname or ""), target
            elif parts.scheme != "mailto" and parts.path:
                assert (ROOT / page).parent.joinpath(unquote(parts.path)).exists(), f"{page}: {target}"
