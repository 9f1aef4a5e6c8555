"""Ways to take device memory under a cap: which of them pass it. The program that tries them is
tests/gpu/escape*.c; it prints one JSON line a way: {"way":…,"asked_mib":…,"cap_mib":…,"got_mib":…,
"held":true|false,"code":…}."""

import glob
import os

from ..tables import Table, unique
from ..ways import Quota

ABOUT = "ways to take memory past the cap (IS-001, IS-002, IS-005)"
BUDGET = (60, 25, 20)
CAP = "2G"


def run(bench, entry):
    tools = [t for t in sorted(glob.glob(os.path.join(bench.build, "tests", "escape*")))
             if os.access(t, os.X_OK) and not t.endswith(".d")]
    if not tools:
        entry.skip("everything", "tests/gpu/escape* is not built")
        return
    for tool in tools:
        for way in ("native", "cuota", "mps", "peer"):
            if not bench.way(way) or not bench.time_left(5):
                continue
            tenant = bench.start(way, [tool], Quota(mem=CAP.lower() if way == "peer" else CAP))
            try:
                answers = tenant.answers(60)
            except TimeoutError as e:
                answers = [{"error": str(e)}]
            tenant.end()
            for got in answers:
                if "way" not in got:
                    entry.skip(f"{way}: {os.path.basename(tool)}", str(got.get("error", got)))
                    continue
                entry.row(limiter=way, tool=os.path.basename(tool), **got)
    judge(entry)


def judge(entry):
    def held(limiter):
        return [r for r in entry.rows(limiter=limiter) if r.get("held") is not None]

    natives = held("native")
    if natives:
        escaped = [r for r in natives if not r["held"]]
        entry.check("method: without a limiter the ways pass the cap", len(escaped) > 0,
                    f"{len(escaped)} of {len(natives)} do")
    rows = held("cuota")
    if rows:
        escaped = [r["way"] for r in rows if not r["held"]]
        entry.check("no way passes the cap", not escaped,
                    f"{len(rows) - len(escaped)} of {len(rows)} held"
                    + (f"; escaped: {', '.join(escaped)}" if escaped else ""))


def tables(data):
    limiters = [l for l in ("native", "cuota", "mps", "peer")
                if any(r["limiter"] == l for r in data["rows"])]
    lines = []
    for tool, way in unique((r["tool"], r["way"]) for r in data["rows"]):
        cells = []
        for limiter in limiters:
            found = [r for r in data["rows"] if (r["limiter"], r["tool"], r["way"]) == (limiter, tool, way)]
            cells.append(word(found[0]) if found else None)
        lines.append((way, *cells))
    return [Table(f"Ways to take memory, cap {CAP}", ["way", *limiters], lines)]


def word(row):
    if row.get("held") is None:
        return row.get("note", "not tried")
    return "held" if row["held"] else "**escaped**"
