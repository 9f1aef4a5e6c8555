"""The programs that are paired and capped: the kernel of fixed work in several shapes, and framework programs
(tests/gpu/workloads) that stay alive between measurements."""

import os
import subprocess
import sys
import time

from .report import progress

SMALL_GRID = 16  # blocks: two such kernels fit side by side, where the driver lets them (MPS)

# name: (kernel us, mode, more options of tests/gpu/work.c)
KERNELS = {
    "94 us, wait each": (94, "wait", {"grid": SMALL_GRID}),
    "20 x 10 us, wait": (10, "burst", {"burst": 20, "grid": SMALL_GRID}),
    "0.57 ms, wait each": (570, "wait", {}),
    "5.6 ms, queue": (5600, "queue", {}),
    "graph of 20 x 66 us": (66, "graph", {"burst": 20}),
}

# name: (file, arguments, module that it needs, period in ms or 0)
PROGRAMS = {
    "training small": ("train.py", ["--size", "small"], "torch", 0),
    "training medium": ("train.py", ["--size", "medium"], "torch", 0),
    "training large": ("train.py", ["--size", "large"], "torch", 0),
    "training xl": ("train.py", ["--size", "xl", "--warmup", "5"], "torch", 0),
    "inference, 5 ms apart": ("infer.py", [], "torch", 5),
    "convolution training": ("conv.py", [], "torch", 0),
    "graph decoding": ("decode.py", [], "torch", 0),
    "cuBLAS products": ("gemm.py", [], "torch", 0),
    "JAX step": ("jax_step.py", [], "jax", 0),
    "CuPy loop": ("cupy_loop.py", [], "cupy", 0),
}

_modules = {}


def has_module(name):
    """Whether the framework is installed; asked of an interpreter of its own, without importing it."""
    if name not in _modules:
        code = f"import importlib.util,sys; sys.exit(importlib.util.find_spec({name!r}) is None)"
        _modules[name] = subprocess.run([interpreter(), "-c", code], timeout=60).returncode == 0
    return _modules[name]


def interpreter():
    return os.environ.get("BENCH_PYTHON", sys.executable)


class Program:
    """A framework program that waits for commands."""

    def __init__(self, bench, way, name, quota=None):
        file, arguments, _, self.period = PROGRAMS[name]
        path = os.path.join(bench.root, "tests", "gpu", "workloads", file)
        self.name, self.way, self.quota = name, way, quota
        self.tenant = bench.start(way, [interpreter(), path, *arguments], quota)
        self.failure = None

    def wait_ready(self, end):
        try:
            got = self.tenant.answer(max(1.0, end - time.monotonic()))
        except TimeoutError as e:
            got = {"error": str(e)}
        if "ready" not in got:
            self.failure = got.get("error", "no answer")
            progress(f"{self.way}: {self.name} did not start: {self.failure}")
        return self.failure is None

    def ask_run(self, seconds, start_ns):
        self.tenant.send(f"run {seconds:g} {start_ns} {self.period}")

    def answer(self, timeout):
        if self.failure:
            return {"error": self.failure}
        try:
            got = self.tenant.answer(timeout)
        except TimeoutError as e:
            got = {"error": str(e)}
        if "error" in got:
            self.failure = got["error"]
        return got

    def run(self, seconds, patience=30):
        self.ask_run(seconds, 0)
        return self.answer(seconds + patience)

    def profile(self, steps, patience=90):
        self.tenant.send(f"profile {steps}")
        return self.answer(patience)

    def end(self):
        self.tenant.send("quit")
        self.tenant.end(patience=3)


def start_programs(bench, wanted, patience=90):
    """wanted: (way, name, quota) each; started together, the failed ones left out."""
    programs = [Program(bench, way, name, quota) for way, name, quota in wanted]
    end = time.monotonic() + patience
    for program in programs:
        program.wait_ready(end)
    for program in programs:
        if program.failure:
            program.end()
    return [p for p in programs if not p.failure]
