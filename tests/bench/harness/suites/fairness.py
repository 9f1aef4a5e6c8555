"""Who gets how much when several compete: weights, caps, both, and groups of several processes.

Share = rate x kernel time, of what all got together (weights) or of the time (caps); who has a weight beside
somebody's cap should get what that leaves of what all got together. Native rows are held against the same figures and
must miss them wherever they are not equal parts.
"""

from ..stats import jain
from ..tables import Table
from ..ways import Quota

ABOUT = "weights, caps and groups competing (IS-008, OH-009)"
BUDGET = (115, 26, 25)
POINTS = 1.0
SERVICE = 0.02
POINTS_SIMULATED = 5.0
US, MODE = 570, "wait"

# name: tenants as (group, weight, cap, processes); expected parts of the whole per group, or None = caps
CASES = {
    "weights 70 / 30": ((("a", 70, None, 1), ("b", 30, None, 1)), (0.7, 0.3)),
    "weights 50 / 50": ((("a", 50, None, 1), ("b", 50, None, 1)), (0.5, 0.5)),
    "weights 10 / 90": ((("a", 10, None, 1), ("b", 90, None, 1)), (0.1, 0.9)),
    "weights 40 / 30 / 20 / 10": ((("a", 40, None, 1), ("b", 30, None, 1), ("c", 20, None, 1),
                                   ("d", 10, None, 1)), (0.4, 0.3, 0.2, 0.1)),
    "caps 30 and 60": ((("a", None, 30, 1), ("b", None, 60, 1)), None),
    "cap 20, and a weight beside it": ((("a", 100, 20, 1), ("b", 100, None, 1)), (0.2, 0.8)),
    "four processes against one": ((("a", 100, None, 4), ("b", 100, None, 1)), (0.5, 0.5)),
}
QUICK = ("weights 70 / 30", "caps 30 and 60", "four processes against one")
SIMULATED = ("weights 70 / 30", "caps 30 and 60")


def tenants(bench, case, serial):
    jobs, groups = [], []
    for group, weight, cap, processes in CASES[case][0]:
        for _ in range(processes):
            quota = Quota(weight=weight, sm=cap, group=f"fair-{serial}-{group}")
            jobs.append((bench.work(US, MODE, label=group), quota))
            groups.append(group)
    return jobs, groups


def run(bench, entry):
    seconds = bench.seconds(3, 2, 2)
    tolerance = POINTS_SIMULATED if bench.simulated else POINTS
    entry.set(tolerance_points=tolerance)
    alone = bench.alone("native", bench.work(US, "queue"), 1)
    if "error" in alone:
        entry.skip("everything", alone["error"])
        return
    kernel_s = 1 / alone["rate"]
    serial = 0
    for case in bench.pick(tuple(CASES), QUICK, SIMULATED):
        caps_only = CASES[case][1] is None
        for way in ("native", "cuota", "mps", "peer"):
            if not bench.way(way) or (way == "peer" and not caps_only):
                continue
            if bench.quick and way == "mps" and not caps_only:
                continue
            if not bench.time_left(seconds + 2):
                entry.skip(f"{way}: {case}", "out of time")
                continue
            for attempt in (1, 2):
                serial += 1
                jobs, groups = tenants(bench, case, serial)
                answers = bench.together(way, jobs, max(seconds, 4) if way == "peer" else seconds)
                if any("error" in a for a in answers):
                    entry.skip(f"{way}: {case}", next(a["error"] for a in answers if "error" in a))
                    break
                row = measured(case, groups, answers, kernel_s, tolerance)
                # A pretended device shares its two cores with everything else: one more try.
                if way != "cuota" or not bench.simulated or row["error_points"] <= tolerance or attempt == 2:
                    entry.row(way=way, case=case, attempts=attempt, **row)
                    break
    judge(entry, tolerance)


def measured(case, groups, answers, kernel_s, tolerance):
    names = list(dict.fromkeys(groups))
    busy = {n: sum(a["rate"] for a, g in zip(answers, groups) if g == n) * kernel_s for n in names}
    total = sum(busy.values())
    caps = [cap for _, _, cap, _ in CASES[case][0]]
    if any(caps):
        left = total - sum(cap / 100 for cap in caps if cap)
        asked = [cap / 100 if cap else left for cap in caps]
        got = [busy[n] for n in names]
    else:
        asked = list(CASES[case][1])
        got = [busy[n] / total for n in names]
    error = max(abs(g - a) for g, a in zip(got, asked)) * 100
    return {"asked": asked, "got": [round(g, 4) for g in got], "total": round(total, 4),
            "error_points": round(error, 2), "jain": round(jain([g / a for g, a in zip(got, asked)]), 5),
            "longest_ms": max(a["longest_ms"] for a in answers),
            "service_share": max((a["service_share"] for a in answers if "service_share" in a), default=None),
            "uneven": max(abs(a - 1 / len(asked)) for a in asked) * 100 > tolerance}


def judge(entry, tolerance):
    natives = [r for r in entry.rows(way="native") if r["uneven"]]
    if natives:
        passed = [r for r in natives if r["error_points"] <= tolerance]
        entry.check("method: without a limiter uneven parts are missed", not passed,
                    f"native misses {len(natives) - len(passed)} of {len(natives)}")
    rows = entry.rows(way="cuota")
    if rows:
        worst = max(rows, key=lambda r: r["error_points"])
        good = [r for r in rows if r["error_points"] <= tolerance]
        entry.check(f"parts within {tolerance:g} point(s)", len(good) == len(rows),
                    f"{len(good)} of {len(rows)}; worst {worst['error_points']:.1f}: {worst['case']}",
                    timing="load")
        threads = [r["service_share"] for r in rows if r["service_share"] is not None]
        if threads:
            entry.check(f"the service thread takes at most {100 * SERVICE:g} % of a core",
                        max(threads) <= SERVICE, f"{100 * max(threads):.2f} %", timing=True)
        least = min(rows, key=lambda r: r["jain"])
        entry.check("Jain's index of got / asked at least 0.999", least["jain"] >= 0.999,
                    f"least {least['jain']:.4f}: {least['case']}", timing=True)


def tables(data):
    lines = []
    for r in data["rows"]:
        percent = lambda parts: " / ".join(f"{100 * p:.1f}" for p in parts)
        lines.append((r["case"], r["way"], percent(r["asked"]), percent(r["got"]), r["error_points"],
                      r["jain"], r["total"], r["longest_ms"],
                      100 * r["service_share"] if r.get("service_share") is not None else None))
    return [Table("Several groups", ["case", "way", "asked %", "got %", "worst, points", "Jain",
                                     "total of the device", "longest wait ms", "service thread, % of a core"], lines)]
