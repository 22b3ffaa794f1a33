"""The commands. Each returns whether it found what its exit status must tell."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jupyterlab_jaxprof import reports
from jupyterlab_jaxprof.captures import Row, Store, StoreError
from jupyterlab_jaxprof.cards import plain, units
from jupyterlab_jaxprof.cards.block_text import lines_of
from jupyterlab_jaxprof.cards.blocks import Row as TableRow
from jupyterlab_jaxprof.cards.blocks import Table

from .fail_on import matched, patterns, untold
from .output import Output

__all__ = ["COMMANDS"]

_PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"
_WIDE = 100
_MOST_NAMES = 4


def _report(store: Store, asked: Namespace, output: Output) -> bool:
    """Show one report; True where --fail-on matches a finding of it."""
    wanted = patterns(asked.fail_on) if asked.fail_on is not None else []
    found = reports.report(store, asked.target)
    if asked.html is not None:
        _write_page(Path(asked.html), found.page())
    if asked.json:
        output.write_json(found.to_json())
    else:
        output.write(found.text(output.paper))
    hits = matched(found.record.findings, wanted)
    if hits:
        output.complain(f"jaxprof report: --fail-on {asked.fail_on} found: {'; '.join(hits)}.")
    elif wanted and "timeline" not in found.record.summary:
        raise reports.ReportError(
            f"--fail-on can't tell: {found.record.name!r}, of kind {found.record.kind!r}, has no findings."
        )
    _warn_of_untold(found.record.summary, wanted, output)
    return bool(hits)


def _warn_of_untold(summary: Mapping[str, Any], wanted: Sequence[str], output: Output) -> None:
    """Say which of the findings asked for could not have been there, so that silence isn't taken for well."""
    blind = (summary.get("timeline") or {}).get("blind") or ()
    names = untold(wanted, blind)
    if names:
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        output.complain(
            f"jaxprof report: --fail-on can't tell {', '.join(names[:_MOST_NAMES])}{more}: the recorder did "
            f"not see {reports.not_seen(blind, names)}."
        )


def _compare(store: Store, asked: Namespace, output: Output) -> bool:
    """Show what changed."""
    found = reports.side_by_side(store, [asked.before, *asked.after])
    if asked.json:
        output.write_json(found.to_json())
    else:
        output.write(reports.columns.text(found, output.paper))
    return False


def _import(store: Store, asked: Namespace, output: Output) -> bool:
    """Make a capture of a file, and show its card."""
    try:
        record = reports.import_path(store, Path(asked.path), name=asked.name, move=asked.move)
    except (reports.ReportError, StoreError) as error:
        if asked.json:
            existing = error.capture_id if isinstance(error, reports.DuplicateError) else None
            output.write_json({"message": str(error), "existing": existing})
        raise
    directory = store.directory(record.id)
    if asked.json:
        output.write_json(record.to_json() | {"directory": str(directory)})
    else:
        output.write(plain(record, directory=directory, in_store=True, paper=output.paper))
    return False


def _explain(store: Store, asked: Namespace, output: Output) -> bool:
    """Show the page about a finding."""
    output.write(reports.as_text(reports.page_of(asked.pattern)).rstrip())
    return False


def _doctor(store: Store, asked: Namespace, output: Output) -> bool:
    """Show what is here; True where something needed is missing."""
    checked = reports.check_up(store, _devices)
    if asked.json:
        output.write_json(checked.to_json())
    else:
        output.write(reports.doctor(checked, store).text(output.paper))
    return not checked.is_sound


def _list(store: Store, asked: Namespace, output: Output) -> bool:
    """List captures, the newest first."""
    page = store.list(limit=asked.n)
    if asked.json:
        output.write_json(page.to_json())
        return False
    for problem in page.problems:
        output.complain(f"jaxprof list: {problem}")
    if not page.rows:
        output.write(f"The store ({store.root}) holds no capture.")
        return False
    more = page.total - len(page.rows)
    wide = output.paper.width >= _WIDE  # an identifier tells the time too
    table = Table(
        "",
        ["name", "kind", "status", "", "size", *(["taken"] if wide else []), "identifier"],
        [_row(row, wide=wide) for row in page.rows],
        f"and {units.count(more)} more" if more > 0 else "",
    )
    output.write("\n".join(line.removeprefix("  ") for line in lines_of(table, output.paper)))
    return False


def _row(row: Row, *, wide: bool) -> TableRow:
    record = row.record
    headline: Mapping[str, Any] = (record.summary.get("headline") if record else None) or {}
    value = units.quantity(headline.get("value"), str(headline.get("unit") or "")) if headline else ""
    return TableRow(
        [
            row.name,
            row.kind,
            str(record.status) if record else "unreadable",
            value,
            units.size(row.disk_bytes),
            *([units.moment(record.created) if record else ""] if wide else []),
            row.id,
        ],
        row.problem or "",
    )


def _devices() -> Sequence[Mapping[str, Any]]:
    """Ask JAX for its devices, without taking the GPU's memory from the kernels that work there."""
    from jupyterlab_jaxprof import tracing

    if _PREALLOCATE in os.environ:
        return tracing.devices()
    os.environ[_PREALLOCATE] = "false"
    try:
        return tracing.devices()
    finally:
        del os.environ[_PREALLOCATE]


def _install_nsys_kernel(store: Store, asked: Namespace, output: Output) -> bool:
    """Make the kernelspec by which nsys starts this Python's kernel, or remove it."""
    from jupyterlab_jaxprof.nsight import kernelspec

    try:
        said = kernelspec.done(
            f"jaxprof {asked.command}",
            name=asked.name,
            display_name=asked.display_name,
            trace=asked.trace,
            osrt=asked.osrt,
            in_environment=asked.sys_prefix,
            removes=asked.remove,
        )
    except kernelspec.KernelspecError as error:
        raise reports.ReportError(str(error)) from None
    output.write(said.rstrip())
    return False


def _write_page(path: Path, page: str) -> None:
    try:
        path.write_text(page, "utf-8")
    except OSError as error:
        raise reports.ReportError(f"{path} can't be written: {error.strerror or error}.") from error


#: By its name, what runs each.
COMMANDS: dict[str, Callable[[Store, Namespace, Output], bool]] = {
    "report": _report,
    "compare": _compare,
    "explain": _explain,
    "import": _import,
    "doctor": _doctor,
    "list": _list,
    "install-nsys-kernel": _install_nsys_kernel,
}
