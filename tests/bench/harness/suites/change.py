"""A cap changed while the program runs: how soon the new share holds."""

import os
import subprocess
import time

from ..stats import median
from ..tables import Table
from ..ways import Quota

ABOUT = "cap changed from 80 to 20 percent by `cuota set` (IS-004)"
BUDGET = (25, 12, 12)
BEFORE, AFTER = 80, 20
US, WINDOW_MS = 570, 50
PROMISE_MS = 250
POINTS = 3.0  # one kernel more or less in a window of 50 ms is 1.1 points


def set_cap(bench, group, cap):
    way = bench.ways["cuota"]
    env = {**way.env, "PATH": os.environ.get("PATH", "")}
    return subprocess.run([way.cli, "set", group, "--sm", str(cap)], env=env, timeout=20,
                          capture_output=True, text=True)


def settled_after_ms(windows, change_ms, target, first):
    """Middle of the first window after the change from which on the mean of 4 windows stays in band."""
    shares = [(i * WINDOW_MS, w) for i, w in enumerate(windows)]
    later = [(at, w) for at, w in shares if at >= change_ms]
    for i in range(len(later) - 3):
        mean = sum(w for _, w in later[i : i + 4]) / 4
        rest = [w for _, w in later[i:]]
        if abs(mean - target) * 100 <= POINTS and abs(sum(rest) / len(rest) - target) * 100 <= first:
            return max(0.0, later[i][0] - change_ms)
    return None


def run(bench, entry):
    if not bench.way("cuota") or not bench.ways["cuota"].has_cli:
        entry.skip("everything", "the cuota command does not run here")
        return
    seconds = bench.seconds(4, 3, 3)
    argv = [bench.tool("bench_request"), "--us", f"{bench.nominal(US):.4g}", "--kernels", "1",
            "--period-us", "0", "--window-ms", str(WINDOW_MS), "--seconds", f"{seconds:g}"]
    solo = bench.start("native", argv).answer(seconds + 20)
    queue = bench.alone("native", bench.work(US, "queue"), 1)
    if "error" in solo or "error" in queue:
        entry.skip("everything", solo.get("error") or queue.get("error"))
        return
    kernel_s = 1 / queue["rate"]
    for i in range(bench.pick(3, 1, 1)):
        group = f"change-{os.getpid()}-{i}"
        tenant = bench.start("cuota", argv, Quota(sm=BEFORE, group=group))
        time.sleep(0.4 + seconds / 2)
        changed_ns = time.monotonic_ns()
        told = set_cap(bench, group, AFTER)
        told_ms = (time.monotonic_ns() - changed_ns) / 1e6
        got = tenant.answer(seconds * 2 + 20)
        tenant.end()
        if told.returncode or "error" in got:
            entry.skip(f"run {i}", told.stderr.strip() or got.get("error"))
            continue
        record(entry, got, changed_ns, told_ms, kernel_s, median(solo["windows"]))
    judge(entry)


def record(entry, got, changed_ns, told_ms, kernel_s, solo_window):
    shares = [w * kernel_s / (WINDOW_MS / 1e3) for w in got["windows"]]
    change_ms = (changed_ns - got["began_ns"]) / 1e6
    before = [s for i, s in enumerate(shares) if 300 <= i * WINDOW_MS < change_ms - WINDOW_MS]
    after = [s for i, s in enumerate(shares) if i * WINDOW_MS >= change_ms + 500]
    entry.row(way="cuota", change_ms=round(change_ms, 1), set_took_ms=round(told_ms, 1),
              before=round(sum(before) / len(before), 4) if before else None,
              after=round(sum(after) / len(after), 4) if after else None,
              settled_ms=settled_after_ms(shares, change_ms, AFTER / 100, POINTS),
              shares=[round(s, 3) for s in shares], solo_window=solo_window)


def judge(entry):
    rows = entry.rows(way="cuota")
    if not rows:
        return
    slowest = [r["settled_ms"] for r in rows]
    ok = all(s is not None and s <= PROMISE_MS for s in slowest)
    entry.check(f"the new share holds within {PROMISE_MS} ms", ok,
                ", ".join("never" if s is None else f"{s:.0f} ms" for s in slowest), timing=True)


def tables(data):
    return [Table("Cap changed from 80 to 20 percent while running",
                  ["before %", "after %", "settled after ms", "`cuota set` took ms"],
                  [(100 * r["before"] if r["before"] else None, 100 * r["after"] if r["after"] else None,
                    r["settled_ms"], r["set_took_ms"]) for r in data["rows"]])]
