"""Which HLO operation each thing on the device belongs to.

XLA pushes a range `XlaModule` around a program's run and `Thunk` around each operation's launch. So a
launch's operation is the innermost range that is open on its thread at that time. A CUDA graph is launched
as one thing; its kernels were put into it earlier, while a `Thunk` was open too: the report tells when each
of the graph's nodes was made, and from which node of another graph it was cloned. Where that was before
recording began, an update of the graph or XLA's name of the kernel tells the operation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .build import Texts
from .figures import read_number
from .model import Numbers
from .nsight_activity import Activity, Calls
from .nsight_database import Database, IntegerColumn
from .nsight_hlo import HloTexts, Operation, base_name
from .nsight_nesting import Nest, nest, order
from .nsight_places import Places, distinct
from .nsight_ranges import Ranges
from .nsight_updates import Updates, graphs

_MODULE, _THUNK = "XlaModule", "Thunk"
_GRAPH_OPERATION = "command_buffer"
_TRIED_UPDATES = 20


@dataclass(frozen=True)
class Origins:
    """Of each activity, as numbers of texts: module, its program's id, operation, scope and source line."""

    module: Numbers
    program: NDArray[np.int64]
    hlo_op: Numbers
    scope: Numbers
    source: Numbers


class XlaRanges:
    """XLA's ranges of modules and thunks, to be asked for the innermost ones."""

    def __init__(self, ranges: Ranges) -> None:
        self.names = ranges.xla_names()
        kinds = np.array([name.kind if name else "" for name in self.names] + [""], dtype=object)
        is_module, is_thunk = kinds == _MODULE, kinds == _THUNK
        rows = np.flatnonzero((is_module | is_thunk)[ranges.name]) if len(ranges) else np.zeros(0, np.int64)
        thread, start, end = (
            column[rows].astype(np.int64) for column in (ranges.thread, ranges.start, ranges.end)
        )
        ordered = order(thread, start, end)
        self._name = ranges.name[rows][ordered]
        self._nest: Nest = nest(thread[ordered], start[ordered], end[ordered])[0]
        self._module = self._nest.nearest(is_module[self._name])
        self._thunk = self._nest.nearest(is_thunk[self._name])

    def at(self, thread: IntegerColumn, time: IntegerColumn) -> tuple[IntegerColumn, IntegerColumn]:
        """Give the names (numbers, -1: none) of the module and the thunk that are open at these times."""
        row = self._nest.innermost(thread, time)
        return self._named(self._module, row), self._named(self._thunk, row)

    def _named(self, around: IntegerColumn, row: IntegerColumn) -> IntegerColumn:
        if not len(around):
            return np.full(len(row), -1, dtype=np.int64)
        found = np.where(row >= 0, around[row], -1)
        return np.where(found >= 0, self._name[found], -1)


def join(
    activity: Activity,
    calls: Calls,
    ranges: Ranges,
    nodes: tuple[IntegerColumn, IntegerColumn, IntegerColumn, IntegerColumn],
    hlo: HloTexts,
    texts: Texts,
) -> Origins:
    """Find what each activity belongs to; `nodes` is what `read_nodes` gives."""
    xla = XlaRanges(ranges)
    call = calls.of(activity)
    launched = np.flatnonzero(call >= 0)
    module = np.full(len(activity), -1, dtype=np.int64)
    thunk = module.copy()
    rows = call[launched]
    module[launched], thunk[launched] = xla.at(calls.thread[rows].astype(np.int64), calls.start[rows])
    inside = np.flatnonzero(activity.node > 0)
    if len(inside):
        made = _thunks_of_nodes(activity, inside, nodes, xla)
        thunk[inside] = np.where(made >= 0, made, thunk[inside])
        unknown = inside[made < 0]
        updated = _thunks_of_updates(activity, unknown, call, calls, xla, hlo, texts)
        thunk[unknown] = np.where(updated >= 0, updated, thunk[unknown])
    return _described(activity, module, thunk, xla, hlo, texts)


def read_nodes(
    database: Database, places: Places
) -> tuple[IntegerColumn, IntegerColumn, IntegerColumn, IntegerColumn]:
    """Read when the nodes of CUDA graphs were made: the node, the one it was cloned from, thread and time.

    2022.4 has them in CUDA_GRAPH_EVENTS, which newer versions keep for whole graphs.
    """
    for name in ("CUDA_GRAPH_NODE_EVENTS", "CUDA_GRAPH_EVENTS"):
        table = database.table(name)
        if table is not None and database.has(table, "graphNodeId", "globalTid", "start"):
            read = database.integers(table, "graphNodeId", "originalGraphNodeId", "globalTid", "start")
            process = places.processes(read["globalTid"])
            thread = places.threads(read["globalTid"]).astype(np.int64)
            original = _node_key(process, read["originalGraphNodeId"])
            original[read["originalGraphNodeId"] == 0] = 0
            return _node_key(process, read["graphNodeId"]), original, thread, read["start"]
    none = np.zeros(0, dtype=np.int64)
    return none, none, none, none


def _node_key(process: IntegerColumn, node: IntegerColumn) -> IntegerColumn:
    return node + (process << 56)  # a node's number has a graph's number above 32 bits of its own


def _thunks_of_nodes(
    activity: Activity,
    rows: IntegerColumn,
    nodes: tuple[IntegerColumn, IntegerColumn, IntegerColumn, IntegerColumn],
    xla: XlaRanges,
) -> IntegerColumn:
    """Give the thunk that was open when a row's node, or the one that it was cloned from, was made."""
    node, original, thread, time = nodes
    wanted, which = np.unique(_node_key(activity.process[rows], activity.node[rows]), return_inverse=True)
    thunk_made = xla.at(thread, time)[1]
    thunk_of: dict[int, int] = {}
    clone_of: dict[int, int] = {}
    for key, source, thunk in zip(node.tolist(), original.tolist(), thunk_made.tolist(), strict=True):
        if thunk >= 0:
            thunk_of.setdefault(key, thunk)
        if source:
            clone_of[key] = source
    found: list[int] = []
    for key in wanted.tolist():
        # The first of the chain was made for the operation; its clones are made whenever a graph is.
        chain = [key]
        while (source := clone_of.get(chain[-1])) is not None and source not in chain:
            chain.append(source)
        found.append(next((thunk_of[one] for one in reversed(chain) if one in thunk_of), -1))
    return np.array(found, dtype=np.int64)[which.reshape(-1)]


def _thunks_of_updates(
    activity: Activity,
    rows: IntegerColumn,
    call: IntegerColumn,
    calls: Calls,
    xla: XlaRanges,
    hlo: HloTexts,
    texts: Texts,
) -> IntegerColumn:
    """Give the thunks of nodes by an update of the whole graph, where there is one that fits the kernels."""
    thunk = np.full(len(activity), -1, dtype=np.int64)
    launches = np.unique(call[rows][call[rows] >= 0])
    all_texts = texts.all()
    updates = Updates(calls, all_texts, launches)
    for graph in graphs(activity, rows) if len(updates.rows) else ():
        nodes, first, which = np.unique(activity.node[graph], return_index=True, return_inverse=True)
        kernels = [all_texts[number] for number in activity.name[graph[first]].tolist()]
        own = np.unique(call[graph][call[graph] >= 0])
        for launch in own[:_TRIED_UPDATES].tolist():
            setting = updates.of_nodes(launch, nodes)
            if setting is None:
                continue
            module, setters = xla.at(calls.thread[setting].astype(np.int64), calls.start[setting])
            if all(
                _fits(xla, int(one), int(within), kernel, hlo)
                for one, within, kernel in zip(setters, module, kernels, strict=True)
            ):
                thunk[graph] = setters[which.reshape(-1)]
                break
    return thunk[rows]


def _fits(xla: XlaRanges, thunk: int, module: int, kernel: str, hlo: HloTexts) -> bool:
    """Tell whether a kernel can be that of a thunk: of its name, or a library's."""
    thunk_name = xla.names[thunk] if thunk >= 0 else None
    module_name = xla.names[module] if module >= 0 else None
    if thunk_name is None or module_name is None:
        return False
    operation = thunk_name.fields.get("hlo_op", "")
    if operation.startswith(_GRAPH_OPERATION):
        return False
    named = hlo.of_kernel(module_name.fields.get("hlo_module", ""), kernel, shared=True)
    return named is None or base_name(named.name) == base_name(operation)


def _described(
    activity: Activity,
    module: IntegerColumn,
    thunk: IntegerColumn,
    xla: XlaRanges,
    hlo: HloTexts,
    texts: Texts,
) -> Origins:
    """Look each different combination up once."""
    _modules, which_module = distinct(module)
    thunks, which_thunk = distinct(thunk)
    names, which_name = distinct(activity.name)
    shared = _shared_kernels(activity, which_name)
    key = ((which_module * len(thunks) + which_thunk) * len(names) + which_name) * 2 + shared
    keys, first_row, which = _first_rows(key)
    all_texts = texts.all()
    described: list[tuple[str, int, Operation]] = []
    for row in first_row.tolist():
        module_name = xla.names[int(module[row])] if module[row] >= 0 else None
        thunk_name = xla.names[int(thunk[row])] if thunk[row] >= 0 else None
        in_module = module_name.fields.get("hlo_module", "") if module_name else ""
        program = module_name.fields.get("program_id", "") if module_name else ""
        operation = Operation("")
        if thunk_name is not None:
            fields = thunk_name.fields
            operation = hlo.operation(
                in_module,
                fields.get("hlo_op", ""),
                fields.get("name", ""),
                fields.get("unique_hlo_op_id", ""),
            )
        if operation.name.startswith(_GRAPH_OPERATION) and activity.node[row] > 0:
            kernel = all_texts[int(activity.name[row])]
            operation = hlo.of_kernel(in_module, kernel, bool(shared[row])) or operation
        described.append((in_module, read_number(program, -1), operation))
    del keys
    return Origins(
        module=texts.numbers(one[0] for one in described)[which],
        program=np.array([one[1] for one in described], dtype=np.int64)[which],
        hlo_op=texts.numbers(one[2].name for one in described)[which],
        scope=texts.numbers(one[2].scope for one in described)[which],
        source=texts.numbers(one[2].source for one in described)[which],
    )


def _shared_kernels(activity: Activity, which_name: NDArray[np.intp]) -> NDArray[np.int64]:
    """Tell which rows are kernels that several nodes of one graph run."""
    shared = np.zeros(len(activity), dtype=np.int64)
    rows = np.flatnonzero(activity.node > 0)
    if len(rows):
        node = _node_key(activity.process[rows], activity.node[rows])
        _nodes, which = np.unique(node, return_inverse=True)
        first = np.unique(which.reshape(-1), return_index=True)[1]
        graph = (activity.process[rows] << 32) + activity.graph[rows]
        pair = (
            np.unique(graph, return_inverse=True)[1].reshape(-1) * (1 + int(which_name.max()))
            + which_name[rows]
        )
        pairs, which_pair = distinct(pair)
        nodes_of = np.bincount(which_pair[first], minlength=len(pairs))
        shared[rows] = nodes_of[which_pair] > 1
    return shared


def _first_rows(key: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.intp]]:
    keys, which = distinct(key)
    first = np.zeros(len(keys), dtype=np.int64)
    first[which[::-1]] = np.arange(len(key))[::-1]
    return keys, first, which
