"""What the pickles call in the child process to make objects of JAX again."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from jupyterlab_jaxprof.nsight.carry.refusal import RestoreError

#: A shard's place in its array: start and stop for each axis.
Place = tuple[tuple[int, int], ...]


def device(platform: str, number: int) -> Any:
    """Give the device of a platform with a number. Raises RestoreError when this process has none such."""
    import jax

    devices = jax.devices(platform)
    for found in devices:
        if found.id == number:
            return found
    raise RestoreError(
        f"the notebook uses the device {platform}:{number}, and the child process has {len(devices)} devices "
        f"of {platform}. It reads XLA_FLAGS and CUDA_VISIBLE_DEVICES as they are set now: set them as they "
        "were when the kernel first used JAX"
    )


def mesh(devices: Any, axis_names: Any, axis_types: Any) -> Any:
    """Make a mesh of devices."""
    import jax

    if axis_types is None:
        return jax.sharding.Mesh(devices, axis_names)
    return jax.sharding.Mesh(devices, axis_names, axis_types=axis_types)


def array(host: Any, sharding: Any, weak: bool, layout: Any, elsewhere: Any) -> Any:
    """Put an array onto one device.

    Where its sharding is None it is committed to none, and lies on the default device or `elsewhere`.
    """
    import jax

    with wide(host.dtype), jax.default_device(elsewhere) if elsewhere else contextlib.nullcontext():
        if layout is not None:
            return jax.device_put(host, _format(layout, sharding))
        made = jax.device_put(host) if sharding is None else jax.device_put(host, sharding)
        return _weak(made) if weak else made


def sharded(shape: tuple[int, ...], sharding: Any, shards: Sequence[tuple[Place, Any]], weak: bool) -> Any:
    """Put an array onto several devices, each shard's values read once."""
    import jax

    hosts = dict(shards)
    dtype = shards[0][1].dtype
    with wide(dtype):
        parts = [
            jax.device_put(hosts[place(index, shape)], _on_one(found, sharding))
            for found, index in sharding.addressable_devices_indices_map(shape).items()
        ]
        made = jax.make_array_from_single_device_arrays(shape, sharding, parts)
        return _weak(made) if weak else made


def made_up(shape: tuple[int, ...], dtype: Any, sharding: Any, weak: bool, how: str) -> Any:
    """Make an array of zeros, or of random numbers from 0 to 1 if `how` says so and the type is floating."""
    import jax
    import jax.numpy as jnp

    def make() -> Any:
        if how == "random" and jnp.issubdtype(dtype, jnp.floating):
            return jax.random.uniform(jax.random.key(0), shape).astype(dtype)
        return jnp.zeros(shape, dtype)

    with wide(dtype):
        made = make() if sharding is None else jax.jit(make, out_shardings=sharding)()
        return _weak(made) if weak else made


def key(data: Any, implementation: Any) -> Any:
    """Make PRNG keys of their data."""
    import jax

    return jax.random.wrap_key_data(data, impl=implementation)


def reference(value: Any) -> Any:
    """Make a mutable array."""
    import jax

    make: Any = getattr(jax, "new_ref", None)
    if make is None:
        from jax import experimental

        make = getattr(experimental, "mutable_array")  # noqa: B009 - its name until JAX 0.7
    return make(value)


def compiled(payload: bytes, in_tree: Any, out_tree: Any, devices: Sequence[Any]) -> Any:
    """Load what `jax.jit(...).lower(...).compile()` has made."""
    from jax.experimental import serialize_executable

    return serialize_executable.deserialize_and_load(
        payload, in_tree, out_tree, backend=devices[0].platform, execution_devices=devices
    )


def place(index: Sequence[slice], shape: Sequence[int]) -> Place:
    """Give a shard's place as numbers, which can be compared and hashed on every Python."""
    return tuple(
        (part.indices(length)[0], part.indices(length)[1]) for part, length in zip(index, shape, strict=True)
    )


def wide(dtype: Any) -> contextlib.AbstractContextManager[Any]:
    """Let JAX keep 64-bit numbers where an array has them, whatever the user's setting is."""
    import jax
    import numpy as np

    if np.dtype(dtype).itemsize < 8 or jax.config.jax_enable_x64:  # pyright: ignore[reportAttributeAccessIssue]
        return contextlib.nullcontext()
    enable: Any = getattr(jax, "enable_x64", None)
    if enable is None:
        from jax import experimental

        enable = getattr(experimental, "enable_x64")  # noqa: B009 - its name until JAX 0.8
    return enable(True)


def _on_one(found: Any, sharding: Any) -> Any:
    import jax

    return jax.sharding.SingleDeviceSharding(found, memory_kind=sharding.memory_kind)


def _format(major_to_minor: tuple[int, ...], sharding: Any) -> Any:
    from jax.experimental import layout

    return layout.Format(layout.Layout(major_to_minor), sharding)


def _weak(made: Any) -> Any:
    from jupyterlab_jaxprof.nsight.carry.internals import weakly_typed

    return weakly_typed(made)
