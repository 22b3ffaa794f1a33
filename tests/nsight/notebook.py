"""A notebook whose state is carried: a kernel and clean processes, each with four devices of JAX's.

The kernel runs the cells in a real IPython shell, plans and writes; a clean process for each case restores.
Both tell what each body gives.
"""

from __future__ import annotations

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
    """Bodies that one plan carries; each leaves in `result` what the two processes shall agree on."""

    bodies: dict[str, str]
    options: dict[str, Any] = field(default_factory=dict)
    returned: list[str] = field(default_factory=list)


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
    back: dict[str, str] = field(default_factory=dict)


def carry(folder: Path, cells: list[str], cases: dict[str, Case], **environment: str) -> dict[str, Told]:
    """Run a notebook's cells in a process, carry each case to a process of its own; give what came of it."""
    folder.mkdir(parents=True, exist_ok=True)
    cases_said = {
        name: {"bodies": case.bodies, "options": case.options, "returned": case.returned}
        | {"folder": str(folder / f"carried-{name}")}
        for name, case in cases.items()
    }
    (folder / "spec.json").write_text(json.dumps({"cells": cells, "cases": cases_said}))
    done = subprocess.run(
        [sys.executable, "-m", "tests.nsight.notebook", "parent"],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
            "JAX_PLATFORMS": "cpu",
            "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
            "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
            "IPYTHONDIR": str(folder / "ipython"),
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {name: Told(**said) for name, said in json.loads((folder / "told.json").read_text()).items()}


def _results(bodies: dict[str, str], names: dict[str, Any]) -> dict[str, str]:
    """Run each body, and give the `repr` of what it left in `result`, or its error."""
    results = {}
    for label, body in bodies.items():
        names.pop("result", None)
        try:
            exec(compile(body, f"<{label}>", "exec"), names)
            results[label] = repr(names.pop("result", None))[:3000]
        except BaseException as error:  # noqa: BLE001 - told as the body's result
            results[label] = f"!{type(error).__name__}: {error}"
            traceback.print_exc()
    return results


def parent() -> None:
    """The notebook's kernel."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    from jupyterlab_jaxprof.nsight.carry import CarryError, Options, Sources, plan

    spec = json.loads(Path("spec.json").read_text())
    config = Config()
    config.HistoryManager.hist_file = ":memory:"
    shell = InteractiveShell.instance(config=config)
    for cell in spec["cells"]:
        shell.run_cell(cell, store_history=True).raise_error()
    said: dict[str, Any] = {}
    children: dict[str, subprocess.Popen[bytes]] = {}
    plans: dict[str, Any] = {}
    for name, case in spec["cases"].items():
        options = {
            key: frozenset(value) if key == "drop" else value for key, value in case["options"].items()
        }
        case["bodies"] = {label: shell.transform_cell(body) for label, body in case["bodies"].items()}
        try:
            body = "\n".join(case["bodies"].values())
            planned = plan(shell.user_ns, body, sources=Sources.from_shell(shell), options=Options(**options))
        except CarryError as error:
            said[name] = {"error": str(error)}
            continue
        planned.write(Path(case["folder"]))
        (Path(case["folder"]) / "case.json").write_text(json.dumps(case))
        said[name] = {"variables": planned.variables, "rebinds": planned.rebinds}
        plans[name] = planned
        command = [sys.executable, "-m", "tests.nsight.notebook", "child", case["folder"]]
        children[name] = subprocess.Popen(command, cwd="/")  # while it works, the bodies run here
    for name, process in children.items():
        said[name]["parent"] = _results(spec["cases"][name]["bodies"], shell.user_ns)
        assert process.wait() == 0, name
        folder = Path(spec["cases"][name]["folder"])
        said[name] |= json.loads((folder / "told.json").read_text())
        back = folder / "back"
        if back.exists():
            from jupyterlab_jaxprof.nsight.carry.returned import read_back

            returned = read_back(back, shell.user_ns, plans[name].classes)
            said[name]["back"] = {key: repr(value)[:300] for key, value in returned.items()}
    Path("told.json").write_text(json.dumps(said))


def child(given: str) -> None:
    """The clean process."""
    from jupyterlab_jaxprof.nsight.carry.restore import restore

    folder = Path(given)
    case = json.loads((folder / "case.json").read_text())
    before = set(sys.modules)
    restored = restore(folder)
    modules = sorted({module.partition(".")[0] for module in set(sys.modules) - before})
    results = _results(case["bodies"], restored.namespace)
    if case["returned"]:
        from jupyterlab_jaxprof.nsight.carry.returned import write_back

        restored.notices += write_back(folder / "back", restored.namespace, case["returned"])
    said = {"child": results, "notices": restored.notices, "modules": modules}
    (folder / "told.json").write_text(json.dumps(said))


if __name__ == "__main__":
    {"parent": parent, "child": child}[sys.argv[1]](*sys.argv[2:])
