"""What taking and giving back memory costs more, both addresses called in turn in one process."""

from ..stats import median, spread
from ..tables import Table, unique
from ..ways import Quota

ABOUT = "allocation cost added by the library (OH-002, OH-003, OH-007)"
BUDGET = (20, 14, 15)
CASES = (
    ("native", "no library (noise of the method)", Quota()),
    ("cuota", "preloaded, no quota", Quota()),
    ("cuota", "under a memory cap", Quota(mem="64G")),
    ("peer", "under a memory cap", Quota(mem="64g")),
)


def run(bench, entry):
    seconds = bench.seconds(3, 1.5, 1.2)
    for _ in range(bench.pick(2, 1, 1)):
        for way, case, quota in CASES:
            if not bench.time_left(seconds + 1) or not bench.way(way):
                continue
            tenant = bench.start(way, [bench.tool("bench_alloc"), "--seconds", f"{seconds:g}"], quota)
            try:
                answers = tenant.answers(seconds * 3 + 30)
            except TimeoutError as e:
                answers = [{"error": str(e)}]
            tenant.end()
            for got in answers:
                if "error" in got:
                    entry.skip(f"{way}, {case}, {got.get('what', 'all')}", f"error {got['error']}")
                    continue
                entry.row(way=way, case=case, what=got["what"], added_ns=got["added_ns"]["p50"],
                          ci_ns=got["added_ns"]["ci"], asked_ns=got["asked_ns"]["p50"],
                          raw_ns=got["raw_ns"]["p50"], samples=got["raw_ns"]["n"],
                          interposed=got["interposed"])


def tables(data):
    rows = []
    for what, way, case in sorted(unique((r["what"], r["way"], r["case"]) for r in data["rows"])):
        found = [r for r in data["rows"] if (r["what"], r["way"], r["case"]) == (what, way, case)]
        added = median([r["added_ns"] for r in found])
        raw = median([r["raw_ns"] for r in found])
        sure = max(max(r["ci_ns"] for r in found), spread([r["added_ns"] for r in found]))
        rows.append((what, way, case, f"{100 * added / raw:+.2f} %", f"{added:+.0f} ± {sure:.0f}", raw))
    return [Table("Allocation cost", ["call", "way", "case", "added", "added ns", "driver's own ns"], rows)]
