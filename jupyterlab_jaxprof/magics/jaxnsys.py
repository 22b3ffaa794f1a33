"""%%nsys: the cell under Nsight Systems, in a clean process with the notebook's variables."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import linecache
import sys
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from IPython.core.error import UsageError

from jupyterlab_jaxprof.captures import Capture, Draft, Store, StoreError
from jupyterlab_jaxprof.cell import Barrier, Cell, cell_id, notebook_name
from jupyterlab_jaxprof.environment import nsys
from jupyterlab_jaxprof.nsight import trial
from jupyterlab_jaxprof.nsight.carry import CarryError, Options, Plan, Sources, plan
from jupyterlab_jaxprof.nsight.carry.names import names_of_body
from jupyterlab_jaxprof.nsight.carry.returned import read_back
from jupyterlab_jaxprof.nsight.errors import remade
from jupyterlab_jaxprof.nsight.flags import FlagError, Flags, Wishes, flags
from jupyterlab_jaxprof.nsight.run import Program, Result, Run
from jupyterlab_jaxprof.nsight.surroundings import jax_cache
from jupyterlab_jaxprof.timing.variables import backend_has_started
from jupyterlab_jaxprof.tracing import Source

from . import jaxnsys_in_kernel
from .arguments import asks_for_help, usage_error
from .defaults import with_defaults
from .display import Display
from .inputs import default_name
from .jaxnsys_arguments import HELP, Arguments, check_gpu_metrics, parse
from .jaxnsys_names import check_names, hint
from .jaxnsys_progress import Progress

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = ["HELP", "cell_magic", "line_magic"]

_MAGIC = "%%nsys"
#: The set-up cells of each shell: their Python texts by what tells them apart, in the order they first ran.
_set_up: WeakKeyDictionary[InteractiveShell, dict[str, str]] = WeakKeyDictionary()


async def cell_magic(shell: InteractiveShell, line: str, body: str) -> object:
    """Run `%%nsys line` over `body`; raises the body's error."""
    __tracebackhide__ = True
    if asks_for_help(line):
        sys.stdout.write(f"{HELP}\nThe cell was not run.\n")
        return None
    given = with_defaults("nsys", _MAGIC, line, functools.partial(parse, _MAGIC), _check)
    arguments = given.arguments
    cell = Cell.from_magic(shell, "nsys", given.line, body)
    if arguments.set_up:
        return await _run_here(shell, cell, arguments)
    check_gpu_metrics(_MAGIC, arguments)
    if arguments.in_kernel:
        return await jaxnsys_in_kernel.cell_magic(shell, cell, arguments, given.notices)
    candidates = _candidates()
    display = Display(shell, show_card=arguments.show_card)
    progress = Progress(shell, display)
    progress.tell("Looking for what the cell needs")
    notices = [*given.notices]
    if backend_has_started():
        notices += Barrier().drain()  # the devices are to be the cell's alone
    with progress.until_it_runs(), _sentences():
        options = _options(shell, arguments)
        _check_names(shell, cell, line, arguments)
        planned = plan(shell.user_ns, list(cell.nodes), sources=Sources.from_shell(shell), options=options)
        notices += _rebound(planned, arguments)
        installation, why = _chosen(candidates, arguments, progress)
        result = _recorded(shell, installation, planned, cell, arguments, notices + why, progress)
    progress.end()
    _bring_back(shell, result, planned, arguments)
    _show(shell, result, arguments, display)
    _conclude(shell, result, planned, arguments)
    return None


def _check_names(shell: InteractiveShell, cell: Cell, line: str, arguments: Arguments) -> None:
    check_names(
        _MAGIC,
        cell.body,
        shell.user_ns,
        dropped=parse(_MAGIC, line).drop,  # a default option is for other notebooks too
        returned=arguments.returned,
        binds=names_of_body(cell.nodes).binds,
    )


def _chosen(
    candidates: list[nsys.Installation], arguments: Arguments, progress: Progress
) -> tuple[nsys.Installation, list[str]]:
    """Give the best nsys that records here what was asked for, and why it is not the best of all."""
    root = Store.default().root
    failed: list[str] = []
    without_report: nsys.Installation | None = None
    for one in candidates:
        verdict = trial.tried(one, arguments.wishes, root, progress)
        if verdict.reports:
            return one, [f"Another nsys was used ({one.path}). {failed[0]}"] if failed else []
        without_report = without_report or (one if verdict.records else None)
        failed.append(verdict.reason)
    if without_report is not None:
        return without_report, []
    plain = Wishes()
    without = ""
    if arguments.wishes != plain and trial.tried(candidates[0], plain, root, progress).records:
        without = " Without what was asked for besides (--sample and the like) it records."
    raise usage_error(_MAGIC, f"a trial of nsys failed. {failed[0]}{without}")


def _recorded(
    shell: InteractiveShell,
    installation: nsys.Installation,
    planned: Plan,
    cell: Cell,
    arguments: Arguments,
    notices: list[str],
    progress: Progress,
) -> Result:
    """Run the cell under nsys; once more where nsys ended before it had started anything, as 2022 may."""
    result: Result | None = None
    for _ in range(2):
        with _begin(shell, arguments) as draft:
            progress.follow(draft, cell.magic)
            run = Run(draft, installation, progress)
            chosen = flags(installation, arguments.wishes, run.output)
            chosen = Flags(chosen.arguments, (*notices, *chosen.notices))
            result = _capture(run, planned, cell, arguments, chosen)
        if not result.has_nsys_failed:
            return result
    assert result is not None
    trial.forget(installation, arguments.wishes, Store.default().root)
    return result


def _capture(run: Run, planned: Plan, cell: Cell, arguments: Arguments, chosen: Flags) -> Result:
    cache, problem = jax_cache(Store.default().root)
    if problem:
        chosen = Flags(chosen.arguments, (*chosen.notices, problem))
    program = Program(
        codes=cell.codes,
        filename=cell.filename,
        text="".join(linecache.getlines(cell.filename)),
        steps=arguments.steps,
        warm_up=arguments.warm_up,
        graphs=arguments.graphs,
        returned=arguments.returned,
        keep_env=arguments.keep_env,
    )
    source = Source(notebook_name(), cell.magic, cell.body, cell.place.told)
    return run.capture(planned, program, chosen, source, cache)


def _show(shell: InteractiveShell, result: Result, arguments: Arguments, display: Display) -> None:
    """Show the card, or what went wrong where there is nothing to keep."""
    record, directory = result.record, result.directory
    if record is None or directory is None:
        if _is_raised(result):
            display.complain(_said(result))
        else:
            display.replace("Nothing was recorded.")
        return
    if arguments.save:
        shell.user_ns[arguments.save] = Capture(record, directory)
    display.card(record, directory, in_store=not arguments.directory)


def _is_raised(result: Result) -> bool:
    """Whether the cell ends with the body's own error, or the user's interrupt."""
    return result.interrupted or result.ran.error is not None


def _said(result: Result) -> str:
    text = " ".join([result.outcome.reason, *result.outcome.notices])
    return text or "Nothing was recorded, and nobody said why."


def _conclude(shell: InteractiveShell, result: Result, planned: Plan, arguments: Arguments) -> None:
    """Raise what the body raised, the user's interrupt, or that the program crashed or nothing was recorded.

    So what runs one cell after another stops here.
    """
    __tracebackhide__ = True
    error = result.ran.error
    if result.interrupted:
        raise KeyboardInterrupt
    if error is not None:
        made = remade(error["error"], lambda filename: _label(shell, filename))
        said = hint(error["error"], shell.user_ns, planned.variables, arguments.drop)
        made.lines = [*made.lines, *([said] if said else [])]
        raise made
    if result.record is None:
        raise UsageError(f"{_MAGIC}: {_said(result)}")
    if result.ran.done is None:
        raise UsageError(f"{_MAGIC}: {result.outcome.reason}")


def _label(shell: InteractiveShell, filename: str) -> str | None:
    named = shell.compile.format_code_name(filename)
    return " ".join(named) if named else None


def _bring_back(shell: InteractiveShell, result: Result, planned: Plan, arguments: Arguments) -> None:
    """Set the variables that --return names."""
    back = result.back
    if back is None:
        return
    try:
        if (values := back.path / "values").exists():
            shell.user_ns.update(read_back(values, shell.user_ns, planned.classes))
        else:
            sys.stderr.write(f"{', '.join(arguments.returned)} did not come back: the cell did not end.\n")
    except Exception as error:  # noqa: BLE001 - what is unpickled is the user's own
        sys.stderr.write(
            f"{', '.join(arguments.returned)} did not come back ({type(error).__name__}: {error}).\n"
        )
    finally:
        back.close()


def _rebound(planned: Plan, arguments: Arguments) -> list[str]:
    # `for _ in ...` means no variable; IPython's own are named so
    names = [name for name in planned.rebinds if name.strip("_") and name not in arguments.returned]
    if not names:
        return []
    listed = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    verb = "keeps its value" if len(names) == 1 else "keep their values"
    return [
        f"The cell assigns to {listed}: the notebook's {verb}, for the cell ran in another process "
        f"(--return {','.join(names[:3])} brings it back)."
    ]


async def _run_here(shell: InteractiveShell, cell: Cell, arguments: Arguments) -> object:
    """Run a set-up cell in the notebook, and remember it once it has run."""
    __tracebackhide__ = True
    value: Any = None
    for code in cell.codes:
        value = eval(code, shell.user_global_ns, shell.user_ns)
        if code.co_flags & inspect.CO_COROUTINE:
            value = await value
    key = arguments.name or cell_id(shell) or hashlib.sha256(cell.body.encode()).hexdigest()
    _set_up.setdefault(shell, {})[key] = shell.transform_cell(cell.body)
    sys.stdout.write(f"This cell is run by {_MAGIC} too, before what it records. %nsys forget forgets it.\n")
    return value


def _options(shell: InteractiveShell, arguments: Arguments) -> Options:
    return Options(
        drop=arguments.drop,
        set_up=tuple(_set_up.get(shell, {}).values()),
        shapes_only=arguments.shapes_only,
    )


def _candidates() -> list[nsys.Installation]:
    """Give every nsys that runs, the best first."""
    found = list(nsys.installations())
    usable = [one for one in found if one.usable]
    if not found:
        raise usage_error(
            _MAGIC, f"there is no nsys (NVIDIA Nsight Systems) on this machine. {nsys.HOW_TO_GET}"
        )
    if not usable:
        raise usage_error(_MAGIC, f"{found[0].problem} {found[0].remedy}")
    return usable


def _check(arguments: Arguments) -> None:
    """Refuse, as default options, what this machine or its nsys can't do."""
    check_gpu_metrics(_MAGIC, arguments)
    with _sentences():
        flags(_candidates()[0], arguments.wishes, Path("report"))


def _begin(shell: InteractiveShell, arguments: Arguments) -> Draft:
    """Start a capture before anything runs, so that a full or read-only disk is told now."""
    name = arguments.name or default_name(shell)
    if arguments.directory:
        return Store.begin_in(arguments.directory, "nsys", name)
    return Store.default().begin("nsys", name)


def line_magic(shell: InteractiveShell, line: str) -> object:
    """Run `%nsys line`."""
    __tracebackhide__ = True
    command, _, rest = line.strip().partition(" ")
    if command == "help" or asks_for_help(line):
        sys.stdout.write(HELP)
    elif command == "start":
        jaxnsys_in_kernel.start(shell, rest)
    elif command == "stop":
        jaxnsys_in_kernel.stop(shell, rest)
    elif command in ("try", "forget") and rest.strip():
        raise usage_error("%nsys", f"%nsys {command} takes nothing more, and '{rest.strip()}' stands there.")
    elif command == "forget":
        count = len(_set_up.pop(shell, {}))
        forgotten = "The set-up cell is forgotten." if count == 1 else f"{count} set-up cells are forgotten."
        sys.stdout.write(f"{forgotten}\n" if count else "There was no set-up cell.\n")
    elif command == "try":
        _try_all(shell)
    elif not command:
        _tell(shell)
    else:
        raise usage_error(
            "%nsys",
            f"it knows no '{command}'. Put %%nsys (two percent signs) on the first line of a cell to record "
            "that cell; %nsys start and %nsys stop record a kernel that nsys has started; %nsys try "
            "tries every nsys, %nsys forget forgets the set-up cells.",
        )
    return None


def _try_all(shell: InteractiveShell) -> None:
    """Try every nsys anew, as it records by default, and tell what came of it."""
    __tracebackhide__ = True
    progress = Progress(shell, Display(shell, show_card=False))
    with _sentences():
        for one in _candidates():
            verdict = trial.tried(one, Wishes(), Store.default().root, progress, anew=True)
            progress.clear_line()
            what = "records." if verdict.reports else verdict.reason
            sys.stdout.write(f"{one.path} ({one.version_text or 'version not known'}): {what}\n")


def _tell(shell: InteractiveShell) -> None:
    found = nsys.best()
    if found is None:
        sys.stdout.write(f"There is no nsys here. {nsys.HOW_TO_GET}\n")
    else:
        sys.stdout.write(f"{found.path} ({found.version_text or 'version not known'}) is used.\n")
        if found.importer is not None and not found.imports and found.usable:
            sys.stdout.write(f"Its reports are made by {found.importer}, which %%nsys runs itself.\n")
        elif found.problem:
            sys.stdout.write(f"{found.problem}\n")
    sys.stdout.write(jaxnsys_in_kernel.status())
    cells = _set_up.get(shell, {})
    for text in cells.values():
        first = text.strip().partition("\n")[0]
        sys.stdout.write(f"Set-up cell: {first[:80]}\n")


@contextlib.contextmanager
def _sentences() -> Generator[None]:
    """Let IPython print what we know as one sentence of the magic, without a traceback."""
    __tracebackhide__ = True
    try:
        yield
    except KeyboardInterrupt:  # wherever it struck, in imports of JAX's for one, is no matter of the user's
        raise KeyboardInterrupt from None
    except (CarryError, FlagError, StoreError) as error:
        raise usage_error(_MAGIC, str(error)) from None
    except OSError as error:
        raise usage_error(
            _MAGIC, f"the disk refuses what the capture needs: {error.strerror or error} ({error.filename})."
        ) from None
