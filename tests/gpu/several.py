#!/usr/bin/env python3
"""Jobs on several GPUs at once: two data-parallel jobs (NCCL), each with a rank on every GPU, under cuota.

Each GPU's turns are its own; a collective waits for its peers on the other GPUs, whose turn may be another job's. So what
is judged first is that both jobs go on, and then what they get together, against the driver's own slicing.

    tests/gpu/several.py [BUILD] [--seconds S]

Skipped (77) with fewer than two GPUs or without PyTorch. A line per fact, "N passed, N failed" last.
"""

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time

RANK = r"""
import os, sys, time
import torch, torch.distributed as dist
rank, world, seconds = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), float(sys.argv[1])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
a = torch.randn(2048, 2048, device="cuda")
gradient = torch.zeros(4 << 20, device="cuda")
def step():
    b = a
    for _ in range(4):
        b = (a @ b) * 0.01
    gradient.fill_(1)
    dist.all_reduce(gradient)
    torch.cuda.synchronize()
begin = time.monotonic()
while time.monotonic() < begin + 1.5:
    step()
dist.barrier()
done, begin, longest, last = 0, time.monotonic(), 0, time.monotonic()
over = torch.zeros(1, device="cuda")
while not over.item():
    step()
    done += 1
    now = time.monotonic()
    longest, last = max(longest, now - last), now
    over.fill_(1 if now > begin + seconds else 0)
    dist.all_reduce(over, op=dist.ReduceOp.MAX)
assert gradient[0].item() == world, gradient[0].item()
if rank == 0:
    print(done / (time.monotonic() - begin), longest, flush=True)
dist.destroy_process_group()
"""

results = {"passed": 0, "failed": 0}


def fact(ok, text):
    results["passed" if ok else "failed"] += 1
    print(("ok      " if ok else "NOT OK  ") + text, flush=True)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Job:
    def __init__(self, args, gpus, quota):
        port = free_port()
        self.ranks = []
        for rank in range(gpus):
            # NVLink multicast is not to be had on every machine that has NVLink; NCCL gives up when it is not.
            environment = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(gpus), MASTER_ADDR="127.0.0.1",
                               MASTER_PORT=str(port), NCCL_NVLS_ENABLE="0", CUOTA_DIR=args.dir)
            if quota is not None:
                environment.update(quota, LD_PRELOAD=os.path.join(args.build, "libcuota.so"))
            self.ranks.append(subprocess.Popen([sys.executable, "-c", RANK, str(args.seconds)], env=environment,
                                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))

    def answer(self, limit):
        """(steps a second, longest step) or None with what went wrong."""
        end, rate, wrong = time.monotonic() + limit, None, ""
        for rank in self.ranks:
            try:
                out, err = rank.communicate(timeout=max(1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                wrong = f"not done after {limit} s"
                continue
            if rank.returncode:
                wrong = f"exit {rank.returncode}: {err.strip().splitlines()[-1:]}"
            elif out.strip():
                rate = tuple(float(x) for x in out.split())
        for rank in self.ranks:
            rank.kill()
        return (rate if not wrong else None), wrong


def together(args, gpus, quotas):
    jobs = [Job(args, gpus, q) for q in quotas]
    return [job.answer(args.seconds + 60) for job in jobs]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", default="build")
    parser.add_argument("--seconds", type=float, default=4)
    args = parser.parse_args()
    args.build = os.path.abspath(args.build)
    try:
        import torch
        gpus = torch.cuda.device_count()
    except ImportError:
        print("no PyTorch here")
        return 77
    if gpus < 2:
        print(f"{gpus} GPU here: two are needed")
        return 77
    with tempfile.TemporaryDirectory() as args.dir:
        alone, wrong = together(args, gpus, [None])[0]
        if not alone:
            print(f"the job alone, without cuota: {wrong}")
            return 77
        print(f"        alone: {alone[0]:.1f} steps/s on {gpus} GPUs")
        native = together(args, gpus, [None, None])
        sliced = sum(r[0] for r, _ in native if r) / alone[0]
        print("        two jobs, the driver's slicing: " +
              " + ".join(f"{r[0] / alone[0]:.2f}" if r else w for r, w in native))
        for name, quotas in (("equal weights", [{"CUOTA_WEIGHT": "100", "CUOTA_GROUP": g} for g in "ab"]),
                             ("caps of 45", [{"CUOTA_SM": "45", "CUOTA_GROUP": g} for g in "cd"])):
            got = together(args, gpus, quotas)
            for (rate, wrong), job in zip(got, "ab"):
                fact(rate, f"{name}: job {job} goes on" + (f": {rate[0] / alone[0]:.2f} of its rate alone, longest step "
                                                           f"{rate[1] * 1e3:.0f} ms" if rate else f": {wrong}"))
            if all(r for r, _ in got):
                total = sum(r[0] for r, _ in got) / alone[0]
                fact(total >= 0.9 * sliced or name != "equal weights",
                     f"{name}: {total:.2f} in all, the driver's slicing gives {sliced:.2f}")
        one, wrong = together(args, gpus, [{"CUOTA_SM": "30", "CUOTA_GROUP": "e"}])[0]
        fact(one and abs(one[0] / alone[0] - 0.3) <= 0.05,
             f"one job under a cap of 30: {one[0] / alone[0]:.2f} of its rate alone" if one else f"cap of 30: {wrong}")
    print(f"{results['passed']} passed, {results['failed']} failed")
    return 1 if results["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
