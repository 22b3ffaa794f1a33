from functools import partial

import jax
import jax.numpy as jnp

INPUTS, HIDDEN, OUTPUTS, BATCH = 1024, 1024, 256, 256
LEARNING_RATE = 1e-3


def initial_parameters(key):
    first, second = jax.random.split(key)
    return {
        "hidden": {
            "weights": jax.random.normal(first, (INPUTS, HIDDEN)) / INPUTS**0.5,
            "bias": jnp.zeros(HIDDEN),
        },
        "output": {
            "weights": jax.random.normal(second, (HIDDEN, OUTPUTS)) / HIDDEN**0.5,
            "bias": jnp.zeros(OUTPUTS),
        },
    }


def predict(parameters, inputs):
    hidden = jax.nn.gelu(inputs @ parameters["hidden"]["weights"] + parameters["hidden"]["bias"])
    return hidden @ parameters["output"]["weights"] + parameters["output"]["bias"]


def loss(parameters, batch):
    inputs, targets = batch
    return jnp.mean((predict(parameters, inputs) - targets) ** 2)


@jax.jit
def train_step(parameters, batch):
    value, gradients = jax.value_and_grad(loss)(parameters, batch)
    updated = jax.tree.map(lambda p, g: p - LEARNING_RATE * g, parameters, gradients)
    return updated, value


@partial(jax.jit, static_argnames="size")
def make_batch(key, size=BATCH):
    first, second = jax.random.split(key)
    return jax.random.normal(first, (size, INPUTS)), jax.random.normal(second, (size, OUTPUTS))


parameters = initial_parameters(jax.random.key(0))
batch = make_batch(jax.random.key(1))
