"""What the benchmark runs on: a real GPU or the simulated one, and how to say so in a result file."""

import json
import os
import platform
import shutil
import subprocess
import sys

# In a process of its own: the benchmark itself must not hold a context.
PROBE = r"""
import ctypes, json, sys
try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError as e:
    print(json.dumps({"why": str(e)})); sys.exit(0)
count, version, name = ctypes.c_int(), ctypes.c_int(), ctypes.create_string_buffer(128)
memory = ctypes.c_size_t()
rc = cuda.cuInit(0)
if rc or cuda.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
    print(json.dumps({"why": "cuInit: error %d, %d devices" % (rc, count.value)})); sys.exit(0)
cuda.cuDriverGetVersion(ctypes.byref(version))
device = ctypes.c_int()
cuda.cuDeviceGet(ctypes.byref(device), 0)
cuda.cuDeviceGetName(name, 127, device)
cuda.cuDeviceTotalMem_v2(ctypes.byref(memory), device)
sms = ctypes.c_int()
cuda.cuDeviceGetAttribute(ctypes.byref(sms), 16, device)
print(json.dumps({"gpu": name.value.decode(), "gpus": count.value, "memory_bytes": memory.value,
                  "multiprocessors": sms.value, "cuda_driver": version.value}))
"""

SMI_PLACES = ("/usr/local/nvidia/bin", "/usr/bin", "/usr/lib/wsl/lib")


def find_tool(name):
    found = shutil.which(name)
    if found:
        return found
    for place in SMI_PLACES:
        path = os.path.join(place, name)
        if os.access(path, os.X_OK):
            return path
    return None


def probe(env):
    try:
        out = subprocess.run(
            [sys.executable, "-c", PROBE], env=env, capture_output=True, text=True, timeout=60
        )
        return json.loads(out.stdout.strip().splitlines()[-1])
    except (subprocess.TimeoutExpired, IndexError, ValueError) as e:
        return {"why": f"probe failed: {e}"}


def driver_version():
    try:
        with open("/proc/driver/nvidia/version", encoding="utf-8") as f:
            words = f.readline().split()
        return next(w for w in words if w[:1].isdigit() and "." in w)
    except (OSError, StopIteration):
        pass
    smi = find_tool("nvidia-smi")
    if not smi:
        return None
    out = subprocess.run(
        [smi, "--query-gpu=driver_version", "--format=csv,noheader"],
        capture_output=True, text=True, timeout=60,
    )
    return out.stdout.split("\n")[0].strip() or None


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            for line in f:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def describe(found):
    """The machine part of a result file."""
    return {
        **found,
        "driver": driver_version() if not found.get("simulated") else "simulated",
        "processor": processor(),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()),
        "python": platform.python_version(),
    }


def commit(root):
    """The commit measured: COMMIT where it was built elsewhere; "+" when the tree has changes; None if unknown."""
    if os.environ.get("COMMIT"):
        return os.environ["COMMIT"]

    def git(*args):
        return subprocess.run(
            ["git", "-C", root, *args], capture_output=True, text=True, timeout=30
        )
    try:
        head = git("rev-parse", "--short=12", "HEAD")
        if head.returncode:
            return None
        changed = git("status", "--porcelain", "--untracked-files=no", "--", "src", "tools", "include")
    except (OSError, subprocess.TimeoutExpired):
        return None
    return head.stdout.strip() + ("+" if changed.stdout.strip() else "")
