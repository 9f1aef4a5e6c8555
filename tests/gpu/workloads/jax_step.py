#!/usr/bin/env python3
"""A jitted JAX training step: a small multi-layer perceptron with plain gradient descent."""

import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp

from worker import serve


class JaxWorkload:
    def __init__(self, width, layers, batch):
        keys = jax.random.split(jax.random.PRNGKey(1), layers + 2)
        self.weights = [jax.random.normal(k, (width, width)) / width**0.5 for k in keys[:layers]]
        self.x = jax.random.normal(keys[-2], (batch, width))
        self.y = jax.random.normal(keys[-1], (batch, width))

        def loss(weights, x, y):
            for w in weights:
                x = jax.nn.gelu(x @ w)
            return jnp.mean((x - y) ** 2)

        def update(weights, x, y):
            gradients = jax.grad(loss)(weights, x, y)
            return [w - 1e-3 * g for w, g in zip(weights, gradients)]

        self.update = jax.jit(update)

    def step(self):
        self.weights = self.update(self.weights, self.x, self.y)
        jax.block_until_ready(self.weights)


def make(options):
    return JaxWorkload(options.width, options.layers, options.batch)


if __name__ == "__main__":
    serve("jax", make, {"width": 2048, "layers": 6, "batch": 2048})
