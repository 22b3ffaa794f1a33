"""Outputs rendered in JupyterLab as a notebook renders them, without a cell: many, and timed."""

from __future__ import annotations

from typing import Any

from tests.support.browser import Lab

_RENDER = """async ({ data, mimeType, times }) => {
    const { rendermime } = jupyterapp.shell.currentWidget.content;
    const turn = () => new Promise(done => {
        const channel = new MessageChannel();
        channel.port1.onmessage = done;
        channel.port2.postMessage(null);
    });
    const host = document.createElement('div');
    host.style.cssText = 'position: absolute; top: 0; left: 0; width: 900px;';
    document.body.append(host);
    const taken = [];
    for (let time = 0; time < times; time++) {
        const began = performance.now();
        const renderer = rendermime.createRenderer(mimeType);
        renderer.constructor.attach(renderer, host);
        await renderer.renderModel(rendermime.createModel({ data, trusted: true }));
        while (!renderer.node.querySelector('.jx-name')) {
            await turn();
        }
        host.getBoundingClientRect();
        taken.push(performance.now() - began);
        renderer.dispose();
        await turn();
    }
    host.remove();
    return taken;
}"""


def rendered_ms(lab: Lab, bundle: dict[str, Any], mime_type: str, times: int) -> list[float]:
    """How long each of `times` renderings took, from nothing to laid out; each is removed at once.

    The page shows a notebook, and its server exposes JupyterLab's application.
    """
    return lab.page.evaluate(_RENDER, {"data": bundle, "mimeType": mime_type, "times": times})
