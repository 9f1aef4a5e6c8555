"""The dead and the stopped: how long others wait for what they had."""

import signal
import time

from ..bench import kill_now
from ..stats import median
from ..tables import Table
from ..ways import Quota

ABOUT = "memory and turns after kill -9 and SIGSTOP (IS-010, ERR-002)"
BUDGET = (25, 20, 15)
CAP, HELD, CLAIMED = "8G", 6144, 4096  # of the cap, MiB
PROMISE_MS = 50
US = 94


def memory(bench, entry, way, serial):
    """One of a group holds 6 of 8 GiB; another of it is refused 4, until the first is killed."""
    quota = Quota(mem=CAP, group=f"reclaim-{serial}")
    holder = bench.start(way, [bench.tool("bench_reclaim"), "hold", str(HELD)], quota)
    try:
        if holder.line(20) != "held":
            entry.skip(f"{way}: memory", holder.why())
            return
        claimer = bench.start(way, [bench.tool("bench_reclaim"), "claim", str(CLAIMED)], quota)
        ready = claimer.answer(20)
        if not ready.get("refused"):
            entry.row(kind="memory", way=way, refused=False)
            claimer.end(patience=1)
            return
        claimer.send("go")
        time.sleep(0.1)
        killed = kill_now(holder)
        got = claimer.answer(15)
        claimer.end()
        entry.row(kind="memory", way=way, refused=True, tries=got.get("tries"),
                  ms=round((got["got_ns"] - killed) / 1e6, 3) if got.get("got_ns") else None)
    except TimeoutError as e:
        entry.skip(f"{way}: memory", str(e))
    finally:
        holder.end(patience=0)


def turn(bench, entry, way, number, serial):
    """Two loops share the device; one is killed or stopped; the other's longest gap counts."""
    seconds = 1.6
    at = bench.start_at(2)
    tenants = [
        bench.start(way, bench.work(US, "wait", seconds=f"{seconds:g}", start=at),
                    Quota(weight=100, group=f"turn-{serial}-{letter}") if way == "cuota" else Quota())
        for letter in "ab"
    ]
    time.sleep(max(0, (at - time.monotonic_ns()) / 1e9) + 0.6)
    tenants[1].signal(number)
    try:
        got = tenants[0].answer(seconds + 20)
    except TimeoutError as e:
        got = {"error": str(e)}
    tenants[1].signal(signal.SIGCONT) if number == signal.SIGSTOP else None
    for tenant in tenants:
        tenant.end(patience=0.2)
    if "error" in got:
        entry.skip(f"{way}: {signal.Signals(number).name}", got["error"])
        return
    entry.row(kind="turn", way=way, signal=signal.Signals(number).name, longest_ms=got["longest_ms"],
              rate=got["rate"])


def run(bench, entry):
    serial = 0
    for _ in range(bench.pick(5, 2, 2)):
        for way in ("native", "cuota", "peer"):
            if bench.way(way) and bench.time_left(5):
                serial += 1
                memory(bench, entry, way, serial)
    for _ in range(bench.pick(2, 1, 1)):
        for number in (signal.SIGKILL, signal.SIGSTOP):
            for way in ("native", "cuota", "peer"):
                if bench.way(way) and bench.time_left(5):
                    serial += 1
                    turn(bench, entry, way, number, serial)
    judge(entry)


def judge(entry):
    natives = entry.rows(kind="memory", way="native")
    if natives:
        entry.check("method: without a limiter nothing is refused", not any(r["refused"] for r in natives),
                    f"{len(natives)} runs")
    rows = entry.rows(kind="memory", way="cuota")
    if rows:
        refused = [r for r in rows if r["refused"]]
        times = [r["ms"] for r in refused]
        ok = len(refused) == len(rows) and all(t is not None and t <= PROMISE_MS for t in times)
        entry.check(f"memory of a killed process is free within {PROMISE_MS} ms", ok,
                    ", ".join("never" if t is None else f"{t:.1f} ms" for t in times) or "never refused", timing=True)
    rows = entry.rows(kind="turn", way="cuota", signal="SIGKILL")
    if rows:
        longest = max(r["longest_ms"] for r in rows)
        entry.check(f"nobody waits for a killed holder longer than {PROMISE_MS} ms",
                    longest <= PROMISE_MS, f"{longest:.1f} ms", timing=True)
    rows = entry.rows(kind="turn", way="cuota", signal="SIGSTOP")
    if rows:
        entry.check("nor for a stopped one longer than 1 s", max(r["longest_ms"] for r in rows) <= 1000,
                    f"{max(r['longest_ms'] for r in rows):.1f} ms", timing=True)


def tables(data):
    memory_rows, turn_rows = [], []
    for way in ("native", "cuota", "peer"):
        rows = [r for r in data["rows"] if (r["kind"], r["way"]) == ("memory", way)]
        times = [r["ms"] for r in rows if r.get("ms") is not None]
        if rows:
            memory_rows.append((way, f"{sum(r['refused'] for r in rows)} of {len(rows)}",
                                median(times), max(times, default=None)))
        for name in ("SIGKILL", "SIGSTOP"):
            found = [r for r in data["rows"] if (r["kind"], r["way"], r.get("signal")) == ("turn", way, name)]
            if found:
                turn_rows.append((way, name, max(r["longest_ms"] for r in found),
                                  median([r["rate"] for r in found])))
    return [
        Table("Memory of a killed member of the group", ["way", "refused before", "free after ms", "worst ms"],
              memory_rows),
        Table("Two loops, one is hit: the other", ["way", "signal", "longest gap ms", "kernels/s"], turn_rows),
    ]
