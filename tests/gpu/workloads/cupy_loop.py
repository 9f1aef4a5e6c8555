#!/usr/bin/env python3
"""A CuPy loop: elementwise arithmetic, a product, a transform and a sum read back by the host."""

import cupy

from worker import serve


class CupyWorkload:
    def __init__(self, n):
        generator = cupy.random.RandomState(1)
        self.a = generator.standard_normal((n, n), dtype=cupy.float32)
        self.b = generator.standard_normal((n, n), dtype=cupy.float32)

    def step(self):
        c = cupy.tanh(self.a * 0.5 + self.b)
        d = c @ self.b
        f = cupy.fft.rfft(d, axis=1)
        return float(cupy.abs(f).sum())


def make(options):
    return CupyWorkload(options.n)


if __name__ == "__main__":
    serve("cupy", make, {"n": 2048})
