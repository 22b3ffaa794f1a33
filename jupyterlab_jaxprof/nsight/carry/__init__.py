"""Everything that a cell's body needs from the notebook, carried into a clean process.

In the kernel, before anything is started::

    from jupyterlab_jaxprof.nsight.carry import CarryError, Options, Sources, plan

    carried = plan(shell.user_ns, python_text, sources=Sources.from_shell(shell), options=Options(...))
    carried.write(folder, progress)

`plan` runs nothing and writes nothing; it raises CarryError, whose text names every variable that can't be
carried, its type, why, and through what the cell needs it. In the child::

    from jupyterlab_jaxprof.nsight.carry.restore import restore

    restored = restore(folder)  # `__main__` is the notebook's from here on; RestoreError names the variable
    exec(code, restored.namespace)
    notices = write_back(another_folder, restored.namespace, ["a", "b"])       # returned.py

and in the kernel again, with the same plan::

    shell.user_ns.update(read_back(another_folder, shell.user_ns, carried.classes))

The folder must stay until the body has run: large arrays are read from it as they are used. The child should
end by `os._exit`, so that no `__del__` or exit handler of a carried copy touches what the kernel still uses.

What is carried, and how:

- functions, and what `jax.jit` and its like made of them, as they are now: code, closure, attributes, with
  the notebook's names as their globals. No source of theirs runs again;
- classes of the notebook by their own `class` statement, found in the cells and compared with what the class
  is now. Only class statements are ever run again, and only those that do nothing else (effects.py);
- the values of variables in one stream of pickles, so that what they share stays shared. Large arrays are
  `.npy` files, mapped into memory: nothing is read that is not used. Sharding, committed devices, weak types,
  memory order and read-only flags are kept;
- modules by their names; JAX's settings, `sys.path`, the folder, the states of NumPy's and Python's random
  numbers.

What is not kept: views of NumPy's arrays become arrays of their own; what the notebook set in a module is
lost, and told of where a plain value or a function of the notebook's differs from a fresh import
(modules.py); a file edited since its import is imported as it is now; names looked up by a string are not
seen.
Refused are open files, generators, threads, held locks, connections, deleted arrays, leaked tracers, what was
traced or lowered but not compiled, primitives of the notebook, and classes that can't be defined again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jupyterlab_jaxprof.nsight.carry.planned import Options, Plan, plan
    from jupyterlab_jaxprof.nsight.carry.refusal import CarryError, Refusal, RestoreError
    from jupyterlab_jaxprof.nsight.carry.sources import Sources

__all__ = ["CarryError", "Options", "Plan", "Refusal", "RestoreError", "Sources", "plan"]

_PLACES = {
    "CarryError": "refusal",
    "Options": "planned",
    "Plan": "planned",
    "Refusal": "refusal",
    "RestoreError": "refusal",
    "Sources": "sources",
    "plan": "planned",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for: the child process wants none of the kernel's side."""
    if name in _PLACES:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
