"""Several devices: everything is waited for, and memory and placement are told a device each."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.support.undisturbed import undisturbed

SCRIPT = """
import asyncio
import time as clock
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jupyterlab_jaxprof import timing
from jupyterlab_jaxprof.cell import drive
from jupyterlab_jaxprof.timing.bodies import FunctionBody
from jupyterlab_jaxprof.timing.memory import live_bytes, report_now
from jupyterlab_jaxprof.timing.sampling import PROCESS, MemorySampler
from jupyterlab_jaxprof.timing.sweep import Axis, Sweep
from jupyterlab_jaxprof.timing.swept import SweepResult

timing.watch()
devices = jax.devices()
assert len(devices) == 4
heavy = jax.jit(lambda x: jax.lax.fori_loop(0, 6, lambda _, c: (c @ c) * 1e-3, x))
xs = [jax.device_put(jnp.ones((300, 300)), device) for device in devices]
sharded = jax.device_put(
    jnp.ones((512, 512)), NamedSharding(Mesh(np.array(devices), ("d",)), PartitionSpec("d"))
)
both = jax.jit(lambda x: x @ x.T @ x)
first = timing.time(lambda: [heavy(x) for x in xs], plan=timing.Plan(repeats=3))
heavies = [entry for entry in first.compiles if entry.name == "<lambda>"]
assert len(heavies) == 4, first.compiles
assert {str(entry.reason.cause) for entry in heavies[1:]} == {"device or sharding"}, heavies
assert first.cached.count == 3

for function, x in ((heavy, xs[3]), (both, sharded)):
    function(x).block_until_ready()
    whole_ms = []
    for _ in range(5):
        began = clock.perf_counter()
        function(x).block_until_ready()
        whole_ms.append((clock.perf_counter() - began) * 1e3)
    result = timing.time(lambda: [function(x)] and None)  # the result is dropped
    assert result.first_ms > 0.5 * min(whole_ms), (result.first_ms, whole_ms)

report = report_now({"sharded": sharded, "xs": xs})
assert len(report.after) == 4
largest = report.arrays[0]
assert largest.holders == ("sharded",)
assert len(largest.devices) == 4
assert largest.size_bytes == 512 * 512 * 4
everywhere = NamedSharding(Mesh(np.array(devices), ("d",)), PartitionSpec())
replicated = jax.device_put(jnp.ones(1 << 20), everywhere)
assert report_now({"r": replicated}).arrays[0].size_bytes == 4 * 4 * (1 << 20)

del replicated
sampler = MemorySampler()
sampler.start()
third = jax.device_put(jnp.ones(1 << 22), devices[2]).block_until_ready()
sampler.sample()
del third
sampler.stop()
assert sampler.labels() == [*map(str, devices), PROCESS]
rises = [max(sampler.columns(str(device), 9)) - sampler.samples[0][1][str(device)] for device in devices]
assert rises[2] >= 4 << 22 > 4 * max(rises[0], rises[1], rises[3]), rises
assert live_bytes()[str(devices[3])] >= 512 * 512 + 300 * 300 * 4  # its part of what is sharded, and its own


class Body:
    codes, filename = (), None

    async def run(self, loops=1):
        return await asyncio.sleep(0) or drive(FunctionBody(heavy, (xs[names["at"]],), {}).run(loops))

    def used(self):
        return {"heavy": heavy}


names = {}
result = SweepResult("devices", ["at"], "", "", 4)
axis = Axis("at", range(4), [str(device) for device in devices])
sweep = Sweep(Body(), names, [axis], timing.Plan(repeats=2), fresh=True, begun=lambda *_: None, failed=print)
asyncio.run(sweep.run(result))
assert ([point.ending for point in result.points], result.devices) == (["ok"] * 4, 4)
assert all(point.need_bytes and not point.peaks for point in result.points)
assert names == {}
print("all of it")
"""


@undisturbed
def test_four_devices():
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
        env=environment,
    )
    assert done.stdout == "all of it\n", done.stderr
