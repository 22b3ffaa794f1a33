"""A notebook whose state is carried, in processes of their own: JAX has four devices there.

`python -m tests.nsight.notebook parent FILE` runs the cells of a specification in a real IPython shell, plans,
writes, and tells what each body gives there; `child FILE` restores and tells what each body gives.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


@dataclass
class Case:
    """Bodies that are carried by one plan; each leaves a value in `result`, which the two processes compare."""

    bodies: dict[str, str]
    options: dict[str, Any] = field(default_factory=dict)


@dataclass
class Told:
    """What became of a case: the plan's error, or what each body gave in the notebook and in the child."""

    error: str = ""
    parent: dict[str, str] = field(default_factory=dict)
    child: dict[str, str] = field(default_factory=dict)
    variables: list[str] = field(default_factory=list)
    rebinds: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)


def carry(folder: Path, cells: list[str], cases: dict[str, Case], **environment: str) -> dict[str, Told]:
    """Run a notebook's cells, carry each case, and give what came of it."""
    folder.mkdir(parents=True, exist_ok=True)
    spec = {
        "cells": cells,
        "cases": {
            name: {"bodies": case.bodies, "options": case.options, "folder": str(folder / f"carried-{name}")}
            for name, case in cases.items()
        },
    }
    path = folder / "spec.json"
    path.write_text(json.dumps(spec))
    flags = "--xla_force_host_platform_device_count=4"
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": flags,
        "IPYTHONDIR": str(folder / "ipython"),
        **environment,
    }
    told = {name: Told(**said) for name, said in _process("parent", path, folder, environment).items()}
    for name, case in told.items():
        if not case.error:
            said = _process("child", path, folder, environment, name)
            case.child, case.notices, case.modules = said["results"], said["notices"], said["modules"]
    return told


def _process(role: str, path: Path, folder: Path, environment: dict[str, str], *arguments: str) -> dict[str, Any]:
    out = path.with_name(f"{role}.json")
    done = subprocess.run(
        [sys.executable, "-m", "tests.nsight.notebook", role, str(path), str(out), *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(out.read_text())


def _results(bodies: dict[str, str], names: dict[str, Any]) -> dict[str, str]:
    results = {}
    for label, body in bodies.items():
        names.pop("result", None)
        try:
            exec(compile(body, f"<{label}>", "exec"), names)
            results[label] = repr(names.pop("result", None))
        except BaseException as error:  # noqa: BLE001 - told as the body's result
            results[label] = f"!{type(error).__name__}: {error}"
            traceback.print_exc()
    return results


def parent(path: str, out: str) -> None:
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    from jupyterlab_jaxprof.nsight.carry import CarryError, Options, Sources, plan

    spec = json.loads(Path(path).read_text())
    config = Config()
    config.HistoryManager.hist_file = ":memory:"
    shell = InteractiveShell.instance(config=config)
    for cell in spec["cells"]:
        ran = shell.run_cell(cell, store_history=True)
        ran.raise_error()
    said: dict[str, Any] = {}
    for name, case in spec["cases"].items():
        options = {key: frozenset(value) if key == "drop" else value for key, value in case["options"].items()}
        body = shell.transform_cell("\n".join(case["bodies"].values()))
        try:
            planned = plan(shell.user_ns, body, sources=Sources.from_shell(shell), options=Options(**options))
            planned.write(Path(case["folder"]))
        except CarryError as error:
            said[name] = {"error": str(error)}
        else:
            said[name] = {"variables": planned.variables, "rebinds": planned.rebinds}
    for name, case in spec["cases"].items():
        if "error" not in said[name]:
            ast.parse(shell.transform_cell("\n".join(case["bodies"].values())))
            said[name]["parent"] = _results(case["bodies"], shell.user_ns)
    Path(out).write_text(json.dumps(said))


def child(path: str, out: str, name: str) -> None:
    from jupyterlab_jaxprof.nsight.carry.restore import restore

    case = json.loads(Path(path).read_text())["cases"][name]
    before = set(sys.modules)
    restored = restore(Path(case["folder"]))
    modules = sorted({module.partition(".")[0] for module in set(sys.modules) - before})
    results = _results(case["bodies"], restored.namespace)
    said = {"results": results, "notices": restored.notices, "modules": modules}
    Path(out).write_text(json.dumps(said))


if __name__ == "__main__":
    {"parent": parent, "child": child}[sys.argv[1]](*sys.argv[2:])
