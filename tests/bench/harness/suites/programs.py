"""Framework programs under a cap, and uncapped with a weight: speed against alone, and the meter against
the device's own records.

Device time of a step comes from the profiler (CUPTI), without any library; busy = device time of a step x
steps per second. A program that needs less than its cap must keep its speed; one that needs more must
get the cap.
"""

import time

from .. import workloads
from ..stats import median, spread
from ..tables import Table, unique
from ..ways import Quota

ABOUT = "framework programs: speed under a cap, cost without one, meter against profiler (OH-010, IS-003)"
BUDGET = (260, 45, 0)
CAP = 30
ORDER = ("training medium", "training xl", "inference, 5 ms apart", "training large", "training small",
         "graph decoding", "convolution training", "cuBLAS products", "JAX step", "CuPy loop")
QUICK = ("training medium", "training xl")
NEIGHBOUR = "weight, a neighbour"
POINTS, METER_POINTS, FREE, COST = 1.5, 1.0, 0.98, 0.005


def quotas(name):
    slug = name.replace(" ", "-").replace(",", "")
    return {
        ("native", "alone"): Quota(),
        ("cuota", "weight, no cap"): Quota(weight=100, group=f"{slug}-weight"),
        ("cuota", f"cap {CAP}"): Quota(sm=CAP, group=f"{slug}-cap"),
        ("peer", f"cap {CAP}"): Quota(sm=CAP),
        ("mps", f"cap {CAP}"): Quota(sm=CAP),
    }


def run(bench, entry):
    seconds = bench.seconds(1.5, 1.5, 1)
    for name in bench.pick(ORDER, QUICK, ()):
        module = workloads.PROGRAMS[name][2]
        if not workloads.has_module(module):
            entry.skip(name, f"no Python module {module}")
            continue
        if not bench.time_left(25):
            entry.skip(name, "out of time")
            continue
        one(bench, entry, name, seconds)
    judge(entry)


def one(bench, entry, name, seconds):
    cases = {key: quota for key, quota in quotas(name).items() if bench.way(key[0])}
    started = workloads.start_programs(bench, [(way, name, q) for (way, _), q in cases.items()], 60)
    found = {}
    for (way, case), quota in cases.items():
        program = next((p for p in started if p.way == way and p.quota == quota), None)
        if program:
            found[(way, case)] = program
        else:
            entry.skip(f"{name}: {way}, {case}", "did not start")
    try:
        if ("native", "alone") in found:
            measure(bench, entry, name, found, seconds)
    finally:
        for program in started:
            program.end()


def run_once(bench, entry, program, way, case, rep, seconds):
    before = bench.busy_seconds(program.quota.group) if way == "cuota" else None
    got = program.run(seconds)
    after = bench.busy_seconds(program.quota.group) if way == "cuota" else None
    if "error" in got:
        entry.skip(f"{program.name}: {way}, {case}", got["error"])
        return
    row = {k: got[k] for k in ("rate", "p50_ms", "p99_ms", "longest_ms", "steps", "seconds")}
    if before is not None and after is not None:
        row["metered"] = round((after - before) / got["seconds"], 4)
    entry.row(kind="run", name=program.name, way=way, case=case, rep=rep, **row)


def beside_neighbour(bench, entry, program, seconds):
    """Turns with a loop that wants all of the device: the meter is still the profiler's figure."""
    if program.failure or not bench.time_left(seconds + 5):
        return
    loop = bench.start("cuota", bench.work(570, "wait", seconds=f"{seconds + 3:g}"),
                       Quota(weight=100, group=f"{program.quota.group}-neighbour"))
    time.sleep(1.5)  # its context, and one measure of its demand
    run_once(bench, entry, program, "cuota", NEIGHBOUR, 0, seconds)
    loop.end(patience=0)


def measure(bench, entry, name, found, seconds):
    for rep in range(bench.pick(2, 2, 1)):
        for (way, case), program in found.items():
            if not program.failure and bench.time_left(seconds + 2):
                run_once(bench, entry, program, way, case, rep, seconds)
    if ("cuota", "weight, no cap") in found:
        beside_neighbour(bench, entry, found[("cuota", "weight, no cap")], seconds)
    # Last, because a process that was profiled once may be slower ever after.
    profile = found[("native", "alone")].profile(20)
    entry.row(kind="profile", name=name, **profile)
    device_ms = profile.get("device_ms_per_step")
    for row in entry.rows(kind="run", name=name) if device_ms else ():
        row["busy"] = round(device_ms * row["rate"] / 1e3, 4)


def middle(data, name, way, case, key):
    values = [r[key] for r in data["rows"]
              if r["kind"] == "run" and (r["name"], r["way"], r["case"]) == (name, way, case) and key in r]
    return median(values) if values else None


def judge(entry):
    data = entry.data
    names = unique(r["name"] for r in data["rows"] if r["kind"] == "run")
    for name in names:
        alone = middle(data, name, "native", "alone", "rate")
        busy = middle(data, name, "native", "alone", "busy")
        capped = middle(data, name, "cuota", f"cap {CAP}", "rate")
        weighted = middle(data, name, "cuota", "weight, no cap", "rate")
        if alone and weighted and workloads.PROGRAMS[name][3] == 0:
            rates = [r["rate"] for r in entry.rows(kind="run", name=name, way="native")]
            noise = spread(rates) / alone
            kept = weighted / alone >= 1 - COST
            entry.check(f"{name}: uncapped, at most {100 * COST:g} % slower",
                        None if noise > COST and abs(weighted / alone - 1) <= noise else kept,
                        f"{100 * (weighted / alone - 1):+.2f} %; alone varies by ±{100 * noise:.2f} %")
        if not alone or not capped or busy is None:
            continue
        if busy < CAP / 100 - 0.02:
            entry.check(f"{name} needs {100 * busy:.0f} %: full speed under a cap of {CAP}",
                        capped / alone >= FREE, f"{capped / alone:.3f}")
        else:
            got = middle(data, name, "cuota", f"cap {CAP}", "busy")
            entry.check(f"{name}: {CAP} percent of the device by the profiler",
                        abs(100 * got - CAP) <= POINTS, f"{100 * got:.1f} %")
        for case in (f"cap {CAP}", NEIGHBOUR):
            metered, real = (middle(data, name, "cuota", case, k) for k in ("metered", "busy"))
            if metered is not None and real is not None:
                entry.check(f"{name}, {case}: meter within {METER_POINTS:g} point of the profiler",
                            abs(metered - real) * 100 <= METER_POINTS,
                            f"meter {100 * metered:.1f} %, profiler {100 * real:.1f} %")


def tables(data):
    about, speed = [], []
    for r in data["rows"]:
        if r["kind"] == "profile" and "kernels_per_step" in r:
            about.append((r["name"], r["kernels_per_step"], r["kernel_us"], r["device_ms_per_step"],
                          middle(data, r["name"], "native", "alone", "rate"),
                          middle(data, r["name"], "native", "alone", "busy")))
    for name, way, case in unique((r["name"], r["way"], r["case"]) for r in data["rows"]
                                  if r["kind"] == "run"):
        alone = middle(data, name, "native", "alone", "rate")
        rate = middle(data, name, way, case, "rate")
        rates = [r["rate"] for r in data["rows"]
                 if r["kind"] == "run" and (r["name"], r["way"], r["case"]) == (name, way, case)]
        busy, metered = (middle(data, name, way, case, k) for k in ("busy", "metered"))
        speed.append((name, way, case, f"{rate / alone:.3f}" if alone else None, rate, spread(rates),
                      100 * busy if busy is not None else None,
                      100 * metered if metered is not None else None,
                      middle(data, name, way, case, "p50_ms"), middle(data, name, way, case, "p99_ms")))
    return [
        Table("The programs alone", ["program", "kernels a step", "mean kernel us", "device ms a step",
                                     "steps a second", "device busy"], about),
        Table("Speed", ["program", "way", "case", "of alone", "steps/s", "±", "device %, profiler",
                        "device %, meter", "p50 ms", "p99 ms"], speed),
    ]
