"""A real ipykernel in a process of its own, with the start-up file of the source tree in effect.

IPython runs the start-up files of its environment's prefix; here the same file stands in the profile of a
temporary `IPYTHONDIR`, from where IPython runs it in the same way.
"""

from __future__ import annotations

import os
import queue
import re
import shutil
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupyter_client.manager import KernelManager

ROOT = Path(__file__).parents[2]
STARTUP = ROOT / "etc" / "ipython" / "00-jaxprof.py"
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Reply:
    """What running a cell in a kernel gave."""

    status: str = ""
    error: str = ""
    traceback: str = ""
    stdout: str = ""
    stderr: str = ""
    value: str | None = None
    displays: list[dict[str, Any]] = field(default_factory=list)
    updates: list[dict[str, Any]] = field(default_factory=list)
    """What took the place of what was displayed."""
    count: int = 0

    @property
    def text(self) -> str:
        return self.stdout + self.stderr + self.traceback


class Kernel:
    def __init__(self, manager: KernelManager, client: Any):
        self.manager, self.client = manager, client

    def send(self, code: str, **options: Any) -> str:
        return self.client.execute(code, **options)

    def wait_for(self, message_id: str, timeout: float = 60) -> Reply:
        """Gather all that belongs to a request until the kernel is idle again and has replied."""
        reply, deadline = Reply(), time.monotonic() + timeout
        idle = False
        while not idle:
            message = self.client.get_iopub_msg(timeout=max(0.1, deadline - time.monotonic()))
            if message["parent_header"].get("msg_id") != message_id:
                continue
            kind, content = message["header"]["msg_type"], message["content"]
            match kind:
                case "stream":
                    setattr(reply, content["name"], getattr(reply, content["name"]) + content["text"])
                case "execute_result":
                    reply.value = content["data"]["text/plain"]
                case "display_data":
                    reply.displays.append(content["data"])
                case "update_display_data":
                    reply.updates.append(content["data"])
                case "error":
                    reply.traceback = _ANSI.sub("", "\n".join(content["traceback"]))
                case "status":
                    idle = content["execution_state"] == "idle"
        while True:
            answer = self.client.get_shell_msg(timeout=max(0.1, deadline - time.monotonic()))
            if answer["parent_header"].get("msg_id") == message_id:
                break
        reply.status = answer["content"]["status"]
        reply.error = answer["content"].get("ename", "")
        reply.count = answer["content"].get("execution_count", 0)
        return reply

    def run(self, code: str, timeout: float = 60, **options: Any) -> Reply:
        return self.wait_for(self.send(code, **options), timeout)

    def run_once_accepted(self, code: str, timeout: float = 60) -> Reply:
        """Run code as soon as ipykernel lets it: for a moment after an error it aborts whatever comes in."""
        deadline = time.monotonic() + timeout
        while (reply := self.run(code)).status == "aborted":
            if time.monotonic() > deadline:
                raise TimeoutError(f"The kernel aborts {code!r} without end.")
        return reply

    def wait_for_output(self, message_id: str, text: str, timeout: float = 60) -> None:
        """Wait until a running cell has printed `text`."""
        deadline, seen = time.monotonic() + timeout, ""
        while text not in seen:
            try:
                message = self.client.get_iopub_msg(timeout=max(0.1, deadline - time.monotonic()))
            except queue.Empty:
                raise TimeoutError(f"The cell has printed {seen!r}, not {text!r}.") from None
            if message["parent_header"].get("msg_id") == message_id and message["msg_type"] == "stream":
                seen += message["content"]["text"]

    def interrupt(self) -> None:
        self.manager.interrupt_kernel()


def kernel_environment(directory: str | Path, **environment: str) -> dict[str, str]:
    """Environment variables of a process whose IPython runs the start-up file of the source tree."""
    startup = Path(directory) / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True, exist_ok=True)
    shutil.copy(STARTUP, startup)
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "IPYTHONDIR": str(Path(directory) / "ipython"),
        "JAXPROF_DIR": str(Path(directory) / "jaxprof"),
        "PYTHONPATH": path,
        **environment,
    }


@contextmanager
def started_kernel(manager: KernelManager, directory: str | Path, *, ready_s: float, **environment: str):
    """Start a manager's kernel in `directory`; shut it down at the end."""
    manager.start_kernel(env=kernel_environment(directory, **environment), cwd=str(directory))
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=ready_s)
        yield Kernel(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@contextmanager
def running_kernel(**environment: str):
    """Start a kernel with these environment variables besides; shut it down at the end."""
    with tempfile.TemporaryDirectory() as directory:
        manager = KernelManager(kernel_name="python3")
        with started_kernel(manager, directory, ready_s=60, **environment) as kernel:
            yield kernel
