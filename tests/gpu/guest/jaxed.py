#!/usr/bin/env python3
"""JAX with its default preallocation, a compiled function and its gradient."""

import jax
import jax.numpy as jnp


@jax.jit
def loss(w, x):
    return jnp.mean(jnp.tanh(x @ w) ** 2)


x = jax.random.normal(jax.random.PRNGKey(1), (512, 512))
w = jax.random.normal(jax.random.PRNGKey(2), (512, 512)) / 22
for _ in range(20):
    w = w - 0.5 * jax.grad(loss)(w, x)
print(f"{float(loss(w, x)):.6f} on {jax.devices()[0].platform}")
