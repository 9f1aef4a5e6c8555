"""What a launch costs more than the driver's own call, both called in turn in one process."""

from ..stats import median, spread
from ..tables import Table, unique
from ..ways import Quota

ABOUT = "launch cost added by the library, in nanoseconds (OH-001, OH-005, OH-008)"
BUDGET = (60, 24, 20)

NONE, NO_QUOTA = "no library (noise of the method)", "preloaded, no quota"
CAP, TURN, CONTENDED = "a cap that does not bind", "holding the turn", "turns contended"
LIMIT = "a limit that does not bind"
CASES = (
    ("native", NONE, Quota()),
    ("cuota", NO_QUOTA, Quota()),
    ("cuota", CAP, Quota(sm=95)),
    ("cuota", TURN, Quota(weight=100)),
    ("peer", NO_QUOTA, Quota()),
    ("peer", LIMIT, Quota(sm=95)),
    ("mps", NONE, Quota()),
)
PROMISES_NS = {NO_QUOTA: 10, CAP: 60, TURN: 60}
NOISE_NS = 5


def measure(bench, entry, way, case, quota, what, seconds):
    tenant = bench.start(way, [bench.tool("bench_launch"), "--what", what, "--seconds", f"{seconds:g}"],
                         quota)
    try:
        got = tenant.answer(seconds + 30)
    except TimeoutError as e:
        got = {"error": str(e)}
    tenant.end()
    if "error" in got:
        entry.skip(f"{way}, {case}, {what}", got["error"])
        return
    entry.row(way=way, case=case, what=what, **figures(got))


def figures(got):
    asked, raw = got["asked_ns"], got["raw_ns"]
    return {"added_ns": got["added_ns"]["p50"], "ci_ns": got["added_ns"]["ci"],
            "added_mean_ns": got["added_mean_ns"]["p50"], "asked_ns": asked["p50"], "raw_ns": raw["p50"],
            "p99_ns": asked["p99"], "raw_p99_ns": raw["p99"], "longest_ns": asked["max"],
            "samples": asked["n"], "interposed": got["interposed"]}


def contended(bench, entry, seconds):
    """Single launches next to a neighbour that wants the device: most flow, some wait for the turn."""
    for way, quota in (("native", Quota()), ("cuota", Quota(weight=100)), ("peer", Quota(sm=95))):
        if not bench.way(way):
            continue
        neighbour = bench.start(way, bench.work(94, "wait", seconds=f"{seconds + 4:g}"), quota)
        tenant = bench.start(way, [bench.tool("bench_launch"), "--seconds", f"{seconds:g}"],
                             quota)
        try:
            got = tenant.answer(seconds + 30)
        except TimeoutError as e:
            got = {"error": str(e)}
        tenant.end()
        neighbour.end(patience=0)
        if "error" in got:
            entry.skip(f"{way}, {CONTENDED}", got["error"])
            continue
        entry.row(way=way, case=CONTENDED, what="kernel", **figures(got))


def run(bench, entry):
    seconds = bench.seconds(1.2, 0.5, 0.4)
    for _ in range(bench.pick(3, 1, 1)):
        for what in ("kernel", "graph"):
            for way, case, quota in CASES:
                if bench.time_left(seconds + 1) and bench.way(way):
                    measure(bench, entry, way, case, quota, what, seconds)
    if bench.time_left(3 * seconds + 10):
        contended(bench, entry, seconds)
    judge(entry)


def judge(entry):
    noise = [abs(r["added_ns"]) for r in entry.rows(way="native", case=NONE)]
    if noise:
        entry.check("method: without a library the difference is none", max(noise) <= NOISE_NS,
                    f"largest {max(noise):.1f} ns", timing=True)
    for what in ("kernel", "graph"):
        for case, promised in PROMISES_NS.items():
            rows = entry.rows(way="cuota", case=case, what=what)
            if not rows:
                continue
            if not all(r["interposed"] for r in rows):
                entry.check(f"{what}: {case}", None, "the library does not wrap this launch")
                continue
            added = median([r["added_ns"] for r in rows])
            entry.check(f"{what}: {case}: at most {promised} ns", added <= promised, f"{added:.1f} ns",
                        timing=True)


def tables(data):
    rows = []
    keys = unique((r["way"], r["case"], r["what"]) for r in data["rows"])
    for way, case, what in keys:
        found = [r for r in data["rows"] if (r["way"], r["case"], r["what"]) == (way, case, what)]
        added = median([r["added_ns"] for r in found])
        raw = median([r["raw_ns"] for r in found])
        sure = max(max(r["ci_ns"] for r in found), spread([r["added_ns"] for r in found]))
        rows.append((way, case, what, f"{100 * added / raw:+.2f} %", f"{added:+.1f} ± {sure:.1f}",
                     median([r["added_mean_ns"] for r in found]), raw, found[-1]["p99_ns"],
                     found[-1]["raw_p99_ns"]))
    return [Table("Launch cost", ["way", "case", "launch of a", "added, median", "added ns, median",
                                  "added ns, mean", "driver's own ns", "p99 ns", "driver's own p99 ns"], rows,
                  "Batches of 64 launches through the wrapper and through the driver's own address, in "
                  "turn, in one process; each launch timed. ± is the larger of the median's 95 % interval "
                  "and what repeating the run changed. The mean holds the launches that the library times.")]
