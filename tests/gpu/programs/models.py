"""The models that the programs train: each gives a jitted step, its parameters and a batch."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from tests.gpu.programs.recording import Recording


def normal(seed: int, *shape: int, dtype: Any = jnp.float32) -> jax.Array:
    return jax.random.normal(jax.random.key(seed), shape, dtype)


def mlp(record: Recording, batch: int, width: int, dtype: Any = jnp.float32, *, donate: bool = False):
    """Two layers of `width`, and the gradient step of them."""
    batch, width = record.size(batch), record.size(width)
    params = [normal(seed, width, width, dtype=dtype) / width**0.5 for seed in range(2)]

    def loss_of(params, x):
        for w in params:
            x = jnp.tanh(x @ w)
        return jnp.mean(jnp.square(x.astype(jnp.float32)))

    def train_step(params, x):
        loss, grads = jax.value_and_grad(loss_of)(params, x)
        return [w - (1e-3 * g).astype(w.dtype) for w, g in zip(params, grads, strict=True)], loss

    step = jax.jit(train_step, donate_argnums=0 if donate else ())
    return step, params, normal(2, batch, width, dtype=dtype)


def _block(p, x, heads: int):
    batch, length, width = x.shape
    h = x * jax.lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + 1e-6)
    q, k, v = (a.reshape(batch, length, heads, -1) for a in jnp.split(h @ p["qkv"], 3, -1))
    weights = jax.nn.softmax(jnp.einsum("blhd,bmhd->bhlm", q, k) / (width // heads) ** 0.5, -1)
    x = x + jnp.einsum("bhlm,bmhd->blhd", weights, v).reshape(x.shape) @ p["out"]
    return x + jax.nn.gelu(x @ p["up"]) @ p["down"]


def transformer(
    record: Recording, batch: int, length: int, width: int = 1024, layers: int = 3, dtype: Any = jnp.bfloat16
):
    """Give the training step, the forward pass, the parameters and a batch of embeddings."""
    width, length, heads = max(record.size(width), 16), record.size(length), 8
    shapes = {"qkv": 3 * width, "out": width, "up": 4 * width}
    params = []
    for n in range(layers):
        p = {
            key: normal(n * 4 + i, width, out, dtype=dtype) / width**0.5
            for i, (key, out) in enumerate(shapes.items())
        }
        params.append({**p, "down": normal(n * 4 + 3, 4 * width, width, dtype=dtype) / (4 * width) ** 0.5})

    def forward(params, x):
        for p in params:
            x = _block(p, x, heads)
        return x

    def train_step(params, x):
        def loss_of(params):
            return jnp.mean(jnp.square(forward(params, x).astype(jnp.float32)))

        loss, grads = jax.value_and_grad(loss_of)(params)
        return jax.tree.map(lambda w, g: w - (1e-4 * g).astype(w.dtype), params, grads), loss

    return jax.jit(train_step), jax.jit(forward), params, normal(99, batch, length, width, dtype=dtype)
