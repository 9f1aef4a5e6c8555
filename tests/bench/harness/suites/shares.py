"""Share accuracy: caps x kernel lengths x ways to launch.

The work per kernel is fixed, so a program that gets a third of the device completes a third as many
kernels: share = rate / solo rate x the part of the device that the program keeps busy alone (1 for a deep
queue; for launch-and-wait loops solo rate x a kernel's time in the deep queue). Solo runs are without any
limiter, in the same run. A cap above what a program needs alone must not slow it at all.

This cannot pass without a limiter: native rows are measured like all others, and must miss the cap.
"""

from ..stats import median
from ..tables import Table, unique
from ..ways import Quota

ABOUT = "share accuracy of one process under a cap (IS-003, IS-007)"
BUDGET = (430, 75, 30)

LENGTHS_US = (66, 570, 10, 5600, 56000)
MODES = ("wait", "queue", "graph", "streams")
CAPS = (5, 10, 25, 50, 75, 90, 95)
COMPARED_CAPS = (10, 25, 50, 75, 90)
SETTLE_S = 0.3
POINTS = 1.0
POINTS_SIMULATED = 4.0  # a shared two-core machine pretends to be a device
METHOD_MARGIN = 0.08  # a cap nearer to what is needed alone could be met by a disturbed machine
GRAPH_US = 5000  # device time of one graph, at most 20 kernels


def chosen(text, default):
    return tuple(type(default[0])(w) for w in text.split(",")) if text else default


def duration(bench, us, cap, base):
    """Long enough that one kernel more or less is half a point at most."""
    longest = 30 if bench.options.seconds else 10
    return max(base, min(longest, 200 * us / 1e6)) if cap else base


def command(bench, us, mode, cap):
    """Under a cap what is measured begins when warm-up and its debt, and what was saved up, are over."""
    burst = max(1, min(20, int(GRAPH_US / us)))
    more = {"settle": SETTLE_S} if cap else {}
    return bench.work(us, mode, burst=burst, **more)


def once(bench, entry, way, us, mode, cap, seconds, **tags):
    argv = command(bench, us, mode, cap)
    if way == "cuota" and cap:
        got = bench.alone_metered(argv, seconds, Quota(sm=cap, group=f"share-{us}-{mode}-{cap}"), SETTLE_S)
        tags = {**tags, "metered": got.get("metered")}
    else:
        got = bench.alone(way, argv, seconds, Quota(sm=cap) if cap else None)
    if "error" in got:
        entry.skip(f"{way}, {us} us, {mode}, cap {cap}", got["error"])
        return None
    return entry.row(way=way, us=us, mode=mode, cap=cap, rate=got["rate"], seconds=got["seconds"],
                     launches=got["launches"], cv=got["cv"], longest_ms=got["longest_ms"], **tags)


def reference(bench, entry, us, modes, seconds):
    """Solo rates, and the device time of a kernel from the deep queue."""
    for mode in unique(("queue",) + tuple(modes)):
        once(bench, entry, "native", us, mode, None, seconds, solo=True)


def finish(entry, tolerance):
    """Fills in shares; done again after each cell, so that a cut run is readable."""
    for us in unique(r["us"] for r in entry.data["rows"]):
        queue = [r["rate"] for r in entry.rows(us=us, mode="queue", solo=True)]
        if not queue:
            continue
        kernel_s = 1 / median(queue)
        for row in entry.rows(us=us):
            solo = [r["rate"] for r in entry.rows(us=us, mode=row["mode"], solo=True)]
            if not solo:
                continue
            busy = min(1.0, median(solo) * kernel_s)
            row["kernel_us"] = round(kernel_s * 1e6, 3)
            row["of_solo"] = round(row["rate"] / median(solo), 5)
            row["share"] = round(busy * row["rate"] / median(solo), 5)
            row["solo_busy"] = round(busy, 4)
            if row["cap"]:
                row["binding"] = row["cap"] / 100 < row["solo_busy"] - tolerance / 100
                target = min(row["cap"] / 100, row["solo_busy"])
                row["error_points"] = round(100 * (row["share"] - target), 3)
                row["longest_bound_ms"] = round(us / 1e3 / (row["cap"] / 100) + 20, 2)


def judged_natives(entry):
    """A native run of each cell, held against every cap as if it had been asked to keep it."""
    cells = []
    for row in entry.rows(way="native", judged=True):
        for cap in unique(r["cap"] for r in entry.rows(way="cuota", us=row["us"], mode=row["mode"])):
            if cap / 100 <= row["solo_busy"] - METHOD_MARGIN:
                cells.append((row, cap, 100 * row["share"] - cap))
    return cells


def judge(entry, tolerance):
    missed = judged_natives(entry)
    if missed:
        passed = [c for c in missed if abs(c[2]) <= tolerance]
        entry.check("method: without a limiter every cap well below the need is missed", not passed,
                    f"native misses {len(missed) - len(passed)} of {len(missed)}, "
                    f"by {min(abs(c[2]) for c in missed):.1f} points at least")
    rows = [r for r in entry.rows(way="cuota") if r["cap"] and "error_points" in r]
    bound = [r for r in rows if r["binding"]]
    if bound:
        good = [r for r in bound if abs(r["error_points"]) <= tolerance]
        worst = max(bound, key=lambda r: abs(r["error_points"]))
        entry.check(f"share within {tolerance:g} point(s) of the cap", len(good) == len(bound),
                    f"{len(good)} of {len(bound)}; worst {worst['error_points']:+.2f} at cap "
                    f"{worst['cap']}, {worst['us']} us, {worst['mode']}",
                    timing="load")
        steady = [r for r in bound if r["us"] <= 1000]
        if steady:
            uneven = max(steady, key=lambda r: r["cv"])
            good = [r for r in steady if r["cv"] <= 0.05]
            entry.check("100 ms windows vary by at most 0.05 (kernels up to 1 ms)",
                        len(good) == len(steady), f"{len(good)} of {len(steady)}; worst "
                        f"{uneven['cv']:.3f} at cap {uneven['cap']}, {uneven['us']} us, {uneven['mode']}",
                        timing=True)
        good = [r for r in bound if r["longest_ms"] <= r["longest_bound_ms"]]
        slow = max(bound, key=lambda r: r["longest_ms"] / r["longest_bound_ms"])
        entry.check("longest wait at most kernel / cap + 20 ms", len(good) == len(bound),
                    f"{len(good)} of {len(bound)}; worst {slow['longest_ms']:.1f} ms of "
                    f"{slow['longest_bound_ms']:.1f} at cap {slow['cap']}, {slow['us']} us, {slow['mode']}",
                    timing=True)
    free = [r for r in rows if not r["binding"]]
    if free:
        slowed = min(free, key=lambda r: r["of_solo"])
        entry.check("a cap above what is needed does not slow (0.98)", slowed["of_solo"] >= 0.98,
                    f"{len(free)} cells, slowest {slowed['of_solo']:.3f} of solo", timing=True)


def run(bench, entry):
    options = bench.options
    lengths = chosen(options.us, bench.pick(LENGTHS_US, (66, 570), (570,)))
    modes = chosen(options.modes, bench.pick(MODES, ("wait", "queue"), ("wait", "queue")))
    caps = chosen(options.caps, bench.pick(CAPS, (10, 50, 90), (25, 60)))
    base = bench.seconds(1.2, 1.2, 1.5)
    tolerance = POINTS_SIMULATED if bench.simulated else POINTS
    entry.set(tolerance_points=tolerance)
    if not (options.us or options.modes or options.caps):
        compare(bench, entry)
    for us in lengths:
        if not bench.time_left(base * 4):
            entry.skip(f"{us} us", "out of time")
            continue
        reference(bench, entry, us, modes, base)
        for mode in modes:
            few = us >= 20000 and not options.caps and not options.seconds
            for cap in (10, 50, 90) if few else caps:
                seconds = duration(bench, us, cap, base)
                if few and mode not in ("wait", "queue"):
                    continue
                if not bench.time_left(seconds + 1):
                    entry.skip(f"cuota, {us} us, {mode}, cap {cap}", "out of time")
                    continue
                once(bench, entry, "cuota", us, mode, cap, seconds)
                finish(entry, tolerance)
            if bench.time_left(base + 1):
                once(bench, entry, "native", us, mode, None, base, judged=True)
        reference(bench, entry, us, modes if bench.quick or options.seconds else (), base / 2)
        finish(entry, tolerance)
    judge(entry, tolerance)


def compare(bench, entry):
    """All ways on the same cells, in turn: long enough for limiters that need seconds to settle."""
    if bench.simulated and not bench.way("peer"):
        return
    seconds = bench.seconds(3, 2.5, 3)
    cells = [(570, "wait", bench.pick(COMPARED_CAPS, (10, 50, 90), (50,)))]
    if not bench.quick and not bench.simulated:
        cells.append((66, "queue", (10, 50, 90)))
    for us, mode, caps in cells:
        if not entry.rows(us=us, solo=True):
            reference(bench, entry, us, (mode,), bench.seconds(1.5, 1.2, 1.5))
        for cap in caps:
            for way in ("cuota", "peer", "mps"):
                if bench.way(way) and bench.time_left(seconds + 2):
                    once(bench, entry, way, us, mode, cap, seconds, compared=True)


def tables(data):
    rows = [r for r in data["rows"] if "share" in r]
    caps = sorted(unique(r["cap"] for r in rows if r["cap"] and r["way"] == "cuota"))
    accuracy = []
    for us, mode in unique((r["us"], r["mode"]) for r in rows if r["way"] == "cuota"):
        cells = {r["cap"]: r for r in rows
                 if (r["way"], r["us"], r["mode"]) == ("cuota", us, mode) and not r.get("compared")}
        native = [r for r in rows if r["way"] == "native" and (r["us"], r["mode"]) == (us, mode)]
        accuracy.append((us, mode, *(show(cells.get(c)) for c in caps),
                         f"{100 * median([r['share'] for r in native]):.1f}" if native else None,
                         max((r["cv"] for r in cells.values() if r["us"] <= 1000), default=None)))
    found = [Table("Share of the device in percent, cap asked in the column's head (cuota)",
                   ["kernel us", "mode", *(f"{c} %" for c in caps), "without a limiter", "worst cv"],
                   accuracy, "(n) = the cap is above what the program needs alone: the figure is its "
                   "speed in percent of alone.")]
    compared = [r for r in rows if r.get("compared")]
    for us, mode in unique((r["us"], r["mode"]) for r in compared):
        lines = []
        for cap in sorted(unique(r["cap"] for r in compared)):
            line = [f"{cap} %"]
            for way in ("cuota", "peer", "mps"):
                cell = [r for r in compared
                        if (r["way"], r["us"], r["mode"], r["cap"]) == (way, us, mode, cap)]
                line += [f"{100 * cell[0]['share']:.1f}" if cell else None,
                         cell[0]["cv"] if cell else None, cell[0]["longest_ms"] if cell else None]
            lines.append(line)
        found.append(Table(f"Side by side, {us} us kernels, {mode}: percent of the device, variation of "
                           "100 ms windows, longest wait in ms",
                           ["asked", "cuota", "cv", "ms", "peer", "cv", "ms", "MPS", "cv", "ms"], lines))
    return found


def show(row):
    if not row:
        return None
    return f"{100 * row['share']:.1f}" if row["binding"] else f"({100 * row['of_solo']:.0f})"


def plots(data):
    from .. import plot

    series = {}
    for way in ("cuota", "peer", "mps"):
        points = [(r["cap"], 100 * r["share"]) for r in data["rows"]
                  if r.get("compared") and r["way"] == way and r["us"] == 570 and "share" in r]
        if points:
            series[way] = sorted(points)
    native = [100 * r["share"] for r in data["rows"] if r["way"] == "native" and r["us"] == 570
              and r["mode"] == "wait" and "share" in r]
    if series and native:
        series["no limiter"] = [(c, median(native)) for c in (0, 100)]
    if not series:
        return []
    return [("shares", plot.lines("Asked and got, 570 us kernels, one process", "asked, percent",
                                  "got, percent of the device", series, diagonal=True))]
