#!/usr/bin/env python3
"""The meter against a profiler, and caps on programs that wait for the host, on a real GPU with PyTorch.

For each program: how busy the device is by the profiler's records and by cuota's meter when nothing is capped; what
cuota costs it uncontended; and under --sm 30% its speed and its share of the device by the profiler's measure. A
program that needs less than its cap must keep its speed.

    tests/gpu/meter.py [BUILD] [--only small,medium,large,xl,infer] [--rounds N]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = {
    "small": (["train.py", "--size", "small"], 0),
    "medium": (["train.py", "--size", "medium"], 0),
    "large": (["train.py", "--size", "large"], 0),
    "xl": (["train.py", "--size", "xl"], 0),
    "infer": (["infer.py"], 5),
}

counts = {"passed": 0, "failed": 0}


class Worker:
    def __init__(self, build, arguments, quota):
        command = [sys.executable, os.path.join(HERE, "workloads", arguments[0]), *arguments[1:]]
        if quota:
            command = [os.path.join(build, "cuota"), "run", *quota, "--", *command]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("a workload ended early")
        return json.loads(line)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.answer()

    def rate(self, seconds, period):
        return self.ask(f"run {seconds} 0 {period}")["rate"]

    def end(self):
        try:
            self.process.stdin.write("quit\n")
            self.process.stdin.flush()
            self.process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()


def busy_seconds(build, group):
    out = subprocess.run([os.path.join(build, "cuota"), "status", "--json"], capture_output=True, text=True)
    for gpu in json.loads(out.stdout)["gpus"]:
        for entry in gpu["groups"]:
            if entry["name"] == group:
                return entry["sm"]["busy_seconds"]
    raise RuntimeError(f"no group {group} in the ledger")


def fact(ok, text):
    counts["passed" if ok else "failed"] += 1
    print(("ok      " if ok else "NOT OK  ") + text, flush=True)


def measure(build, name, rounds):
    arguments, period = PROGRAMS[name]
    native = Worker(build, arguments, None)
    free = Worker(build, arguments, ["--group", f"free-{name}", "--weight", "100"])
    capped = Worker(build, arguments, ["--group", f"capped-{name}", "--sm", "30%"])
    for worker in (native, free, capped):
        worker.answer()
    alone, with_cuota, metered = [], [], []
    for _ in range(rounds):
        alone.append(native.rate(1.5, period))
        before, began = busy_seconds(build, f"free-{name}"), time.monotonic()
        with_cuota.append(free.rate(1.5, period))
        wall = time.monotonic() - began
        metered.append((busy_seconds(build, f"free-{name}") - before) / wall)
    step = native.ask("profile 30")["device_ms_per_step"] / 1e3
    capped.rate(2, period)
    got = capped.rate(4, period)
    for worker in (native, free, capped):
        worker.end()
    rate, mine = statistics.median(alone), statistics.median(with_cuota)
    need = step * rate
    print(
        f"{name}: alone {rate:.1f} steps/s (spread {min(alone):.1f}..{max(alone):.1f}), with cuota {mine:.1f} "
        f"({mine / rate:.3f}); device busy by profiler {step * mine:.3f}, by meter {statistics.median(metered):.3f}; "
        f"under 30 %: {got:.1f} steps/s ({got / rate:.3f}), device {step * got:.3f}"
    )
    fact(abs(step * mine - statistics.median(metered)) <= 0.02, f"{name}: the meter is within 2 points of the profiler")
    if period:
        fact(got >= 0.98 * rate, f"{name}: keeps its rate under a cap above what it needs")
    elif need < 0.28:
        fact(got >= 0.95 * rate, f"{name}: keeps its speed under a cap above what it needs")
    else:
        fact(abs(step * got - 0.30) <= 0.015, f"{name}: gets 30 % (within 1.5 points) of the device")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?", default="build")
    parser.add_argument("--only", default=",".join(PROGRAMS))
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    os.environ.setdefault("CUOTA_DIR", "/dev/shm/cuota-meter")
    os.makedirs(os.environ["CUOTA_DIR"], exist_ok=True)
    for name in options.only.split(","):
        try:
            measure(options.build, name, options.rounds)
        except RuntimeError as error:
            fact(False, f"{name}: {error}")
    print(f"{counts['passed']} passed, {counts['failed']} failed")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
