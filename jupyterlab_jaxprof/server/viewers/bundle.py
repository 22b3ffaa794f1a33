"""XProf's script with mended addresses: as it is, several of its links lead out of the proxy's prefix.

The patterns are those of xprof 2.24 (bundle.js, minified). Where one is absent the script stays as it is.
"""

from __future__ import annotations

import gzip
import logging
import zlib

log = logging.getLogger(__name__)

# Where XProf is, as its own page knows: index.html sets its base to `<prefix>/data/plugin/profile/`.
_ROOT = b'${document.baseURI.split("/data/plugin/profile")[0]}'
PATCHES: tuple[tuple[str, bytes, bytes], ...] = (
    ("the graph's address", b"${window.origin}/${this.pathPrefix}/${", _ROOT + b"${"),
    ("links to a tool's data", b"${window.parent.location.origin}/${", _ROOT + b"${"),
    (
        "the memory timeline's address",
        b"${window.parent.location.origin}/data/plugin/profile/",
        _ROOT + b"/data/plugin/profile/",
    ),
    # The page that frames XProf understands the same query as XProf's own page.
    (
        "links to another tool",
        b"${window.parent.location.origin}?",
        b"${window.parent.location.origin}${window.parent.location.pathname}?",
    ),
)

# Inside JupyterLab, XProf must not come between the user and JupyterLab's history: it pushes entries, and
# loads the trace viewer's frame twice. The page around XProf (static/viewer.js) says whether it is inside.
TAME_HISTORY = b"""<script>
if (window.parent.jaxprofEmbedded) {
  history.pushState = history.replaceState.bind(history);
  const src = Object.getOwnPropertyDescriptor(HTMLIFrameElement.prototype, 'src');
  Object.defineProperty(HTMLIFrameElement.prototype, 'src', {
    ...src,
    set(url) {
      if (this.contentWindow && this.getAttribute('src')) {
        this.contentWindow.location.replace(new URL(url, document.baseURI));
      } else {
        src.set.call(this, url);
      }
    }
  });
}
</script>"""
# Nor take the keyboard from where the user types: the trace viewer asks for it whenever it has loaded. A page
# that has it, or holds the frame that has it, may move it.
TAME_FOCUS = b"""<script>
for (const kind of [HTMLElement, SVGElement]) {
  const focus = kind.prototype.focus;
  kind.prototype.focus = function (...options) {
    if (document.hasFocus()) {
      focus.apply(this, options);
    }
  };
}
const focusWindow = window.focus.bind(window);
window.focus = () => {
  if (document.hasFocus()) {
    focusWindow();
  }
};
</script>"""
PAGE_PATCHES: tuple[tuple[str, bytes, bytes], ...] = (
    ("its history and focus", b"<head>", b"<head>" + TAME_HISTORY + TAME_FOCUS),
)
TRACE_VIEWER_PATCHES: tuple[tuple[str, bytes, bytes], ...] = (
    ("its focus", b"<head>", b"<head>" + TAME_FOCUS),
)


def mended(body: bytes, encoding: str, patches: tuple[tuple[str, bytes, bytes], ...] = PATCHES) -> bytes:
    """The script (or page) with its patches, gzipped; `encoding` is that of `body`, empty or gzip."""
    script = decoded(body, encoding)
    for name, pattern, replacement in patches:
        if pattern not in script:
            log.warning("XProf's script has changed: %s can't be mended (no %s).", name, pattern.decode())
        script = script.replace(pattern, replacement)
    return gzip.compress(script, compresslevel=6, mtime=0)


def decoded(body: bytes, encoding: str) -> bytes:
    """The body without its encoding, empty or gzip; a body that isn't gzip after all is left as it is."""
    if encoding != "gzip":
        return body
    try:
        return gzip.decompress(body)
    except (OSError, EOFError, zlib.error):
        return body
