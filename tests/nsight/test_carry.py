"""What makes a notebook's state beside the kinds of its objects: sharing, settings, classes that changed."""

from __future__ import annotations

import pytest

from tests.nsight.notebook import Case, carry

CELLS = [
    """
from __future__ import annotations
import abc, collections, dataclasses, enum, functools, random, sys, typing
import jax, jax.numpy as jnp, numpy as np
import helper_of_notebook
from jax.sharding import NamedSharding, PartitionSpec as P, SingleDeviceSharding
jax.config.update("jax_default_matmul_precision", "highest")
first = jnp.ones(3)
jax.config.update("jax_default_device", jax.devices("cpu")[1])
np.random.seed(3); random.seed(4)
x = jnp.arange(8.)
""",
    # functions
    """
K = 3.
def times(a): return a * K
def even(n): return n == 0 or odd(n - 1)
def odd(n): return n != 0 and even(n - 1)
def counter():
    n = 0
    def up():
        nonlocal n
        n += 1
        return n
    def now(): return n
    return up, now
up, now = counter(); up()
def attributed(a, *, b=[1], c: int = 2) -> int:
    "Its text."
    return b[0] + c
attributed.mark = "kept"
@functools.singledispatch
def kind(a): return "any"
@kind.register
def kind_of_int(a: int): return "int"
half = functools.partial(times, 0.5)
table = {"step": jax.jit(times), "relu": jax.nn.relu, "ufunc": jnp.add, "np": np.tanh}
old = jax.jit(times)
def times(a): return a * K + 1
""",
    # classes
    """
class Base(abc.ABC):
    made = []
    limit = 1
    @abc.abstractmethod
    def name(self) -> str: ...
    class Inner(typing.NamedTuple):
        a: int
class Derived(Base):
    '''Its text.'''
    __slots__ = ("a",)
    def __init__(self, a): super().__init__(); self.a = a
    def name(self) -> str: return f"derived {self.a}"
    @property
    def twice(self): return self.a * 2
    @classmethod
    def make(cls): return cls(7)
    @staticmethod
    def three(): return 3
    @functools.lru_cache
    def cached(self): return self.a
derived = Derived(5)
inner = Base.Inner(4)
Base.made.append("changed")
Base.limit = 2
Derived.added = lambda self: self.a + 100
if True:
    class Below(enum.IntEnum):
        A = 1
        B = enum.auto()
T = typing.TypeVar("T")
class Box(typing.Generic[T]):
    def __init__(self, a: T): self.a = a
box = Box[int](3)
@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    a: int
    b: list = dataclasses.field(default_factory=list)
frozen = Frozen(1)
Point = collections.namedtuple("Point", "a b", defaults=(5,))
point = Point(1)
Made = dataclasses.make_dataclass("Made", [("a", int)])
made = Made(3)
def factory():
    class Local:
        def get(self): return 11
    return Local()
local = factory()
class Asking:
    def __init__(self): self.inner = {"a": 1}
    def __getattr__(self, name): return self.inner[name]
asking = Asking()
class Own(Exception): pass
side = 2.
class Shape:
    registry = {}
    def __init_subclass__(cls): Shape.registry[cls.__name__] = cls
class Square(Shape):
    def area(self, side=side): return side ** 2
class Circle(Shape):
    sizes = (side, side)
    @functools.singledispatchmethod
    def of(self, a): return "any"
    @of.register
    def _(self, a: int): return "int"
def make(name): return Shape.registry[name]()
Name = typing.NewType("Name", int)
class Holder:
    def __init__(self): self.step = jax.jit(self._step); self.out = sys.stdout; self.k = 2.
    def _step(self, a): return a * self.k
holder = Holder()
""",
    """
class Late:
    def __init__(self, a): self.a = a
jax.tree_util.register_pytree_with_keys(
    Late, lambda o: (((jax.tree_util.GetAttrKey("a"), o.a),), None), lambda _, c: Late(*c))
late = Late(x)
class Fields:
    def __init__(self, a, n): self.a, self.n = a, n
jax.tree_util.register_dataclass(Fields, data_fields=["a"], meta_fields=["n"])
fields = Fields(x, 2)
class Again:
    def get(self): return "first"
stale = Again()
class Again:
    def get(self): return "second"
""",
    "%run script_of_notebook.py",
    """%%time
class Timed:
    limit: int = 4
    def get(self): return self.limit
timed = Timed()
""",
    # arrays
    """
shared = jnp.ones((300, 300))
params = {"w": shared, "again": shared, "n": np.arange(3)}
alias = params["n"]
both = (params, shared, alias)
me = []; me.append(me)
committed = jax.device_put(x, jax.devices()[3])
weak = jnp.asarray(2.0); weak_matrix = jnp.broadcast_to(weak, (200, 200))
mesh = jax.make_mesh((2, 2), ("a", "b"))
split = jax.device_put(jnp.arange(40_000.).reshape(200, 200), NamedSharding(mesh, P("a", None)))
with (jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64()):
    wide = jnp.arange(20_000, dtype=jnp.float64) / 3
bf16 = jnp.arange(50_000, dtype=jnp.bfloat16)
int4 = jnp.ones(70_000, jnp.int4)
empty = jnp.zeros((0, 5))
fortran = np.asfortranarray(np.random.rand(200, 150))
turned = np.random.rand(30, 40, 50).transpose(1, 2, 0)
spread = np.broadcast_to(np.arange(1000.), (500, 1000))
every = np.arange(100_000.)[::3]; back = np.arange(100_000.)[::-1]
locked = np.arange(20_000.); locked.flags.writeable = False
small_locked = np.arange(3); small_locked.flags.writeable = False
host_bf16 = np.asarray(bf16)
objects = np.array([1, "a", None, Derived], dtype=object)
record = np.zeros(9_000, [("a", "i4"), ("b", "f8")]); record["a"] = 7
when = np.arange("2020-01-01", "2020-12-31", dtype="datetime64[m]")
class Tagged(np.ndarray): pass
tagged = np.arange(20_000.).view(Tagged); tagged.tag = "kept"
np.save("on_disk.npy", np.arange(100_000.))
mapped = np.load("on_disk.npy", mmap_mode="r+")
part = mapped[100:20_000:7]
numbers = list(range(200_000))
missing = [dataclasses.MISSING, np.ma.masked]
handle = open("notes.txt", "w+"); print("kept", file=handle, flush=True)
def uses(): return handle.read()
holding = {"handle": handle}
gone = jnp.ones((4, 5), jnp.bfloat16); gone.delete()
import other_of_notebook
from other_of_notebook import triple
other_of_notebook.K = 7; other_of_notebook.TABLE["rate"] = 0.1; other_of_notebook.more = 1
other_of_notebook.own = lambda: 5
import weakref
referent = Again(); to_referent = weakref.ref(referent)
weak_values = weakref.WeakValueDictionary(a=referent); weak_set = weakref.WeakSet([referent])
""",
]

LAST_CELL = """
big = jnp.ones((2000, 30)); side = 5.
if hasattr(jax, "set_mesh"): jax.set_mesh(mesh)
jax.config.update("jax_transfer_guard_device_to_host", "disallow")
2 + 3
"""

BODIES = {
    "mesh": "result = jax.sharding.get_mesh() if hasattr(jax, 'set_mesh') else None",
    "globals": "K = 10.\nresult = times(2.), half(), old(2.), table['step'](2.)",
    "recursion": "result = even(10)",
    "closure": "result = up(), now()",
    "attributed": "result = attributed(1), attributed.mark, attributed.__doc__, attributed.__annotations__",
    "kind": "result = kind(1), kind('a')",
    "table": "result = table['relu'] is jax.nn.relu, table['ufunc'] is jnp.add, table['np'] is np.tanh",
    "derived": "result = derived.name(), derived.twice, Derived.make().a, derived.three(), derived.cached()",
    "inner": "result = inner, type(inner) is Base.Inner",
    "changed": "result = Base.made, Base.limit, derived.added(), issubclass(Derived, Base), Derived.__doc__",
    "enum": "result = Below.B, Below(1) is Below.A",
    "generic": "result = box.a, Box.__parameters__",
    "frozen": "result = frozen, dataclasses.replace(frozen, a=2), hasattr(frozen, '__dict__')",
    "namedtuple": "result = point, Point(3), type(point) is Point",
    "made": "result = made",
    "local": "result = local.get()",
    "asking": "result = asking.a",
    "exception": "result = issubclass(Own, Exception)",
    "registry": "result = make('Square').area(), make('Circle').of(1), Circle.sizes, sorted(Shape.registry)",
    "script": "result = scripted(2), type(from_script).__name__, from_script.get()",
    "newtype": "result = Name(3), Name.__supertype__",
    "constants": "result = dataclasses.MISSING is missing[0], np.ma.masked is missing[1]",
    "holder": "result = holder.step(2.), holder.out is sys.stdout",
    "late": "result = jax.tree_util.tree_flatten_with_path(late)[0][0][0], jax.jit(lambda o: o)(late).a",
    "fields": "result = jax.tree_util.tree_flatten_with_path(fields), jax.jit(lambda o: o)(fields).n",
    "stale": "result = stale.get(), Again().get(), isinstance(stale, Again)",
    "timed": "result = timed.get(), type(timed) is Timed",
    "module": "result = helper_of_notebook.ANSWER",
    "sharing": "result = both[0] is params, params['w'] is both[1] is shared, params['n'] is alias",
    "itself": "result = me[0] is me",
    "committed": "result = [(a.devices(), a.committed) for a in (committed, x, first)]",
    "weak": "result = weak.weak_type, weak_matrix.weak_type, weak_matrix.sum(), weak_matrix.committed",
    "split": "result = split.sharding, jax.device_get(split.sum(1))",
    "wide": "result = wide.dtype, wide[7]",
    "bf16": "result = bf16.dtype, bf16[300], int4.dtype, int4.astype(int).sum(), host_bf16[300]",
    "empty": "result = empty, empty.shape",
    "fortran": "result = fortran.strides, fortran.sum(), fortran.flags.writeable",
    "turned": "result = turned.strides, turned[3, 2, 1], turned.sum(2)[5, 6]",
    "spread": "result = spread.strides, spread.shape, spread[7, 8]",
    "every": "result = every.sum(), every.shape, back[0], back.sum()",
    "locked": "result = [a.flags.writeable for a in (locked, small_locked, host_bf16)], locked.sum()",
    "writing": "params['n'][0] = 9; fortran[0, 0] = 5.\nresult = alias, fortran[0, 0]",
    "objects": "result = objects[:3], objects[3] is Derived",
    "record": "result = record[5], when[77], when.dtype",
    "tagged": "result = type(tagged).__name__, tagged.tag, tagged.sum()",
    "mapped": "mapped[0] = 1e6\nresult = mapped[0], mapped[1], part.sum(), type(mapped), part.strides",
    "numbers": "result = len(numbers), numbers[-1]",
    "random": "result = np.random.rand(), random.random()",
    "settings": "result = [jax.config.jax_default_matmul_precision, jax.config.jax_default_device, "
    "jax.config.jax_transfer_guard_device_to_host]",
    "folder": "import os\nresult = os.path.exists('on_disk.npy'), helper_of_notebook.__file__",
    "main": "import __main__\nresult = __main__.K, __name__, Derived.__module__",
    "output": "result = _, len(Out)",
    "traceback": """
import traceback
try: times(None)
except TypeError: result = traceback.format_exc().splitlines()[-3:]
""",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notebook")
    (folder / "helper_of_notebook.py").write_text("ANSWER = 42\n")
    (folder / "other_of_notebook.py").write_text(
        "K = 3\nTABLE = {'rate': 1.0}\nSAME = 'same'\ndef own(): return 4\n"
        "def triple(a): return a * K\ndef same(a): return a\n"
    )
    (folder / "script_of_notebook.py").write_text(
        "SCALE = 5\ndef scripted(a): return a * SCALE\n"
        "class FromScript:\n    def get(self): return SCALE\nfrom_script = FromScript()\n"
    )
    return folder


@pytest.fixture(scope="module")
def told(folder):
    cases = {
        "all": Case(BODIES),
        "gone": Case({"body": "result = gone"}),
        "made up": Case(
            {"arrays": "result = gone, big", "magic": "said = !echo {K}\nresult = said"},
            {"shapes_only": "random", "large_bytes": 1},
        ),
        "plain": Case({"body": "import random\nK = numbers[-1]\nresult = K"}),
        "modules": Case({"body": "result = other_of_notebook.same(1)"}),
        "weak": Case(
            {"alive": "result = to_referent().get(), weak_values['a'].get(), len(weak_set)"},
        ),
        "weak and held": Case({"ends": "import gc; del referent; gc.collect(); result = to_referent()"}),
        "classes made by a call": Case({"body": "point, local"}, returned=["point", "local"]),
        "set up": Case(
            {
                "set up": "result = uses(), holding['handle'] is handle, prefix",
                "back": "new = big * 2; derived.a = 8; bound = [new, derived, lambda: K]",
            },
            {"set_up": ["prefix = K", "handle = open('notes.txt')"]},
            returned=["new", "bound", "unbound", "big"],
        ),
    }
    return carry(folder, [*CELLS, LAST_CELL], cases)


def test_plan_succeeds(told):
    assert told["all"].error == ""
    assert told["all"].notices == []


@pytest.mark.parametrize("name", BODIES)
def test_works_in_the_child_as_in_the_notebook(told, name):
    given = told["all"].parent[name]
    assert not given.startswith("!")
    assert told["all"].child[name] == given


def test_the_users_files_are_never_written_to(told, folder):
    import numpy as np

    assert told["all"].child["mapped"].startswith("(np.float64(1000000.0)")
    assert (folder / "notes.txt").read_text() == "kept\n"
    assert np.load(folder / "on_disk.npy")[1] == 1


def test_names_that_the_body_rebinds_are_told(told):
    assert told["plain"].rebinds == ["K"]
    assert told["plain"].variables == ["numbers"]  # K is bound before it could be read
    assert told["all"].rebinds == ["K"]


def test_the_child_imports_what_it_needs(told):
    assert "IPython" not in told["plain"].modules
    assert "IPython" in told["made up"].modules
    assert told["made up"].child["magic"] == "['3.0']"


def test_set_up_cells_run_in_the_child(told):
    assert told["set up"].child["set up"] == "('kept\\n', True, 3.0)"


def test_a_deleted_array_is_refused_or_made_up(told):
    assert told["gone"].error.startswith("gone (ArrayImpl) can't be carried, since its values are gone")
    assert "dtype=bfloat16" in told["made up"].child["arrays"]
    assert "Array([[1., 1." not in told["made up"].child["arrays"]


def test_what_is_otherwise_in_a_module_is_told(told):
    (notice,) = told["modules"].notices
    for part in (
        "other_of_notebook.K is 7 in the notebook, 3 there",
        "other_of_notebook.TABLE is {'rate': 0.1} in the notebook, {'rate': 1.0} there",
        "other_of_notebook.more is 1 in the notebook, missing there",
        "other_of_notebook.own is the notebook's in the notebook, the module's own there",
    ):
        assert part in notice
    assert "SAME" not in notice


def test_what_weak_references_lead_to_lives_as_long_as_in_the_notebook(told):
    assert told["weak"].child["alive"] == "('second', 'second', 1)"
    assert told["weak and held"].child["ends"] == "None"


def test_an_instance_of_a_class_that_a_call_has_made_comes_back(told):
    case = told["classes made by a call"]
    assert case.notices == []
    assert case.back["point"] == "Point(a=1, b=5)"
    assert "Local object" in case.back["local"]


def test_values_come_back(told):
    back = told["set up"]
    assert back.back["new"].startswith("Array([[2., 2.")
    assert back.back["bound"].count("Derived object") == 1
    assert back.notices == ["unbound does not come back: the cell has not bound it."]
