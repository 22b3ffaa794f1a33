"""Which magics there are, and adding them to a shell.

Every kernel of the environment imports this when it starts, so it imports nothing that IPython has not
imported. A magic's own module is imported at its first use. It offers

- `HELP`, the text that `%name?` shows,
- `async def cell_magic(shell, line, body) -> object` when the magic is a cell magic,
- `def line_magic(shell, line) -> object` when it is a line magic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

from IPython.core.magic import no_var_expand

from jupyterlab_jaxprof.magics import completion
from jupyterlab_jaxprof.magics.comments import without_comment
from jupyterlab_jaxprof.magics.tracebacks import TracebackCleaner
from jupyterlab_jaxprof.magics.transform import InputTransformer

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

Kind = Literal["line", "cell"]


@dataclass(frozen=True)
class Magic:
    """One magic: its name, what it does, the module that has it, and whether it is `%name`, `%%name` or both.

    It answers to its aliases too, and to a contested name wherever no other extension has that name already.
    """

    name: str
    summary: str
    module: str
    kinds: tuple[Kind, ...]
    aliases: tuple[str, ...] = ()
    contested: tuple[str, ...] = ()


TABLE: tuple[Magic, ...] = (
    Magic(
        "jaxtrace", "Trace a cell and open the trace in XProf.", f"{__package__}.jaxtrace", ("cell", "line")
    ),
    Magic("jaxtime", "Time a cell or an expression.", f"{__package__}.jaxtime", ("cell", "line")),
    Magic("jaxsweep", "Run a cell once for each value of a name.", f"{__package__}.jaxsweep", ("cell",)),
    Magic("jaxmem", "Tell what holds the devices' memory.", f"{__package__}.jaxmem", ("line",)),
    Magic(
        "jaxnsys",
        "Run a cell under NVIDIA Nsight Systems.",
        f"{__package__}.jaxnsys",
        ("cell", "line"),
        contested=("nsys",),
    ),
    Magic("jaxprof", "Tell what jupyterlab-jaxprof finds here.", f"{__package__}.jaxprof", ("line",)),
)


@no_var_expand
class BoundMagic:
    """A magic of ours in one shell's table of magics."""

    def __init__(self, shell: InteractiveShell, magic: Magic, name: str) -> None:
        self._shell = shell
        self._magic = magic
        self.__name__ = name
        self.__doc__ = magic.summary

    @property
    def __wrapped__(self) -> Any:
        """What does the work: its source and file are what `%name??` shows (IPython asks by this name)."""
        module = self._module()
        return getattr(module, "line_magic" if isinstance(self, LineMagic) else "cell_magic", module)

    def getdoc(self) -> str:
        """The full help, for `%name?` (IPython asks for it by this name)."""
        return self._module().HELP

    @property
    def module(self) -> str:
        """The module that has the magic."""
        return self._magic.module

    def _module(self) -> Any:
        return import_module(self._magic.module)


class LineMagic(BoundMagic):
    """`%name`."""

    def __call__(self, line: str) -> object:
        """Run the magic; IPython calls this."""
        __tracebackhide__ = True
        with _guard(f"%{self.__name__}"):
            return self._module().line_magic(self._shell, without_comment(line))


class CellMagic(BoundMagic):
    """`%%name`."""

    def __call__(self, line: str, cell: str) -> object:
        """Run the magic to its end; IPython calls this."""
        __tracebackhide__ = True
        from jupyterlab_jaxprof.cell import drive, drive_on_loop, needs_await

        name = f"%%{self.__name__}"
        with _guard(name):
            coroutine = self._module().cell_magic(self._shell, without_comment(line), cell)
            try:
                if needs_await(self._shell, cell):
                    return drive_on_loop(self._shell, coroutine, name)
                return drive(coroutine)
            finally:
                coroutine.close()  # an interrupt may have come before it began

    async def awaited(self, name: str, line: str, cell: str) -> object:
        """Run the magic within the cell's own coroutine; the input transformer writes calls of this.

        `name` only lets the call have the same three strings as IPython's own `run_cell_magic`.
        """
        __tracebackhide__ = True
        with _guard(f"%%{self.__name__}"):
            return await self._module().cell_magic(self._shell, without_comment(line), cell)


def _guard(magic: str) -> AbstractContextManager[object]:
    """Import what a kernel needs with the first magic, not at its start."""
    from jupyterlab_jaxprof.magics.guard import Guard

    return Guard(magic)


class MisplacedMagic(BoundMagic):
    """`%name` of a magic that is `%%name` only, or the other way round: its call says what to write.

    IPython would say that the magic isn't there, as it does where this package isn't.
    """

    def __init__(self, shell: InteractiveShell, magic: Magic, name: str, kind: Kind) -> None:
        super().__init__(shell, magic, name)
        self._kind: Kind = kind

    def __call__(self, *args: str) -> object:
        """Raise the UsageError; IPython calls this."""
        from jupyterlab_jaxprof.magics.arguments import usage_error

        if self._kind == "line":
            instead = f"it runs a cell: write %%{self.__name__} (two percent signs) on the cell's first line."
        else:
            instead = f"it takes no cell: write %{self.__name__} (one percent sign) in a line of its own."
        raise usage_error(("%" if self._kind == "line" else "%%") + self.__name__, instead)

    async def awaited(self, *args: str) -> object:
        """Raise the UsageError; the input transformer writes calls of this."""
        return self(*args)


@dataclass(frozen=True)
class MagicStatus:
    """A name that a magic of ours may answer to, and whether it does."""

    name: str
    active: bool
    owner: str
    instead: str

    def __str__(self) -> str:
        if self.active:
            return f"{self.name} is jupyterlab-jaxprof's."
        if not self.owner:
            return f"{self.name} is not loaded."
        return f"{self.name} belongs to {self.owner}; jupyterlab-jaxprof's is {self.instead}."


@dataclass
class _Loaded:
    """What loading did to one shell, so that it can be undone."""

    table: Sequence[Magic]
    transformer: InputTransformer
    tracebacks: TracebackCleaner
    matcher: Callable[..., object]
    ours: dict[tuple[Kind, str], BoundMagic] = field(default_factory=lambda: {})
    replaced: dict[tuple[Kind, str], Any] = field(default_factory=lambda: {})


_loaded: WeakKeyDictionary[InteractiveShell, _Loaded] = WeakKeyDictionary()


def load(shell: InteractiveShell, table: Sequence[Magic] = TABLE) -> None:
    """Add the magics of `table` to a shell. A second call changes nothing."""
    if shell in _loaded:
        return
    transformer = InputTransformer(shell, lambda name: _is_ours(shell, "cell", name))
    matcher = completion.add(shell, lambda signs, name: _module_of(shell, signs, name))
    loaded = _Loaded(table, transformer, TracebackCleaner(shell), matcher)
    for magic, kind, name in _names(table):
        magics = _magics(shell, kind)
        if name in magics:
            if name in magic.contested:
                continue
            loaded.replaced[kind, name] = magics[name]
        bound = (CellMagic if kind == "cell" else LineMagic)(shell, magic, name)
        magics[name] = loaded.ours[kind, name] = bound
    for magic, kind, name in _misplaced(table):
        if name not in _magics(shell, kind):
            _magics(shell, kind)[name] = loaded.ours[kind, name] = MisplacedMagic(shell, magic, name, kind)
    shell.input_transformers_cleanup.insert(0, transformer)
    _loaded[shell] = loaded


def unload(shell: InteractiveShell) -> None:
    """Take out of a shell what `load` added and nobody has replaced since, and put back what was there."""
    loaded = _loaded.pop(shell, None)
    if loaded is None:
        return
    for (kind, name), bound in loaded.ours.items():
        magics = _magics(shell, kind)
        if magics.get(name) is not bound:
            continue
        del magics[name]
        if (kind, name) in loaded.replaced:
            magics[name] = loaded.replaced[kind, name]
    if loaded.transformer in shell.input_transformers_cleanup:
        shell.input_transformers_cleanup.remove(loaded.transformer)
    completion.remove(shell, loaded.matcher)
    loaded.tracebacks.remove()


def status(shell: InteractiveShell) -> list[MagicStatus]:
    """Every name of our magics in this shell, and whose it is."""
    loaded = _loaded.get(shell)
    return [
        _status(shell, magic, kind, name) for magic, kind, name in _names(loaded.table if loaded else TABLE)
    ]


def _status(shell: InteractiveShell, magic: Magic, kind: Kind, name: str) -> MagicStatus:
    sign = {"line": "%", "cell": "%%"}[kind]
    active = _is_ours(shell, kind, name)
    answering = [other for other in _all_names(magic) if _is_ours(shell, kind, other)]
    instead = sign + answering[0] if answering else "not loaded"
    owner = "" if active else _owner(_magics(shell, kind).get(name))
    return MagicStatus(sign + name, active, owner, instead)


def _owner(function: object) -> str:
    """The top-level package or module that a magic's function comes from; empty for None."""
    if function is None:
        return ""
    module = str(getattr(function, "__module__", None) or type(function).__module__)
    return "this notebook" if module == "__main__" else module.partition(".")[0]


def _names(table: Sequence[Magic]) -> Iterator[tuple[Magic, Kind, str]]:
    for magic in table:
        for kind in magic.kinds:
            for name in _all_names(magic):
                yield magic, kind, name


def _misplaced(table: Sequence[Magic]) -> Iterator[tuple[Magic, Kind, str]]:
    kinds: tuple[Kind, ...] = ("line", "cell")
    for magic in table:
        for kind in kinds:
            if kind not in magic.kinds:
                for name in (magic.name, *magic.aliases):
                    yield magic, kind, name


def _all_names(magic: Magic) -> tuple[str, ...]:
    return (*magic.contested, magic.name, *magic.aliases)


def _is_ours(shell: InteractiveShell, kind: Kind, name: str) -> bool:
    return isinstance(_magics(shell, kind).get(name), BoundMagic)


def _module_of(shell: InteractiveShell, signs: str, name: str) -> str:
    """The module of a magic of ours, with these percent signs; empty for any other."""
    magic = _magics(shell, "cell" if signs == "%%" else "line").get(name)
    if not isinstance(magic, BoundMagic) or isinstance(magic, MisplacedMagic):
        return ""
    return magic.module


def _magics(shell: InteractiveShell, kind: Kind) -> dict[str, Any]:
    return shell.magics_manager.magics[kind]
