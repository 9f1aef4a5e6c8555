"""Serves one workload to the benchmark: built and warmed up once, then run again and again on command.

Start-up of a framework takes longer than a measurement, so a workload stays alive between
measurements; while it waits for a command it launches nothing. Commands, a line each on stdin:

    run SECONDS START_NS PERIOD_MS   steps until SECONDS have passed since START_NS (CLOCK_MONOTONIC;
                                     0 = now); PERIOD_MS > 0: one step arrives each PERIOD_MS,
                                     latency counts from its arrival
    profile STEPS                    device time of STEPS steps, from the device's own records
    quit

Every answer is one JSON line on stdout. A step is a fixed amount of work and ends when the device is
done with it, so that rate / rate alone is the share a program got.
"""

import argparse
import gc
import json
import sys
import time

BEHIND_MAX = 20  # periods; then arrivals are dropped and counted


def say(**answer):
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def percentile(ordered, q):
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))] if ordered else 0.0


def wait_until(at_ns):
    while True:
        left = at_ns - time.monotonic_ns()
        if left <= 0:
            return
        if left > 300_000:
            time.sleep((left - 200_000) / 1e9)


def closed_loop(step, began, end):
    latencies, now = [], began
    while now < end:
        step()
        done = time.monotonic_ns()
        latencies.append(done - now)
        now = done
    return latencies, now, 0


def open_loop(step, began, end, period):
    latencies, arrival, done, dropped = [], began, began, 0
    while arrival < end:
        wait_until(arrival)
        step()
        done = time.monotonic_ns()
        latencies.append(done - arrival)
        arrival += period
        while arrival + BEHIND_MAX * period < done:
            arrival += period
            dropped += 1
    return latencies, max(done, end), dropped


def run(step, seconds, start_ns, period_ms):
    wait_until(start_ns)
    began = time.monotonic_ns()
    end = began + int(seconds * 1e9)
    if period_ms > 0:
        latencies, last, dropped = open_loop(step, began, end, int(period_ms * 1e6))
    else:
        latencies, last, dropped = closed_loop(step, began, end)
    ordered = sorted(latencies)
    elapsed = (last - began) / 1e9
    say(
        steps=len(latencies),
        seconds=round(elapsed, 4),
        rate=round(len(latencies) / elapsed, 4) if elapsed > 0 else 0,
        p50_ms=round(percentile(ordered, 0.50) / 1e6, 4),
        p99_ms=round(percentile(ordered, 0.99) / 1e6, 4),
        longest_ms=round((ordered[-1] if ordered else 0) / 1e6, 4),
        dropped=dropped,
        late_ms=round(max(0, began - start_ns) / 1e6, 3) if start_ns else 0,
    )


def summary_of_intervals(intervals, steps, count):
    """Busy time is the union: kernels on several streams at once count once."""
    intervals.sort()
    busy = total = 0.0
    last_end = None
    for begin, end in intervals:
        total += end - begin
        if last_end is None or begin > last_end:
            busy += end - begin
            last_end = end
        elif end > last_end:
            busy += end - last_end
            last_end = end
    wall = intervals[-1][1] - intervals[0][0] if intervals else 0.0
    return {
        "kernels_per_step": round(count / steps, 1),
        "device_ms_per_step": round(busy / steps / 1e3, 5),
        "kernel_us": round(total / count, 3) if count else 0,
        "busy_while_profiled": round(busy / wall, 4) if wall else 0,
    }


def serve(kind, make, arguments=None):
    """make(options) returns an object with step() and, where it can, profile(steps)."""
    parser = argparse.ArgumentParser(description=f"the {kind} workload; commands come on stdin")
    parser.add_argument("--warmup", type=int, default=8, help="steps before the first command")
    for name, default in (arguments or {}).items():
        parser.add_argument("--" + name, type=type(default), default=default)
    options = parser.parse_args()
    began = time.monotonic()
    workload = make(options)
    for _ in range(options.warmup):
        workload.step()
    gc.collect()
    gc.disable()
    say(ready=kind, startup_s=round(time.monotonic() - began, 3))
    for line in sys.stdin:
        words = line.split()
        if not words:
            continue
        if words[0] == "quit":
            break
        if words[0] == "run":
            run(workload.step, float(words[1]), int(words[2]), float(words[3]))
        elif words[0] == "profile" and hasattr(workload, "profile"):
            try:
                say(**workload.profile(int(words[1])))
            except Exception as e:  # no profiler here: the workload itself is still good
                say(error=f"{type(e).__name__}: {e}")
        else:
            say(error=f"cannot {line.strip()}")
