"""What the library adds to starting a program: one that never uses CUDA, and one that does."""

import sys
import time

from ..stats import median, percentile, spread
from ..tables import Table, unique
from ..ways import Quota

ABOUT = "start-up cost (OH-004): programs that never use CUDA, and CUDA start-up until the first result"
BUDGET = (30, 16, 15)
IDLE = (("true", ["true"]), ("python3 -c pass", [sys.executable, "-c", "pass"]))
PROMISE_US = 100
CUDA_CASES = (
    ("native", "no library", Quota()),
    ("cuota", "preloaded, no quota", Quota()),
    ("cuota", "cuota run with caps", Quota(sm=50, mem="64G")),
    ("mps", "client of the daemon", Quota()),
    ("peer", "with limits", Quota(sm=50, mem="64g")),
)


def idle_programs(bench, entry, seconds):
    for name, argv in IDLE:
        for way in ("cuota", "peer"):
            if not bench.way(way) or not bench.time_left(seconds + 1):
                continue
            tenant = bench.start("native", [bench.tool("bench_spawn"), f"{seconds:g}",
                                            bench.ways[way].library, *argv])
            try:
                got = tenant.answer(seconds + 30)
            except TimeoutError as e:
                got = {"error": str(e)}
            tenant.end()
            if "error" in got:
                entry.skip(f"{way}, {name}", got["error"])
                continue
            entry.row(kind="idle", way=way, what=name, added_us=got["added_ns"]["p50"] / 1e3,
                      ci_us=got["added_ns"]["ci"] / 1e3, raw_us=got["raw_ns"]["p50"] / 1e3,
                      samples=got["raw_ns"]["n"])


def cuda_once(bench, way, quota):
    began = time.monotonic()
    tenant = bench.start(way, bench.work(10, "wait", seconds="0.0"), quota)
    try:
        got = tenant.answer(30)
    except TimeoutError as e:
        got = {"error": str(e)}
    took = time.monotonic() - began
    tenant.end()
    return got, took


def cuda_programs(bench, entry, rounds):
    for i in range(rounds):
        for way, case, quota in CUDA_CASES:
            if not bench.time_left(2) or not bench.way(way):
                continue
            got, took = cuda_once(bench, way, quota)
            if "error" in got:
                entry.skip(f"CUDA start-up, {way}, {case}", got["error"])
            elif i:  # the first one warms the code cache
                entry.row(kind="cuda", way=way, what=case, ms=round(took * 1e3, 3))


def run(bench, entry):
    idle_programs(bench, entry, bench.seconds(3, 1, 1))
    cuda_programs(bench, entry, bench.pick(12, 5, 4))
    for row in entry.rows(kind="idle", way="cuota"):
        sure = row["ci_us"] <= PROMISE_US
        entry.check(f"{row['what']}: at most {PROMISE_US} us more",
                    row["added_us"] <= PROMISE_US + row["ci_us"] if sure else None,
                    f"{row['added_us']:.1f} ± {row['ci_us']:.1f} us on {row['raw_us']:.0f} us",
                    timing=True)


def tables(data):
    idle = [(r["what"], r["way"], f"{r['added_us'] / r['raw_us'] * 100:+.1f} %",
             f"{r['added_us']:+.1f} ± {r['ci_us']:.1f}", r["raw_us"])
            for r in data["rows"] if r["kind"] == "idle"]
    cuda = []
    base = median([r["ms"] for r in data["rows"] if r["kind"] == "cuda" and r["way"] == "native"])
    for way, what in unique((r["way"], r["what"]) for r in data["rows"] if r["kind"] == "cuda"):
        ms = [r["ms"] for r in data["rows"] if (r.get("way"), r["what"]) == (way, what) and "ms" in r]
        cuda.append((way, what, f"{median(ms) / base:.3f}" if base else None, median(ms),
                     percentile(ms, 0.9), spread(ms)))
    return [
        Table("Programs that never use CUDA", ["program", "library", "added", "added us", "alone us"], idle),
        Table("From exec to the first kernel's result", ["way", "case", "ratio to native", "median ms",
                                                         "p90 ms", "± ms"], cuda),
    ]
