#!/usr/bin/env python3
"""Numba, told the driver's absolute path: dlopen by path through ctypes, every function by dlsym."""

import ctypes.util
import os
import subprocess


def driver_path():
    for line in subprocess.run(["ldconfig", "-p"], capture_output=True, text=True).stdout.splitlines():
        if "libcuda.so.1 " in line:
            return line.split("=> ")[1]
    return ctypes.util.find_library("cuda")


os.environ["NUMBA_CUDA_DRIVER"] = driver_path()

import numpy

# Numba releases older than NumPy 2.4 ask for a name that is gone; nothing here uses it.
if not hasattr(numpy, "row_stack"):
    numpy.row_stack = numpy.vstack

from numba import cuda


@cuda.jit
def double(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= 2


x = cuda.to_device(numpy.arange(100000, dtype=numpy.float64))
double[400, 256](x)
print(x.copy_to_host().sum())
