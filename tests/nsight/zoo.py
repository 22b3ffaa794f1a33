"""The kinds of objects that notebooks hold: the cells that make them, and for each a body that uses it.

A body leaves in `result` something whose `repr` tells that the object works and has the same values.
"""

from __future__ import annotations

CELLS = [
    """
import asyncio, collections, dataclasses, enum, functools, io, logging, queue, threading, typing, weakref
import jax, jax.numpy as jnp, numpy as np
import flax.linen as nn, optax, equinox as eqx
from flax import nnx, struct
from flax.training import train_state
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
import jax.experimental.pallas as pl
from jax import export as jexport
x = jnp.arange(8.)
K = 3.
def f(a): return jnp.sin(a) * K
def total(tree): return [float(np.asarray(leaf, np.float32).sum()) for leaf in jax.tree.leaves(tree)]
""",
    """
jf = jax.jit(f)
jf(x)
@jax.jit
def deco(a): return jf(a) + 1
@functools.partial(jax.jit, static_argnames=("n",), donate_argnums=(0,))
def deco2(a, n=2): return a * n
@jax.custom_vjp
def cv(a): return a * 2
cv.defvjp(lambda a: (a * 2, None), lambda r, g: (g * 5,))
@jax.custom_jvp
def cj(a): return a * 2
cj.defjvp(lambda p, t: (p[0] * 2, t[0] * 7))
gradf = jax.grad(lambda a: f(a).sum())
vg = jax.jit(jax.value_and_grad(lambda a: f(a).sum()))
vm = jax.vmap(f)
ck = jax.checkpoint(f)
compiled = jax.jit(f).lower(x).compile()
lowered = jax.jit(f).lower(x)
jaxpr = jax.make_jaxpr(f)(x)
exported = jexport.export(jax.jit(f))(x)
@jax.jit
def scan_fn(a): return jax.lax.scan(lambda c, _: (f(c), None), a, None, length=3)[0]
def kern(i, o): o[...] = i[...] * 2
eight = jax.ShapeDtypeStruct((8,), jnp.float32)
pallas = jax.jit(lambda a: pl.pallas_call(kern, out_shape=eight, interpret=True)(a))
callback = jax.jit(lambda a: jax.pure_callback(lambda z: np.asarray(z) * 2, eight, a))
tree_partial = jax.tree_util.Partial(f)
treedef = jax.tree.structure({"a": [1, (2, 3)]})
""",
    """
key = jax.random.key(0)
rawkey = jax.random.PRNGKey(0)
keys = jax.random.split(key, 3)
mesh = Mesh(np.array(jax.devices()), ("d",))
ns = NamedSharding(mesh, P("d"))
sharded = jax.device_put(x, ns)
big_sharded = jax.device_put(jnp.arange(80_000.).reshape(8, -1), ns)
sharded_keys = jax.device_put(jax.random.split(key, 4), ns)
bf = jnp.ones(4, jnp.bfloat16)
f8 = jnp.ones(4, jnp.float8_e4m3fn)
shm = jax.jit(jax.shard_map(lambda a: a * 2, mesh=mesh, in_specs=P("d"), out_specs=P("d")))
jsh = jax.jit(f, in_shardings=ns, out_shardings=ns)
sds = jax.ShapeDtypeStruct((3,), jnp.float32)
dev = jax.devices()[2]
ref = jax.new_ref(x) if hasattr(jax, "new_ref") else jax.experimental.mutable_array(x)
""",
    """
@dataclasses.dataclass
class Cfg:
    n: int = 3
    g: typing.Callable = f
cfg = Cfg()
class MyT(typing.NamedTuple):
    a: jax.Array
    b: int
nt = MyT(x, 2)
@jax.tree_util.register_dataclass
@dataclasses.dataclass
class RD:
    a: jax.Array
    b: jax.Array
rd = RD(x, x)
@jax.tree_util.register_pytree_node_class
class PT:
    def __init__(s, a): s.a = a
    def tree_flatten(s): return (s.a,), None
    @classmethod
    def tree_unflatten(c, aux, ch): return c(*ch)
pt = PT(x)
@struct.dataclass
class SD:
    a: jax.Array
sd = SD(x)
class Color(enum.Enum): R = 1
""",
    """
class Lin(nn.Module):
    d: int
    @nn.compact
    def __call__(self, x): return nn.Dense(self.d)(nn.relu(nn.Dense(self.d)(x)))
lm = Lin(4); lp = lm.init(key, jnp.ones((2, 8)))
lapply = jax.jit(lm.apply)
class NM(nnx.Module):
    def __init__(self, rngs): self.l = nnx.Linear(8, 4, rngs=rngs); self.dr = nnx.Dropout(0.5, rngs=rngs)
    def __call__(self, x): return self.dr(self.l(x))
nm = NM(nnx.Rngs(0))
njit = nnx.jit(lambda m, x: m(x))
nopt = nnx.Optimizer(nm, optax.adam(1e-3), wrt=nnx.Param)
rngs = nnx.Rngs(0)
tx = optax.chain(optax.clip_by_global_norm(1.), optax.adamw(optax.cosine_decay_schedule(1e-3, 100)))
ts = tx.init(lp)
tstate = train_state.TrainState.create(apply_fn=lm.apply, params=lp, tx=tx)
class EM(eqx.Module):
    l: eqx.nn.MLP
    def __call__(self, x): return self.l(x)
em = EM(eqx.nn.MLP(8, 4, 16, 2, key=key))
ejit = eqx.filter_jit(lambda m, x: m(x))
ejit(em, jnp.ones(8))
""",
    """
lock = threading.Lock()
def uses_lock(a):
    with lock: return a
generator = (i for i in range(3))
fh = open("read.txt", "w+")
logf = open("log.txt", "w"); logf.write("kept"); logf.flush()
npm = np.random.default_rng(0)
lam = lambda a: a + K
def closure(n):
    def inner(a): return a * n + K
    return inner
clo = closure(3)
dd = collections.defaultdict(lambda: 0)
mod = jnp
thread = threading.Thread(target=print)
itr = iter([1, 2, 3]); next(itr)
logger = logging.getLogger("x")
@functools.lru_cache
def lru(n): return n * K
async def aco(): return 3
memv = memoryview(b"abc")
big = dict(a=np.zeros((1000, 1000), np.float32))
""",
]

ONES = "jnp.ones(8)"

CARRIED = {
    "f": "result = f(x)",
    "jf": "result = jf(x)",
    "deco": "result = deco(x)",
    "deco2": "result = deco2(jnp.ones(8), n=3)",
    "cv": "result = jax.grad(lambda a: cv(a).sum())(x)",
    "cj": "result = jax.grad(lambda a: cj(a).sum())(x)",
    "gradf": "result = gradf(x)",
    "vg": "result = vg(x)",
    "vm": "result = vm(x)",
    "ck": "result = jax.grad(lambda a: ck(a).sum())(x)",
    "compiled": "result = compiled(x)",
    "jaxpr": "result = str(jaxpr), jax.core.eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, x)",
    "exported": "result = exported.call(x)",
    "scan_fn": "result = scan_fn(x)",
    "pallas": "result = pallas(x)",
    "callback": "result = callback(x)",
    "tree_partial": "result = jax.jit(lambda p, a: p(a))(tree_partial, x)",
    "treedef": "result = treedef, jax.tree.unflatten(treedef, [5, 6, 7])",
    "key": "result = jax.random.normal(key, (2,))",
    "rawkey": "result = jax.random.normal(rawkey, (2,))",
    "keys": "result = jax.random.normal(keys[1], (2,))",
    "sharded_keys": "result = sharded_keys.sharding, jax.random.key_data(sharded_keys)",
    "mesh": "result = mesh.shape, mesh == ns.mesh, mesh.axis_types",
    "ns": "result = ns, ns.mesh.devices",
    "sharded": "result = sharded.sharding, sharded, len(sharded.addressable_shards)",
    "big_sharded": "result = big_sharded.sharding, big_sharded.sum(0)",
    "bf": "result = bf",
    "f8": "result = f8.dtype, f8.astype(float)",
    "shm": "result = shm(sharded), shm(sharded).sharding",
    "jsh": "result = jsh(sharded), jsh(sharded).sharding",
    "sds": "result = sds",
    "dev": "result = dev, jax.device_put(x, dev).devices()",
    "ref": "result = ref[...]",
    "cfg": "result = cfg.n, cfg.g(x), type(cfg).__module__, type(cfg) is Cfg",
    "nt": "result = nt, jax.tree.map(lambda a: a * 2, nt), type(nt) is MyT",
    "rd": "result = jax.tree.map(lambda a: a * 2, rd), jax.jit(lambda r: r.a.sum())(rd)",
    "pt": "result = total(pt), jax.jit(lambda r: r.a.sum())(pt)",
    "sd": "result = total(sd), jax.jit(lambda r: r.a.sum())(sd), sd.replace(a=1)",
    "Color": "result = Color.R, Color(1) is Color.R",
    "lm": "result = lm.apply(lp, jnp.ones((2, 8))), type(lm) is Lin",
    "lp": "result = total(lp)",
    "lapply": "result = lapply(lp, jnp.ones((2, 8)))",
    "njit": "result = njit(nm, jnp.ones((2, 8)))",
    "nm": "result = nm(jnp.ones((2, 8))), total(nnx.state(nm, nnx.Param))",
    "nopt": "result = nopt.step, total(nnx.state(nopt))",
    "rngs": "result = jax.random.normal(rngs(), (2,))",
    "tx": "result = total(tx.init({'a': jnp.ones(3)}))",
    "ts": "result = total(ts)",
    "tstate": "result = jax.jit(lambda s: s.step)(tstate), tstate.apply_fn(tstate.params, jnp.ones((2, 8)))",
    "em": "result = em(x), total(eqx.filter(em, eqx.is_array)), len(jax.tree.leaves(em))",
    "ejit": "result = ejit(em, x)",
    "lock": "result = lock.locked()",
    "uses_lock": "result = uses_lock(1)",
    "npm": "result = npm.random()",
    "lam": "result = lam(1)",
    "clo": "result = clo(1)",
    "dd": "result = dd[1], dict(dd)",
    "mod": "result = mod.ones(1)",
    "itr": "result = next(itr)",
    "logger": "result = logger, logger is logging.getLogger('x')",
    "lru": "result = lru(2), lru.cache_info().maxsize",
    "aco": "result = asyncio.run(aco())",
    "memv": "result = bytes(memv)",
    "big": "result = big['a'].shape, big['a'].dtype, big['a'].flags.writeable",
}

REFUSED = {
    "lowered": "traced or lowered",
    "generator": "generator",
    "fh": "open file",
    "logf": "open file",
    "thread": "thread",
}
