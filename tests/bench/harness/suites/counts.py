"""Instructions that the library spends on a launch and on a charge, counted by callgrind on the simulated
driver and held against tests/bench/baseline.json: a figure that no busy machine disturbs.

Counted: what runs in libcuota.so on the calling thread, for COUNT calls more than a shorter run made.
"""

import glob
import json
import os
import re
import shutil
import subprocess

from ..report import progress
from ..tables import Table
from ..ways import Quota

ABOUT = "instructions a call in the library (callgrind), against the baseline"
BUDGET = (120, 120, 120)
FEW, MANY = 640, 3200
CASES = {  # name: (what bench_paths does, quota)
    "launch, no quota": ("launch", Quota()),
    "launch, cap that does not bind": ("launch", Quota(sm=95)),
    "launch, turn held": ("launch", Quota(weight=100)),
    "graph launch, cap that does not bind": ("graph", Quota(sm=95)),
    "cuMemAlloc + cuMemFree, no quota": ("alloc", Quota()),
    "cuMemAlloc + cuMemFree, memory cap": ("alloc", Quota(mem="64G")),
    "cuMemAllocAsync + cuMemFreeAsync, memory cap": ("pool", Quota(mem="64G")),
    "cuMemGetInfo, memory cap": ("info", Quota(mem="64G")),
}
QUICK = ("launch, no quota", "launch, cap that does not bind", "cuMemAlloc + cuMemFree, memory cap")
BAND = 0.10  # and BAND_COUNT more: one sample more or less in the run is worth some
BAND_COUNT = 8


def baseline_path(bench):
    return os.path.join(bench.root, "tests", "bench", "baseline.json")


def read_baseline(bench):
    try:
        with open(baseline_path(bench), encoding="utf-8") as f:
            return json.load(f).get("instructions", {})
    except (OSError, ValueError):
        return {}


def library_instructions(path):
    """Self cost of the functions in libcuota.so, from one of callgrind's files."""
    objects, inside, total, skip = {}, False, 0, False
    with open(path, encoding="utf-8", errors="replace") as f:
        lines = f.readlines()
    for line in lines:
        if line.startswith("ob="):
            found = re.match(r"ob=\((\d+)\)(?: (.*))?", line)
            if found[2]:
                objects[found[1]] = os.path.basename(found[2].strip())
            inside = objects.get(found[1], "").startswith("libcuota.so")
        elif line.startswith("cob="):
            found = re.match(r"cob=\((\d+)\)(?: (.*))?", line)
            if found[2]:
                objects[found[1]] = os.path.basename(found[2].strip())
        elif line.startswith("calls="):
            skip = True  # the next line is the callee's cost, counted where it is spent
        elif line[:1].isdigit() or line[:1] in "+-*":
            if inside and not skip:
                total += int(line.split()[1])
            skip = False
    return total


def count(bench, what, quota, calls):
    way = bench.ways["cuota"]
    _, env = way.command([], Quota())
    env.update({way.variables[k]: str(v) for k, v in quota.words().items()})
    out = os.path.join(bench.scratch, f"callgrind.{what}.{calls}")
    argv = ["valgrind", "--tool=callgrind", "--separate-threads=yes", f"--callgrind-out-file={out}",
            "-q", bench.tool("bench_paths"), what, str(calls)]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=100)
    if done.returncode:
        raise RuntimeError(f"exit status {done.returncode}: {done.stderr.strip()[-200:]}")
    # With separate threads the first one's file has -01; a program of one thread may have none.
    found = sorted(glob.glob(out + "-01")) or [out]
    total = library_instructions(found[0])
    for file in glob.glob(out + "*"):
        os.unlink(file)
    return total


def run(bench, entry):
    if not shutil.which("valgrind"):
        entry.skip("everything", "valgrind is not installed (apt-get install valgrind)")
        return
    if not bench.way("cuota"):
        entry.skip("everything", bench.absent["cuota"])
        return
    baseline = read_baseline(bench)
    cases = QUICK if bench.quick else tuple(CASES)
    for case in cases:
        if not bench.time_left(8):
            entry.skip(case, "out of time")
            continue
        what, quota = CASES[case]
        try:
            few, many = (count(bench, what, quota, n) for n in (FEW, MANY))
        except (RuntimeError, subprocess.TimeoutExpired, OSError) as e:
            entry.skip(case, str(e))
            continue
        per_call = (many - few) / (MANY - FEW)
        entry.row(case=case, instructions=round(per_call, 1), baseline=baseline.get(case))
        progress(f"counts: {case}: {per_call:.1f} instructions a call")
    if bench.options.baseline:
        write_baseline(bench, entry)
    judge(entry)


def write_baseline(bench, entry):
    path = baseline_path(bench)
    try:
        with open(path, encoding="utf-8") as f:
            data = json.load(f)
    except (OSError, ValueError):
        data = {}
    data["about"] = ("Instructions a call in libcuota.so, counted by callgrind (tests/bench/harness/suites/"
                     f"counts.py). A figure more than {100 * BAND:g} % and {BAND_COUNT} instructions above "
                     "is a regression. Written by: tests/bench/run BUILD --only counts --baseline")
    data.setdefault("instructions", {}).update(
        {r["case"]: r["instructions"] for r in entry.data["rows"]})
    with open(path, "w", encoding="utf-8") as f:
        json.dump(data, f, indent=1)
        f.write("\n")
    progress(f"counts: wrote {path}")


def judge(entry):
    for row in entry.data["rows"]:
        if row["baseline"] is None:
            continue
        limit = row["baseline"] * (1 + BAND) + BAND_COUNT
        entry.check(f"instructions: {row['case']}: at most {limit:.0f}", row["instructions"] <= limit,
                    f"{row['instructions']:.1f} (baseline {row['baseline']:.1f})")


def tables(data):
    return [Table("Instructions a call inside the library", ["call", "instructions", "baseline", "ratio"],
                  [(r["case"], r["instructions"], r["baseline"],
                    f"{r['instructions'] / r['baseline']:.3f}" if r["baseline"] else None)
                   for r in data["rows"]])]
