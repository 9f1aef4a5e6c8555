"""The ledger's and the memory layer's own benchmarks (bench_ledger, bench_memory), run and kept. Each prints a
line a figure: NAME  VALUE UNIT (promised N)."""

import re
import subprocess

from ..tables import Table

ABOUT = "ledger: charge, contention, joining (OH-006, OH-007)"
BUDGET = (20, 20, 30)
LINE = re.compile(r"^\s*(.+?)\s{2,}([\d.]+) (\S+)(?: \(promised ([\d.]+)\))?\s*$")
TOOLS = ("bench_ledger", "bench_memory")


def run(bench, entry):
    for name in TOOLS:
        tool = bench.tool(name)
        if not tool:
            entry.skip(name, "not built")
            continue
        argv = [tool, "200000"] if name == "bench_ledger" and (bench.quick or bench.simulated) else [tool]
        try:
            out = subprocess.run(argv, env=bench.ways["native"].env, capture_output=True, text=True,
                                 timeout=60)
        except subprocess.TimeoutExpired:
            entry.skip(name, "more than 60 s")
            continue
        for text in out.stdout.splitlines():
            found = LINE.match(text)
            if found:
                entry.row(tool=name, what=found[1], value=float(found[2]), unit=found[3],
                          promised=float(found[4]) if found[4] else None)
        entry.check(f"{name}: no figure is far off its promise", out.returncode == 0,
                    f"exit status {out.returncode}" + (f": {out.stderr.strip()[-200:]}" if out.stderr else ""), timing=True)


def tables(data):
    return [Table("The ledger by itself", ["benchmark", "figure", "value", "unit", "promised"],
                  [(r["tool"], r["what"], r["value"], r["unit"], r["promised"]) for r in data["rows"]])]
