#!/usr/bin/env python3
"""CuPy: a kernel of its own (NVRTC), cuBLAS, cuFFT, and a pool that is emptied."""

import cupy

cupy.random.seed(5)
a = cupy.random.standard_normal((1024, 1024))
kernel = cupy.ElementwiseKernel("float64 x", "float64 y", "y = x * x + 1", "guest_square")
b = kernel(a) @ a
print(f"{float(cupy.abs(cupy.fft.rfft(b)).sum()):.3f}")
del a, b
cupy.get_default_memory_pool().free_all_blocks()
print(cupy.get_default_memory_pool().total_bytes())
