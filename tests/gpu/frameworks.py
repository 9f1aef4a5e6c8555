#!/usr/bin/env python3
"""The main job with real frameworks on a real GPU: PyTorch, JAX and CuPy under `cuota run`.

Memory: under --mem 8G the program sees 8 GiB in all, is refused at the cap with the framework's own
out-of-memory error, goes on after freeing, and a second, uncapped process is untouched. SM time: under
--sm 30% a loop that keeps the GPU busy does 30 % of its uncapped work in SECONDS (10).

    tests/gpu/frameworks.py [BUILD] [--seconds S] [--only torch,jax,cupy]

Fixed work per step; share = steps / steps uncapped. The loops are float32 on purpose: bf16 matrix products at full
load are held back by the card's power limit and run faster at a third of the load, so that 30 % of the time does
more than 30 % of the work (the loop called bf16 shows it, with the clock, and is not judged). Prints a line per fact, "N passed, N failed" last.
"""

import argparse
import json
import os
import subprocess
import sys
import time

GIB = 1 << 30

TORCH_MEMORY = r"""
import json, torch
total = torch.cuda.get_device_properties(0).total_memory
free, total2 = torch.cuda.mem_get_info()
held, refused = [], False
try:
    for _ in range(64):
        held.append(torch.empty(1 << 29, dtype=torch.uint8, device="cuda"))
except torch.cuda.OutOfMemoryError:
    refused = True
taken = len(held) << 29
del held
torch.cuda.empty_cache()
again = torch.ones(1 << 28, device="cuda").sum().item()
print(json.dumps(dict(total=total, total2=total2, refused=refused, taken=taken, again=again == 1 << 28)))
"""

JAX_MEMORY = r"""
import json, os
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
import jax, jax.numpy as jnp
device = jax.devices()[0]
total = device.memory_stats()["bytes_limit"]
held, refused = [], False
try:
    for i in range(64):
        held.append(jax.device_put(jnp.zeros(1 << 27, jnp.float32)).block_until_ready())
except Exception as error:
    refused = "RESOURCE_EXHAUSTED" in str(error) or "Out of memory" in str(error)
taken = len(held) << 29
del held
again = float(jnp.ones(1 << 20).sum())
print(json.dumps(dict(total=total, total2=total, refused=refused, taken=taken, again=again == 1 << 20)))
"""

CUPY_MEMORY = r"""
import json, cupy
free, total = cupy.cuda.runtime.memGetInfo()
held, refused = [], False
try:
    for _ in range(64):
        held.append(cupy.empty(1 << 29, dtype=cupy.uint8))
except cupy.cuda.memory.OutOfMemoryError:
    refused = True
taken = len(held) << 29
del held
cupy.get_default_memory_pool().free_all_blocks()
again = float(cupy.ones(1 << 28, dtype=cupy.float32).sum())
print(json.dumps(dict(total=total, total2=total, refused=refused, taken=taken, again=again == 1 << 28)))
"""

TORCH_LOOP = r"""
import sys, time, torch
a = torch.randn(4096, 4096, device="cuda")
def step():
    b = a
    for _ in range(6):
        b = (a @ b) * 0.01
    torch.cuda.synchronize()
"""

JAX_LOOP = r"""
import sys, time, jax, jax.numpy as jnp
jax.config.update("jax_default_matmul_precision", "highest")
a = jax.random.normal(jax.random.key(0), (4096, 4096), jnp.float32)
@jax.jit
def f(b):
    for _ in range(6):
        b = (a @ b) * 0.01
    return b
def step():
    f(a).block_until_ready()
"""

CUPY_LOOP = r"""
import sys, time, cupy
a = cupy.random.standard_normal((4096, 4096), dtype=cupy.float32)
def step():
    b = a
    for _ in range(6):
        b = (a @ b) * 0.01
    cupy.cuda.Stream.null.synchronize()
"""

BF16_LOOP = r"""
import sys, time, torch
a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
def step():
    b = a
    for _ in range(8):
        b = (a @ b) * 0.01
    torch.cuda.synchronize()
"""

TIMED = r"""
seconds = float(sys.argv[1])
end = time.monotonic() + 1.5
while time.monotonic() < end:
    step()
begin = now = time.monotonic()
steps = 0
while now < begin + seconds:
    step()
    steps += 1
    now = time.monotonic()
print(steps / (now - begin))
"""

FRAMEWORKS = {
    "torch": (TORCH_MEMORY, TORCH_LOOP),
    "jax": (JAX_MEMORY, JAX_LOOP),
    "cupy": (CUPY_MEMORY, CUPY_LOOP),
}

results = {"passed": 0, "failed": 0}


def fact(ok, text):
    results["passed" if ok else "failed"] += 1
    print(("ok      " if ok else "NOT OK  ") + text, flush=True)


def start(build, quota, code, *args):
    command = [sys.executable, "-c", code, *args]
    if quota:
        command = [os.path.join(build, "cuota"), "run", *quota, "--", *command]
    environment = dict(os.environ, XLA_PYTHON_CLIENT_PREALLOCATE="false")
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def finish(process, name):
    try:
        out, err = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        print(f"        {name}: timed out", flush=True)
    lines = out.strip().splitlines()
    if process.returncode != 0 or not lines:
        print(f"        {name}: rc {process.returncode}: {err.strip()[-400:]}", flush=True)
        return None
    return json.loads(lines[-1])


def memory(build, name, code):
    capped, free = start(build, ["--mem", "8G"], code), start(build, None, code)
    got, other = finish(capped, name), finish(free, name + " uncapped")
    if not got or not other:
        fact(False, f"{name}: ran under --mem 8G beside an uncapped process")
        return
    fact(got["total"] <= 8 * GIB and got["total2"] <= 8 * GIB, f"{name}: sees {got['total'] / GIB:.2f} GiB in all")
    fact(got["refused"] and got["taken"] < 8 * GIB, f"{name}: refused after {got['taken'] / GIB:.1f} GiB, by its own error")
    fact(got["again"], f"{name}: goes on after freeing")
    fact(not other["refused"] and other["taken"] == 32 * GIB, f"{name}: an uncapped process took {other['taken'] / GIB:.0f} GiB")


def share(build, name, code, seconds):
    alone = finish(start(build, None, code + TIMED, str(seconds / 2)), name)
    capped = finish(start(build, ["--sm", "30%"], code + TIMED, str(seconds)), name)
    if not alone or not capped:
        fact(False, f"{name}: ran under --sm 30%")
        return
    got = 100 * capped / alone
    fact(28 <= got <= 32, f"{name}: {got:.2f} % of its uncapped work under --sm 30% ({alone:.1f} -> {capped:.1f} steps/s)")


def clock():
    query = ["nvidia-smi", "--query-gpu=clocks.sm,power.draw", "--format=csv,noheader"]
    return subprocess.run(query, capture_output=True, text=True).stdout.strip()


def power_limited(build, seconds):
    rates = []
    for quota in (None, ["--sm", "30%"]):
        process = start(build, quota, BF16_LOOP + TIMED, str(seconds))
        time.sleep(7 + seconds / 2)
        seen = clock()
        rates.append(finish(process, "bf16"))
        print(f"        bf16 {'under --sm 30%' if quota else 'uncapped'}: {rates[-1]:.1f} steps/s, {seen}", flush=True)
    print(f"        bf16: {100 * rates[1] / rates[0]:.1f} % of the work in 30 % of the time", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?", default="build")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--only", default=",".join(FRAMEWORKS))
    options = parser.parse_args()
    os.environ.setdefault("CUOTA_DIR", "/dev/shm/cuota-frameworks")
    os.makedirs(os.environ["CUOTA_DIR"], exist_ok=True)
    for name in options.only.split(","):
        if name not in FRAMEWORKS:
            continue
        memory_code, loop_code = FRAMEWORKS[name]
        memory(options.build, name, memory_code)
        share(options.build, name, loop_code, options.seconds)
    if "bf16" in options.only or options.only == ",".join(FRAMEWORKS):
        power_limited(options.build, options.seconds / 2)
    print(f"{results['passed']} passed, {results['failed']} failed")
    return 1 if results["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
