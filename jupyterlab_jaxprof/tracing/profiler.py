"""jax.profiler made safe: one trace of this process, from start to stop.

All that is private in JAX stands in this file, is looked for before it is used, and can be missing.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .interrupts import HeldInterrupts
from .stderr import WatchedStderr

_POLL_S = 0.1
_SAY_SO_AFTER_S = 1.0


class ProfilerError(RuntimeError):
    """JAX's profiler can't do what was asked; the message is a sentence for the user."""


class AlreadyRunning(ProfilerError):
    """A trace that isn't ours is running; it was left alone."""


class StoppedByCell(ProfilerError):
    """The traced code itself called jax.profiler.stop_trace()."""


class GivenUp(ProfilerError):
    """The user interrupted the writing of the trace twice; it ends in the background and is thrown away."""


class Profiler:
    """One trace, written below `directory` (as `plugins/profile/<session>/`) when it is stopped.

    `notices` gathers sentences about what the user should know; `interrupts` counts the Ctrl-C that were held
    back while the profiler was starting or stopping.
    """

    def __init__(self, directory: Path, options: Any) -> None:
        self.directory = directory
        self.notices: list[str] = []
        self.interrupts = 0
        self._options = options
        self._session: object = None
        self._started_s = time.monotonic()
        self._worker: threading.Thread | None = None
        self._error: BaseException | None = None
        self._trash: Path | None = None

    def start(self) -> None:
        """Start to trace; afterwards either this trace runs, or none of ours does.

        Raises:
            AlreadyRunning: another trace runs in this process, or is still being written.
            ProfilerError: JAX refused for another reason.
        """
        import jax

        self._free_dead_session()
        with HeldInterrupts() as held, WatchedStderr() as stderr:
            try:
                jax.profiler.start_trace(str(self.directory), profiler_options=self._options)
            except RuntimeError as error:
                raise _not_started(error) from error
            self._session = _current_session()
            self._started_s = time.monotonic()
        self.notices += stderr.notices
        self.interrupts += held.count

    def stop(self, trash: Path, say: Callable[[str], None]) -> None:
        """Stop, and write the trace. However that ends, the profiler can be used again.

        The first Ctrl-C is counted and lets the writing finish; a second one gives it up: `directory` is then
        moved to `trash` and deleted once JAX has let go of it. `say` is told what takes long.

        Raises:
            StoppedByCell: the trace had ended before; what it wrote may be in `directory`.
            GivenUp: see above.
            ProfilerError: the trace couldn't be written.
        """
        if self._session is not None and _current_session() is not self._session:
            raise StoppedByCell(
                "The traced code called jax.profiler.stop_trace() itself, which ended the trace early."
            )
        held, stderr = HeldInterrupts(), WatchedStderr()
        try:
            with held, stderr:
                self._stop_and_wait(held, trash, say)
        finally:
            self.interrupts += held.count
        self.notices += stderr.notices
        if self._error is not None:
            self._recover()
            raise _not_written(self._error) from self._error

    def _stop_and_wait(self, held: HeldInterrupts, trash: Path, say: Callable[[str], None]) -> None:
        """Let a thread do it: JAX may take minutes in C++, where no Ctrl-C arrives."""
        if time.monotonic() - self._started_s > _SAY_SO_AFTER_S and not _lets_go_of_gil():
            say("Writing the trace ...")
        self._worker = threading.Thread(target=self._stop_trace, name="jaxprof-stop-trace", daemon=True)
        started_s = time.monotonic()
        self._worker.start()
        said = 0
        while self._worker.is_alive():
            self._worker.join(_POLL_S)
            waited_s = time.monotonic() - started_s
            if held.count > 1 and self._worker.is_alive():
                self._give_up(trash)
            if waited_s > _SAY_SO_AFTER_S and int(waited_s) > said:
                said = int(waited_s)
                say(_progress(said, interrupted=held.count > 0))

    def _stop_trace(self) -> None:
        import jax

        try:
            jax.profiler.stop_trace()
        except BaseException as error:  # noqa: BLE001 - told by stop()
            self._error = error
        if self._trash is not None:
            if self._error is not None:
                self._recover()
            shutil.rmtree(self._trash, ignore_errors=True)
            shutil.rmtree(self.directory, ignore_errors=True)  # JAX may have made it anew
            with contextlib.suppress(OSError):
                self.directory.parent.rmdir()

    def _give_up(self, trash: Path) -> None:
        _unfinished.add(self)
        self._trash = trash
        self.directory.rename(trash)
        raise GivenUp(
            "You interrupted the writing of the trace twice, so it was given up and nothing of it is kept."
        )

    @property
    def unfinished(self) -> bool:
        """Whether JAX is still writing a trace that was given up."""
        return self._worker is not None and self._worker.is_alive()

    def _free_dead_session(self) -> None:
        """Undo what a failed jax.profiler.stop_trace() leaves behind: 'already started' for good."""
        for profiler in [one for one in _unfinished if not one.unfinished]:
            _unfinished.discard(profiler)
        if _unfinished:
            raise AlreadyRunning(
                "JAX is still writing the trace that you gave up: wait for it to end, or restart the kernel."
            )
        if _current_session() is None:
            return
        if not _recover_if_dead():
            raise AlreadyRunning(_RUNNING)
        self.notices.append(
            "An earlier trace had failed while it was written and left JAX's profiler 'already started'; "
            "it was set free before this trace."
        )

    def _recover(self) -> None:
        if _current_session() is self._session and self._session is not None and not _reset():
            self.notices.append(
                "JAX's profiler is stuck after this failure and can't be set free in this version of JAX: "
                "restart the kernel before the next trace."
            )


_unfinished: set[Profiler] = set()

_RUNNING = (
    "Another trace is running in this kernel (jax.profiler.start_trace, jax.profiler.trace or a capture "
    "through jax.profiler.start_server), and JAX can only take one at a time. It was left alone: end it with "
    "jax.profiler.stop_trace() (if that fails, restart the kernel), then try again."
)


def _progress(seconds: int, *, interrupted: bool) -> str:
    if interrupted:
        return f"Interrupted; finishing the trace ({seconds} s so far). Interrupt once more to give it up."
    return f"Writing the trace ({seconds} s so far) ..."


def _not_started(error: RuntimeError) -> ProfilerError:
    text = _first_line(error)
    if _is_busy(error):
        return AlreadyRunning(_RUNNING)
    return ProfilerError(f"JAX's profiler did not start. It says: {text}")


def _is_busy(error: RuntimeError) -> bool:
    return "already been started" in str(error) or "ALREADY_EXISTS" in str(error)


def _not_written(error: BaseException) -> ProfilerError:
    text = _first_line(error)
    if isinstance(error, RuntimeError) and "No profile started" in text:
        return StoppedByCell(
            "The traced code called jax.profiler.stop_trace() itself, which ended the trace early."
        )
    if isinstance(error, RuntimeError) and _is_busy(error):  # XLA tells that only at the end
        return ProfilerError(
            "Another trace was running in this process (somebody captured it through "
            "jax.profiler.start_server, say), and XLA records for one at a time: this trace recorded "
            "nothing. Run the cell again."
        )
    remedy = "Run the cell again, with less of it traced if that helps."
    if "RESOURCE_EXHAUSTED" in text or "No space left" in text:
        remedy = "The disk is full: free some space, or write elsewhere with --dir."
    return ProfilerError(f"JAX's profiler could not write the trace. It says: {text} {remedy}")


def _first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    line = text[0] if text else type(error).__name__
    return line if line.endswith(".") else line + "."


def _profile_state() -> Any:
    from jax._src import profiler

    return getattr(profiler, "_profile_state", None)


def _current_session() -> object:
    """Give the session that runs (or hangs) in jax.profiler, None where there is none or JAX doesn't tell."""
    state = _profile_state()
    # profile_session until JAX 0.11, session from 0.12 on
    return getattr(state, "profile_session", None) or getattr(state, "session", None)


def _reset() -> bool:
    """Make jax.profiler forget its session; False where this JAX has no way to do that."""
    reset = getattr(_profile_state(), "reset", None)
    if reset is None:
        return False
    reset()
    return _current_session() is None


def _recover_if_dead() -> bool:
    """Reset jax.profiler if its session has ended already; True when it is free now.

    XLA allows one living session. So one more works exactly when the one that jax.profiler holds is dead.
    """
    try:
        from jax._src.lib import _profiler  # pyright: ignore[reportAttributeAccessIssue]

        _profiler.ProfilerSession(_quiet_options()).stop()
    except (ImportError, AttributeError, TypeError, RuntimeError):
        return False
    return _reset()


def _quiet_options() -> Any:
    import jax

    options = jax.profiler.ProfileOptions()
    options.host_tracer_level = 0
    options.python_tracer_level = 0
    return options


def _lets_go_of_gil() -> bool:
    """Tell whether other threads run while JAX writes a trace; before JAX 0.9, none does.

    The same change of jaxlib's bindings brought the session id.
    """
    import jax

    return hasattr(jax.profiler.ProfileOptions, "session_id")
