#!/usr/bin/env python3
"""Does the ledger say what the driver says? Real frameworks on a real GPU, under `cuota run --mem`.

Each program stops at five moments; there its ledger entry (`cuota status --json`) is compared with the driver's
figure, read from outside: NVML's for the process, or, where NVML numbers processes otherwise, the device's use
less what it was before. They must agree within 1 % or 16 MiB, and the ledger must be empty after the exit. Then:
set_per_process_memory_fraction, JAX's preallocation, and two servers that size themselves by free memory.

    tests/gpu/agree.py [BUILD] [--only NAME,...] [--wait SECONDS]

A line per fact, "N passed, N failed" last. --wait (1.5): how long the books may take at each moment.
"""

import argparse
import ctypes
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time

MIB, GIB = 1 << 20, 1 << 30
CAP = 8 * GIB

# moment(name) tells the parent and waits for it.
PRELUDE = r"""
import sys
def moment(name):
    print("moment " + name, flush=True)
    sys.stdin.readline()
"""

TORCH = PRELUDE + r"""
import torch
torch.cuda.init(); torch.zeros(1, device="cuda")
moment("context")
held = [torch.empty(64 << 20, dtype=torch.uint8, device="cuda") for _ in range(24)]
small = [torch.empty(1000 + i, device="cuda") for i in range(5000)]
moment("allocations")
a = torch.randn(4096, 4096, device="cuda")
for dtype in (torch.float32, torch.bfloat16):
    b = a.to(dtype); (b @ b).sum().item()
moment("cuBLAS")
net = torch.nn.Sequential(torch.nn.Conv2d(3, 64, 7), torch.nn.ReLU(), torch.nn.Conv2d(64, 64, 3)).cuda()
net(torch.randn(16, 3, 224, 224, device="cuda")).sum().backward(); torch.cuda.synchronize()
moment("cuDNN")
del held, small, a, b, net
import gc; gc.collect(); torch.cuda.synchronize(); torch.cuda.empty_cache()
moment("freed")
"""

JAX = PRELUDE + r"""
import os
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax, jax.numpy as jnp
jnp.zeros(1).block_until_ready()
moment("context")
held = [jax.device_put(jnp.zeros(16 << 20)).block_until_ready() for _ in range(24)]
moment("allocations")
a = jax.random.normal(jax.random.key(0), (4096, 4096))
(a @ a).block_until_ready()
moment("cuBLAS")
x = jax.random.normal(jax.random.key(0), (16, 3, 224, 224)); k = jax.random.normal(jax.random.key(1), (64, 3, 7, 7))
jax.jit(lambda x, k: jax.lax.conv(x, k, (1, 1), "SAME").sum())(x, k).block_until_ready()
moment("cuDNN")
del held, a, x, k
import gc; gc.collect()
moment("freed")
"""

CUPY = PRELUDE + r"""
import cupy
cupy.zeros(1)
moment("context")
held = [cupy.empty(64 << 20, dtype=cupy.uint8) for _ in range(24)]
moment("allocations")
a = cupy.random.standard_normal((4096, 4096), dtype=cupy.float32)
float((a @ a).sum())
moment("cuBLAS")
float(cupy.fft.fft(a).real.sum())
moment("cuFFT")
del held, a
cupy.get_default_memory_pool().free_all_blocks()
moment("freed")
"""

FRACTION = r"""
import torch
torch.cuda.set_per_process_memory_fraction(0.5)
held = []
try:
    for _ in range(64):
        held.append(torch.empty(256 << 20, dtype=torch.uint8, device="cuda"))
except torch.cuda.OutOfMemoryError:
    pass
print(len(held) * 256)
"""

PREALLOCATION = r"""
import jax, jax.numpy as jnp
value = float(jnp.ones(1000).sum())
print(jax.devices()[0].memory_stats()["bytes_limit"] >> 20 if value == 1000 else 0)
"""

# Takes 90 % of what is free, as inference servers do, and then works in it.
SERVER = PRELUDE + r"""
import torch
free, total = torch.cuda.mem_get_info()
cache = torch.empty(int(free * 0.9) - (600 << 20), dtype=torch.uint8, device="cuda")
moment(f"sized {free >> 20} {total >> 20}")
a = torch.randn(2048, 2048, device="cuda")
for _ in range(50):
    (a @ a)
torch.cuda.synchronize()
free, total = torch.cuda.mem_get_info()
moment(f"worked {free >> 20} {total >> 20}")
"""


class ProcessInfo(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("gi", ctypes.c_uint), ("ci", ctypes.c_uint)]


class MemoryInfo(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Nvml:
    def __init__(self):
        self.lib = ctypes.CDLL("libnvidia-ml.so.1")
        self.device = ctypes.c_void_p()
        if self.lib.nvmlInit_v2() or self.lib.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device)):
            raise OSError("NVML does not start")

    def used(self):
        info = MemoryInfo()
        self.lib.nvmlDeviceGetMemoryInfo(self.device, ctypes.byref(info))
        return info.used

    def processes(self):
        infos, count = (ProcessInfo * 256)(), ctypes.c_uint(256)
        if self.lib.nvmlDeviceGetComputeRunningProcesses_v3(self.device, ctypes.byref(count), infos):
            return {}
        return {infos[i].pid: infos[i].used for i in range(count.value)}


class Judge:
    def __init__(self):
        self.passed = self.failed = 0

    def fact(self, good, text):
        self.passed += bool(good)
        self.failed += not good
        print(f"{'ok  ' if good else 'FAIL'} {text}", flush=True)


class Tenant:
    """A program under cuota in a group of its own."""

    def __init__(self, args, code, group, env=None, nvml=None):
        self.args, self.group, self.nvml = args, group, nvml
        if nvml:
            self.before_used, self.before = nvml.used(), nvml.processes()
        self.errors = tempfile.TemporaryFile("w+")
        self.child = subprocess.Popen(
            [f"{args.build}/cuota", "run", "--mem", "8G", "--group", group, "--", sys.executable, "-c", code],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
            env=dict(os.environ, CUOTA_DIR=args.dir, **(env or {})))

    def next_moment(self):
        for line in self.child.stdout:
            if line.startswith("moment "):
                return line[7:].strip()
        return None

    def go_on(self):
        self.child.stdin.write("\n")
        self.child.stdin.flush()

    def end(self):
        out, _ = self.child.communicate(timeout=120)
        return out

    def why(self):
        self.errors.seek(0)
        return self.errors.read()[-600:]

    def ledger(self):
        entry = ledger_group(self.args, self.group)
        return entry["memory"] if entry else None

    def driver(self):
        """NVML's figure for the process; else of whoever is new; else the device's use less what it was."""
        now = self.nvml.processes()
        if self.child.pid in now:
            return now[self.child.pid], "process"
        new = [used for pid, used in now.items() if pid not in self.before]
        if len(new) == 1 and new[0] != ctypes.c_ulonglong(-1).value:
            return new[0], "newcomer"
        return self.nvml.used() - self.before_used, "device"


def ledger_group(args, group):
    out = subprocess.run([f"{args.build}/cuota", "status", "--json"], capture_output=True, text=True,
                         env=dict(os.environ, CUOTA_DIR=args.dir), timeout=20).stdout
    for gpu in json.loads(out)["gpus"]:
        for entry in gpu["groups"]:
            if entry["name"] == group:
                return entry
    return None


def kinds(memory):
    shown = {k: v >> 20 for k, v in memory["by_kind_bytes"].items() if v >> 20}
    return " ".join(f"{k} {v}" for k, v in shown.items())


def agree(args, judge, nvml, name, code, env=None):
    tenant = Tenant(args, code, f"agree-{name}", env, nvml)
    moments = 0
    while True:
        moment = tenant.next_moment()
        if moment is None:
            break
        at_once, _ = tenant.driver()
        before = tenant.ledger()
        time.sleep(args.wait)
        driver, how = tenant.driver()
        memory = tenant.ledger()
        if memory is None:
            judge.fact(False, f"{name}, {moment}: not in the ledger")
        else:
            used = memory["used_bytes"]
            early = before["used_bytes"] - at_once if before else 0
            judge.fact(abs(used - driver) <= max(driver // 100, 16 * MIB),
                       f"{name}, {moment}: ledger {used / MIB:.0f} MiB, driver {driver / MIB:.0f} MiB ({how}), "
                       f"difference {(used - driver) / MIB:+.1f} (at once {early / MIB:+.1f}): {kinds(memory)}")
        moments += 1
        tenant.go_on()
    tenant.end()
    judge.fact(moments == 5 and tenant.child.returncode == 0,
               f"{name}: {moments} moments, exit status {tenant.child.returncode} {tenant.why() if moments != 5 else ''}")
    entry = ledger_group(args, f"agree-{name}")
    judge.fact(entry is None or entry["memory"]["used_bytes"] == 0, f"{name}: nothing is left in the ledger")


def one_number(args, code, group, env=None):
    tenant = Tenant(args, code, group, env)
    out = tenant.end().strip().splitlines()
    return (int(out[-1]) if out and out[-1].isdigit() else -1), tenant


def servers(args, judge, groups, label):
    """Two that size themselves by what is free, one after the other; then both work."""
    tenants, sizes = [], []
    for group in groups:
        tenant = Tenant(args, SERVER, group)
        words = (tenant.next_moment() or "").split()
        sizes.append([int(w) for w in words[1:]] if len(words) == 3 else None)
        tenants.append(tenant)
    for tenant in tenants:
        tenant.go_on()
    worked = [(tenant.next_moment() or "").startswith("worked") for tenant in tenants]
    for tenant in tenants:
        if tenant.child.poll() is None:
            tenant.go_on()
        tenant.end()
    good = all(sizes) and all(worked)
    if good and groups[0] != groups[1]:
        # Each saw its own quota, not the other's use.
        good = abs(sizes[0][0] - sizes[1][0]) <= 64 and sizes[0][1] == sizes[1][1] == CAP >> 20
    judge.fact(good, f"{label}: free and total MiB as each saw them {sizes}, worked {worked} "
                     f"{'' if good else [t.why()[-200:] for t in tenants]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?", default="build")
    parser.add_argument("--only", default="")
    parser.add_argument("--wait", type=float, default=1.5)
    args = parser.parse_args()
    args.build = os.path.abspath(args.build)
    has = {name: importlib.util.find_spec(name) is not None for name in ("torch", "jax", "cupy")}
    if not any(has.values()):
        print("no PyTorch, JAX or CuPy here")
        return 77
    try:
        nvml = Nvml()
    except OSError as error:
        print(error)
        return 77
    judge = Judge()
    alloc = "PYTORCH_CUDA_ALLOC_CONF"
    programs = [
        ("torch", "torch", lambda n: agree(args, judge, nvml, n, TORCH)),
        ("torch-expandable", "torch",
         lambda n: agree(args, judge, nvml, n, TORCH, {alloc: "expandable_segments:True"})),
        ("torch-async", "torch", lambda n: agree(args, judge, nvml, n, TORCH, {alloc: "backend:cudaMallocAsync"})),
        ("jax", "jax", lambda n: agree(args, judge, nvml, n, JAX)),
        ("cupy", "cupy", lambda n: agree(args, judge, nvml, n, CUPY)),
    ]

    def fraction(name):
        got, tenant = one_number(args, FRACTION, name)
        judge.fact(3500 <= got <= 4096, f"set_per_process_memory_fraction(0.5) under 8 GiB gives {got} MiB {tenant.why() if got < 0 else ''}")

    def preallocation(name):
        got, tenant = one_number(args, PREALLOCATION, name, {"XLA_PYTHON_CLIENT_PREALLOCATE": "true"})
        judge.fact(3000 <= got <= 8192, f"JAX preallocates {got} MiB of 8192 and works {tenant.why() if got <= 0 else ''}")

    programs += [("fraction", "torch", fraction), ("preallocation", "jax", preallocation),
                 ("servers", "torch", lambda n: servers(args, judge, ["server-1", "server-2"], "two groups")),
                 ("servers-one-group", "torch", lambda n: servers(args, judge, ["server", "server"], "one group"))]
    only = [n for n in args.only.split(",") if n]
    with tempfile.TemporaryDirectory() as args.dir:
        for name, framework, run in programs:
            if only and name not in only:
                continue
            if not has[framework]:
                print(f"skip {name}: no {framework}")
                continue
            try:
                run(name)
            except (subprocess.TimeoutExpired, OSError, ValueError, KeyError) as error:
                judge.fact(False, f"{name}: {error}")
    print(f"{judge.passed} passed, {judge.failed} failed")
    return 1 if judge.failed or not judge.passed else 0


if __name__ == "__main__":
    sys.exit(main())
