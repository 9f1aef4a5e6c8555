#!/usr/bin/env python3
"""Every view of a quota of argv[1] MiB: must agree, and the quota must hold with the error that PyTorch knows."""

import os
import subprocess
import sys

import torch

cap = int(sys.argv[1])
wrong = []


def check(what, mib):
    print(f"{what}: {mib} MiB")
    if mib != cap:
        wrong.append(what)


smi = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
out = subprocess.run(smi, capture_output=True, text=True)
check("nvidia-smi", int(out.stdout.splitlines()[0]) if out.returncode == 0 else out.stdout + out.stderr)
check("torch properties", torch.cuda.get_device_properties(0).total_memory >> 20)
free, total = torch.cuda.mem_get_info()
check("torch mem_get_info", total >> 20)
try:
    import pynvml

    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    check("pynvml", memory.total >> 20)
    check("pynvml v2", pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2).total >> 20)
    held = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    used, left = pynvml.nvmlDeviceGetMemoryInfo(handle).used >> 20, torch.cuda.mem_get_info()[0] >> 20
    print(f"1 GiB held: NVML used {used} MiB, CUDA free {left} MiB")
    if abs(used + left - cap) > 16 or used < 1024:
        wrong.append("used and free")
    pids = [p.pid for p in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)]
    print(f"processes: {'only me' if pids == [os.getpid()] else pids}")
    if pids != [os.getpid()]:
        wrong.append("process list")
    rates = pynvml.nvmlDeviceGetUtilizationRates(handle)
    print(f"utilisation: {rates.gpu} %")
    del held
except ImportError:
    print("pynvml: not installed")
try:
    torch.empty(cap << 20, dtype=torch.uint8, device="cuda")
    wrong.append("the quota does not hold")
except torch.cuda.OutOfMemoryError:
    print("over the quota: OutOfMemoryError")
torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
print("wrong: " + ", ".join(wrong) if wrong else "all views agree")
sys.exit(bool(wrong))
