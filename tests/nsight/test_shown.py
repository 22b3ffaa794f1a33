"""What a notebook shows of a cell under nsys: how far it is, and what the body prints and displays."""

from __future__ import annotations

import re
import time
from itertools import groupby
from typing import Any

import pytest

from tests.support.kernels import Kernel, running_kernel

INLINE = "module://matplotlib_inline.backend_inline"
SETUP = """\
import sys, time
import matplotlib.pyplot as plt
from IPython.display import HTML, clear_output, display, update_display
from tqdm import tqdm
class Rich:
    def _repr_html_(self):
        return "<b>rich</b>"
    def _repr_png_(self):
        return b"bytes of a picture"
class Widget:
    def _repr_mimebundle_(self, **others):
        return {"text/plain": "Slider", "application/vnd.jupyter.widget-view+json": {"model_id": "a"}}
"""
BODY = """\
%%nsys --steps 2
count = globals().get("count", -1) + 1
print("before", count)
display(HTML(f"<i>{count}</i>"))
print("after")
update_display(f"updated {count}", display_id=display("shown", display_id=True).display_id)
plt.plot([1, count])
for _ in tqdm(range(3), file=sys.stdout, mininterval=0, ncols=40):
    time.sleep(0.01)
display(Widget())
Rich()
"""
CLEARED = """\
%%nsys --steps 1 --no-warmup
print("gone")
clear_output(wait=True)
print("instead")
"""
WITH_WINDOWS = """\
%%nsys --steps 1 --no-warmup
%matplotlib inline
%matplotlib tk
%gui tk
%pylab inline --no-import-all
plt.plot([1])
"""
MISSED = {
    "exit()": "the notebook's kernel goes on",
    "input()": "There is no keyboard in the process under nsys",
    "%jaxmem": "%jaxmem works in the notebook's kernel: put it in a cell of its own",
    "eval('Rich')": "The notebook has Rich, but the cell's code does not name it",
}


@pytest.fixture(scope="module")
def kernel():
    with running_kernel(MPLBACKEND=INLINE) as kernel:
        assert kernel.run(SETUP).status == "ok"
        yield kernel


def messages(kernel: Kernel, code: str) -> list[tuple[str, dict[str, Any]]]:
    """All that a front end is sent while a cell runs, in order: the kind and the content of each message."""
    sent, found = kernel.send(code), []
    deadline_s = time.monotonic() + 120
    while True:
        message = kernel.client.get_iopub_msg(timeout=max(0.1, deadline_s - time.monotonic()))
        if message["parent_header"].get("msg_id") == sent:
            found.append((message["header"]["msg_type"], message["content"]))
            if message["content"].get("execution_state") == "idle":
                return found


def is_ours(content: dict[str, Any]) -> bool:
    """Whether a display is the progress, or the card that takes its place."""
    data = content.get("data", {})
    return (
        'aria-label="Progress"' in data.get("text/html", "") or "application/vnd.jaxprof.capture+json" in data
    )


@pytest.fixture(scope="module")
def shown(kernel):
    return messages(kernel, BODY)


def of_body(found: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """What the body made, each as one word or two."""
    said: list[str] = []
    for is_text, messages in groupby(found, key=lambda message: message[0] == "stream"):
        if is_text:  # a line may come in pieces
            said += "".join(content["text"] for _, content in messages).replace("\r", "\n").split("\n")
        else:
            said += [shown for kind, content in messages if (shown := _shown(kind, content))]
    return [word for word in said if word]


def _shown(kind: str, content: dict[str, Any]) -> str:
    if not kind.endswith("display_data") or is_ours(content):
        return ""
    data = content["data"]
    update = "update " if kind == "update_display_data" else ""
    rich = [name for name in data if name != "text/plain"]
    return update + (" ".join(rich) if rich else data["text/plain"])


def test_displays_come_in_the_order_of_the_body_from_each_recorded_step_and_the_value_once(shown):
    said = [word for word in of_body(shown) if "it/s" not in word]
    plot = "image/png"
    steps = [
        [f"before {number}", "text/html", "after", "'shown'", f"update 'updated {number}'", "Slider", plot]
        for number in (1, 2)  # 0 was the warm-up
    ]
    assert said == [*steps[0], *steps[1], "text/html image/png"]
    pictures = [
        content["data"]["image/png"] for kind, content in shown if "image/png" in content.get("data", {})
    ]
    assert pictures[-1] == "Ynl0ZXMgb2YgYSBwaWN0dXJl"
    assert pictures[0].startswith("iVBOR")


def test_a_progress_bar_of_the_body_keeps_its_carriage_returns(shown):
    printed = "".join(content["text"] for kind, content in shown if kind == "stream")
    assert re.search(r"\r\s*33%\|.*\r\s*67%\|.*\r100%\|", printed), printed


def test_widgets_are_text_and_the_card_says_so(shown):
    record = [content["data"] for kind, content in shown if is_ours(content)][-1]
    notices = record["application/vnd.jaxprof.capture+json"]["notices"]
    assert any("widgets, which need the notebook's own kernel" in notice for notice in notices)


def test_every_phase_is_shown_with_its_time_in_the_place_of_the_card(shown):
    ours = [(kind, content) for kind, content in shown if is_ours(content)]
    assert [kind for kind, _ in ours] == ["display_data"] + ["update_display_data"] * (len(ours) - 1)
    assert len({content["transient"]["display_id"] for _, content in ours}) == 1
    told = [content["data"]["text/plain"] for _, content in ours[:-1]]
    assert told[0].startswith("start: Looking for what the cell needs, 0.0 s")
    seconds = r"\d+(?:\.\d)? s"
    assert any(re.fullmatch(rf"start {seconds}, set-up: Making .* again, {seconds}", text) for text in told)
    recorded = (
        rf"start {seconds}, set-up {seconds}, warm-up {seconds}, capture: Recording step 2 of 2, {seconds}"
    )
    assert any(re.fullmatch(recorded, text) for text in told), told
    assert re.search(rf"capture {seconds}, import: Reading the report, {seconds}$", told[-1])


def test_a_body_that_clears_the_output_takes_no_card_away(kernel):
    found = messages(kernel, CLEARED)
    kinds = [kind for kind, content in found if kind == "clear_output" or is_ours(content)]
    cleared = kinds.index("clear_output")
    assert found[[kind for kind, _ in found].index("clear_output")][1] == {"wait": True}
    assert "display_data" in kinds[cleared:]  # the progress is displayed anew, and becomes the card
    last = [content for _, content in found if is_ours(content)][-1]
    assert "application/vnd.jaxprof.capture+json" in last["data"]


def test_magics_that_ask_for_a_window_draw_into_the_notebook(kernel):
    found = messages(kernel, WITH_WINDOWS)
    assert not [content for kind, content in found if kind == "error"]
    assert "image/png" in of_body(found)


@pytest.mark.parametrize("body", MISSED)
def test_an_error_that_comes_of_the_process_of_its_own_has_a_hint(kernel, body):
    found = messages(kernel, f"%%nsys --steps 1 --no-warmup\n{body}")
    (error,) = [content for kind, content in found if kind == "error"]
    assert MISSED[body] in error["traceback"][-1]
