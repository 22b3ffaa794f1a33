"""Try an installed wheel as a person would: check_installation.py ENVIRONMENT [--kernel ENVIRONMENT]

A real Jupyter server of that environment, the system's Chromium, one timed and one traced cell: the live
card, the capture in the sidebar, XProf's tab, and no error in the page's console that is ours. With --kernel
the cells run in the kernel of another environment; with --notebook in Notebook 7. This Python must have
playwright (the extra `dev`); see RELEASE.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from playwright.sync_api import ConsoleMessage, expect

from tests.support import servers
from tests.support.browser import PATIENCE_MS, Lab, chromium, lab_page, set_theme, write_notebook
from tests.support.servers import TOKEN, Server, await_url

servers.START_TIMEOUT_S = 300  # a fresh environment compiles its modules first

_TIMED = "%%jaxtime timed\nimport jax.numpy as jnp\nx = jnp.ones((200, 200))\ny = x @ x"
_TRACED = "%%jaxtrace traced --steps 2\ny = jnp.sin(x @ y)"


@contextmanager
def serving(environment: Path, kernel: Path | None, *, notebook: bool) -> Iterator[Server]:
    """Start JupyterLab (or Notebook 7) as installed, with a home directory of its own."""
    with tempfile.TemporaryDirectory(prefix="jp-") as place:
        home = Path(place)
        for name in ("work", "run", "data"):
            (home / name).mkdir()
        if kernel is not None:
            spec = {
                "argv": [str(kernel / "bin/python"), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
            }
            (home / "data/kernels/python3").mkdir(parents=True)
            (home / "data/kernels/python3/kernel.json").write_text(
                json.dumps(spec | {"display_name": "Python 3 (ipykernel)", "language": "python"})
            )
        kept = ("PATH", "LANG", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
        variables = {name: os.environ[name] for name in kept if name in os.environ} | {
            "HOME": place,
            "JAX_PLATFORMS": "cpu",
            "JUPYTER_TOKEN": TOKEN,
            "JUPYTER_RUNTIME_DIR": str(home / "run"),
            "JUPYTER_DATA_DIR": str(home / "data"),
            "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        }
        program = "notebook" if notebook else "lab"
        options = ("--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1", "--ServerApp.port=0")
        log_path = home / "server.log"
        with log_path.open("wb") as log:
            command = [str(environment / "bin/jupyter"), program, *options]
            process = subprocess.Popen(
                command, env=variables, cwd=home / "work", stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        try:
            url = await_url(home / "run", process, log_path)
            server = Server(url, "/", home / "data/jaxprof", process, log_path, home)
            set_theme(server, "JupyterLab Light")
            yield server
        finally:
            process.terminate()
            try:
                process.wait(60)
            finally:
                process.kill()


def check(lab: Lab, *, notebook: bool) -> None:
    """Time a cell and trace a cell; look at what comes of them."""
    page = lab.page
    lab.go("notebooks/try.ipynb" if notebook else "lab/tree/try.ipynb")
    page.locator(".jp-Notebook-cell").nth(1).wait_for(state="attached", timeout=PATIENCE_MS * 4)
    for index, name in enumerate(("timed", "traced")):
        cell = page.locator(".jp-Notebook-cell").nth(index)
        prompt = cell.locator(".jp-InputPrompt")
        while prompt.inner_text().strip() in ("", "[ ]:"):
            cell.locator(".cm-content").click()
            page.keyboard.press("Control+Enter")
            page.wait_for_timeout(2000)
        card = cell.locator(".jp-JaxProf-card")
        expect(card).to_contain_text(name, timeout=PATIENCE_MS * 4)
        print(f"  live card of {name}: yes")
    if notebook:
        page.get_by_role("menuitem", name="View", exact=True).click()
        labels = page.locator(".lm-Menu-itemLabel").all_inner_texts()
        print("  Notebook's menu View:", ", ".join(filter(None, labels)))
        return
    lab.show_panel()
    expect(lab.rows).to_have_count(2, timeout=PATIENCE_MS)
    print("  captures in the sidebar: 2")
    lab.open_in_xprof(lab.row("traced"))
    assert lab.trace_events()
    print("  XProf shows the trace: yes")


def main(arguments: Sequence[str]) -> int:
    """Check one environment; gives 1 where the page's console had errors of ours."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environment", type=Path)
    parser.add_argument("--kernel", type=Path)
    parser.add_argument("--notebook", action="store_true")
    parser.add_argument("--picture", type=Path)
    asked = parser.parse_args(arguments)
    kernel = asked.kernel.resolve() if asked.kernel else None
    said: list[str] = []

    def listen(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            said.append(f"{message.type}: {message.text[:300]} ({message.location.get('url', '')[-90:]})")

    with (
        chromium() as browser,
        serving(asked.environment.resolve(), kernel, notebook=asked.notebook) as server,
    ):
        write_notebook(server, "try.ipynb", [_TIMED, _TRACED])
        with lab_page(browser, server) as lab:
            lab.page.on("console", listen)
            try:
                check(lab, notebook=asked.notebook)
            finally:
                if asked.picture:
                    lab.page.screenshot(path=str(asked.picture))
    for line in sorted(set(said)):
        print("  console", line)
    ours = [line for line in said if line.startswith("error") and "jaxprof" in line.lower()]
    return 1 if ours else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
