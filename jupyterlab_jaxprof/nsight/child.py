"""The program that nsys runs: the notebook's variables made again, the body warmed up, then recorded.

    main([SPEC, EVENTS, LIFE, OUT, ERR])

All five are inherited descriptors: what to do (JSON), where to tell of it (JSON lines), one whose end of file
means that whoever waits is gone (a byte: what was displayed last is taken), and where the body's output goes.
Nothing here prints.
"""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import linecache
import marshal
import os
import platform
import re
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import CodeType
from typing import Any

from jupyterlab_jaxprof.nsight.errors import described
from jupyterlab_jaxprof.nsight.nvtx import Domain, NotAttached, package_version
from jupyterlab_jaxprof.nsight.padding import pad, pad_after_compiles
from jupyterlab_jaxprof.nsight.shown import Shown, show_through

#: What nsys is told to wait for: this range in this domain.
DOMAIN, CAPTURE = "jaxprof", "capture"
#: Files that nsys writes outside of its temporary directory, and forgets when it is killed.
_CONFIGURATION = re.compile(r"/tmp/injection_config_[0-9a-f]+")


class Teller:
    """Writes events for the kernel, one line each."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def tell(self, event: str, **said: Any) -> None:
        """Tell one event; nobody listens once the kernel is gone."""
        with self._lock, suppress(OSError):
            line = json.dumps({"event": event, **said}).encode() + b"\n"
            while line:
                line = line[os.write(self._descriptor, line) :]


class Body:
    """The compiled body and its namespace."""

    def __init__(self, codes: Sequence[CodeType], namespace: dict[str, Any]) -> None:
        self._codes = codes
        self._namespace = namespace
        self._runner: asyncio.Runner | None = None

    def run(self) -> Any:
        """Run it once; gives the value of its last expression."""
        value: Any = None
        for code in self._codes:
            value = eval(code, self._namespace)
            if code.co_flags & inspect.CO_COROUTINE:
                self._runner = self._runner or asyncio.Runner()
                value = self._runner.get_loop().run_until_complete(value)
        return value


class Fence:
    """The full barrier, from when JAX has been imported on."""

    def __init__(self) -> None:
        self._barrier: Any = None

    def prepare(self) -> None:
        """Compile it, and wait for all that runs."""
        if "jax" in sys.modules:
            if self._barrier is None:
                from jupyterlab_jaxprof.cell import Barrier

                self._barrier = Barrier()
            self._barrier.drain()

    def wait(self) -> int:
        """Wait for all that was enqueued; gives when it had ended (`time.perf_counter_ns`)."""
        if self._barrier is None:
            self.prepare()
            return time.perf_counter_ns()
        return self._barrier.wait()


def main(arguments: Sequence[str]) -> None:
    """Do what the spec says, and end the process."""
    spec_descriptor, events, life, out, err = map(int, arguments)
    teller = Teller(events)
    shown = Shown(teller.tell)
    threading.Thread(target=_end_with, args=(life, shown, configuration()), daemon=True).start()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    teller.tell("start", pid=os.getpid(), files=configuration())
    for descriptor in (events, life):
        os.set_inheritable(descriptor, False)
    os.dup2(out, 1)
    os.dup2(err, 2)
    for descriptor in (out, err):
        os.close(descriptor)
    with os.fdopen(spec_descriptor, "rb") as file:
        spec = json.load(file)
    try:
        _work(spec, teller, shown)
    except BaseException as error:  # noqa: BLE001 - a fault of ours, or an interrupt between two stages
        teller.tell("error", stage="", error=described(error, ""))
    with suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(0)  # whatever threads the body has left behind


def configuration() -> list[str]:
    """Give the files by which nsys has told this process what to record."""
    return [value for value in os.environ.values() if _CONFIGURATION.fullmatch(value)]


def end_at_once(files: Sequence[str]) -> None:
    """End this process and its group; whoever would remove these files is gone, or will be."""
    for file in files:
        with suppress(OSError):
            Path(file).unlink()
    os.killpg(0, signal.SIGKILL)


def _end_with(life: int, shown: Shown, files: Sequence[str]) -> None:
    """End this process and its group once the other end of a pipe is gone."""
    while os.read(life, 1):
        shown.taken()
    end_at_once(files)


def _work(spec: dict[str, Any], teller: Teller, shown: Shown) -> None:
    os.environ.update(spec["environment"])
    for name in spec["unset"]:
        os.environ.pop(name, None)
    show_through(shown, spec["inline"])
    from jupyterlab_jaxprof.nsight.carry import RestoreError
    from jupyterlab_jaxprof.nsight.carry.restore import Restored, restore

    domain = _domain(spec["gpus"])
    try:
        restored = restore(Path(spec["carried"])) if spec["carried"] else Restored({})
    except RestoreError as error:
        cause = error.__cause__ or error
        teller.tell("error", stage="set-up", sentence=str(error), error=described(cause, "<set-up"))
        return
    filename, text = spec["filename"], spec["text"]
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    _use_cache(spec["jax_cache"])
    codes: list[CodeType] = marshal.loads(base64.b64decode(spec["codes"]))
    body, fence = Body(codes, restored.namespace), Fence()
    fence.prepare()
    teller.tell("ready", notices=restored.notices, environment=_environment())
    if spec["warm_up"]:
        teller.tell("warm-up")
        with _stage("warm-up", filename, teller) as passed, _silence(shown):
            body.run()
            fence.wait()
            shown.flush_figures()
        if not passed:
            return
        with warnings.catch_warnings():
            pass  # what the warm-up has warned of, and nobody has seen, is warned of again
    _record(spec, body, fence, teller, shown, domain)
    _finish(spec, restored.namespace, teller, shown)


def _domain(gpus: bool) -> Domain | NotAttached:
    """Give the domain of our ranges, prepared before XLA's; else why there is none."""
    try:
        domain = Domain(DOMAIN)
    except NotAttached as error:
        return error
    if gpus:
        pad(domain)
    return domain


def _record(
    spec: dict[str, Any],
    body: Body,
    fence: Fence,
    teller: Teller,
    shown: Shown,
    domain: Domain | NotAttached,
) -> None:
    """Run the steps within the ranges that nsys records."""
    if isinstance(domain, NotAttached):
        teller.tell("no-nvtx", reason=str(domain))
        return
    with suppress(Exception):
        fence.prepare()
    domain.push(CAPTURE)  # returns once nsys records
    teller.tell("capture")
    if spec["gpus"]:
        pad_after_compiles(domain)
    try:
        value = _steps(spec, body, fence, teller, domain, shown)
    finally:
        teller.tell("stop")
        domain.pop()  # returns once nsys has all that was recorded
        teller.tell("captured")
    if value is not None:
        with _stage("value", spec["filename"], teller):
            shown.value(value)


def _steps(
    spec: dict[str, Any], body: Body, fence: Fence, teller: Teller, domain: Domain, shown: Shown
) -> Any:
    """Run every step, up to the first that fails; gives the value of the last."""
    value: Any = None
    for number in range(spec["steps"]):
        with _stage("step", spec["filename"], teller, number=number) as passed:
            value = None  # its arrays are not kept alive
            domain.push(f"step {number}")
            try:
                began_ns = time.perf_counter_ns()
                value = body.run()
                done_ns = fence.wait()
            finally:
                domain.pop()
            teller.tell("step", number=number, duration_ms=(done_ns - began_ns) / 1e6)
        shown.flush_figures()
        if not passed:
            return None
    return value


def _finish(spec: dict[str, Any], namespace: dict[str, Any], teller: Teller, shown: Shown) -> None:
    notices: list[str] = []
    if shown.has_widgets:
        notices.append(
            "The cell displays widgets, which need the notebook's own kernel: they are shown as text."
        )
    if spec["return"]:
        from jupyterlab_jaxprof.nsight.carry.returned import write_back

        try:
            notices += write_back(Path(spec["back"]), namespace, spec["return"])
        except OSError as error:
            notices.append(f"Nothing came back: the disk says '{error.strerror or error}'.")
    teller.tell("done", notices=notices, nvtx=package_version(), environment=_environment())


@contextmanager
def _stage(stage: str, filename: str, teller: Teller, *, number: int | None = None) -> Generator[list[bool]]:
    """Tell of the error that the user's code raises; what is given is empty then, and nothing is raised."""
    passed = [True]
    try:
        yield passed
    except BaseException as error:  # noqa: BLE001 - whatever the user's code raises is the body's
        passed.clear()
        interrupted = isinstance(error, KeyboardInterrupt | asyncio.CancelledError)
        said = described(error, filename)
        teller.tell("error", stage=stage, step=number, interrupted=interrupted, error=said)


@contextmanager
def _silence(shown: Shown) -> Generator[None]:
    """Let what this process displays, and what it and those that it starts print, go nowhere."""
    shown.muted = True
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(1), os.dup(2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    try:
        yield
    finally:
        shown.muted = False
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        for descriptor, number in zip(kept, (1, 2), strict=True):
            os.dup2(descriptor, number)
            os.close(descriptor)


def _use_cache(directory: str) -> None:
    """Let JAX keep what it compiles for the next run, unless the user has a cache of his own."""
    if directory and "jax" in sys.modules:
        import jax

        if not getattr(jax.config, "jax_compilation_cache_dir", None):
            jax.config.update("jax_compilation_cache_dir", directory)


def _environment() -> dict[str, Any]:
    """What a record's `environment` says of this process."""
    said: dict[str, Any] = {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "host": socket.gethostname(),
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
        "devices": [],
    }
    if "jax" in sys.modules:
        import jax
        from jaxlib import version as jaxlib_version

        said |= {"jax": jax.__version__, "jaxlib": jaxlib_version.__version__}
        with suppress(RuntimeError):
            said["devices"] = [
                {
                    "id": device.id,
                    "platform": device.platform,
                    "kind": device.device_kind,
                    "process_index": device.process_index,
                }
                for device in jax.local_devices()
            ]
    return said
