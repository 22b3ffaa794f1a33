"""`%jaxprof report`, `%jaxprof compare`, `%jaxprof import` and `%jaxprof explain`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyterlab_jaxprof import reports
from jupyterlab_jaxprof.captures import Capture, Store, StoreError

from .arguments import identifier, read, split, usage_error
from .display import Display
from .jaxprof_arguments import parser

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_REPORT = "%jaxprof report"
_COMPARE = "%jaxprof compare"
_IMPORT = "%jaxprof import"


def report(shell: InteractiveShell, line: str) -> None:
    """Show the card of a capture, or of any trace or report."""
    __tracebackhide__ = True
    values = read(parser(_REPORT), split(_REPORT, line))
    if not values.name:
        raise usage_error(_REPORT, "it needs the name or identifier of a capture, or a path.")
    variable = identifier(_REPORT, values.save)
    try:
        found = reports.report(Store.default(), values.name)
    except reports.ReportError as error:
        raise usage_error(_REPORT, str(error)) from None
    if variable:
        shell.user_ns[variable] = Capture(found.record, found.directory)
    if values.json:
        _print_json(found.to_json())
    else:
        Display(shell, show_card=True).card(found.record, found.directory, in_store=found.in_store)


def compare(shell: InteractiveShell, line: str) -> None:
    """Show what changed from one capture, trace or report to others."""
    __tracebackhide__ = True
    values = read(parser(_COMPARE), split(_COMPARE, line))
    if not values.name or not values.after:
        raise usage_error(_COMPARE, "it needs two captures or paths: the one before, and the one after.")
    variable = identifier(_COMPARE, values.save)
    try:
        found = reports.side_by_side(Store.default(), [values.name, *values.after])
    except reports.ReportError as error:
        raise usage_error(_COMPARE, str(error)) from None
    if variable:
        shell.user_ns[variable] = found
    if values.json:
        _print_json(found.to_json())
    else:
        display = Display(shell, show_card=True)
        text, html = reports.columns.text(found, display.paper), reports.columns.html(found)
        display.show({"text/plain": text, "text/html": html})


def import_file(shell: InteractiveShell, line: str) -> None:
    """Make a capture of a file, and show its card."""
    __tracebackhide__ = True
    values = read(parser(_IMPORT), split(_IMPORT, line))
    if not values.name:
        raise usage_error(_IMPORT, "it needs the path of a trace, a report or an archive of a capture.")
    variable = identifier(_IMPORT, values.save)
    store = Store.default()
    try:
        record = reports.import_path(store, Path(values.name).expanduser(), name=values.called)
        directory = store.directory(record.id)
    except (reports.ReportError, StoreError) as error:
        raise usage_error(_IMPORT, str(error)) from None
    if variable:
        shell.user_ns[variable] = Capture(record, directory)
    if values.json:
        _print_json(record.to_json() | {"directory": str(directory)})
    else:
        Display(shell, show_card=True).card(record, directory, in_store=True)


def explain(shell: InteractiveShell, line: str) -> None:
    """Show the documentation's page about a finding."""
    __tracebackhide__ = True
    try:
        page = reports.page_of(line)
    except reports.ReportError as error:
        raise usage_error("%jaxprof explain", str(error)) from None
    Display(shell, show_card=True).show({"text/plain": reports.as_text(page), "text/markdown": page})


def _print_json(data: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(data, ensure_ascii=False, indent=1) + "\n")
