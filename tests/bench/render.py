#!/usr/bin/env python3
"""Renders result files: tables into docs/benchmarks.md (between its two markers), plots as SVG.

    tests/bench/render.py [--into docs/benchmarks.md] [--plots docs/results/plots] [FILE.json...]

Without files: docs/results/*.json. Of each suite the newest full run on a real GPU is shown, a quick one
when there is no other. Every table names the file that it comes from. --print only prints.
"""

import argparse
import glob
import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "bench"))
sys.dont_write_bytecode = True

from harness import suites, tables  # noqa: E402

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


def compares(entry):
    """Whether another library or MPS was measured beside."""
    return any({"peer", "mps"} & {row.get("way"), row.get("limiter")} for row in entry["rows"])


def load(paths):
    """suite -> [(path, entry)], the best there is: real before simulated, full before quick, then newest. When that
    compares with no other library, the best that does as well."""
    best, beside = {}, {}
    for path in paths:
        with open(path, encoding="utf-8") as f:
            data = json.load(f)
        for name, entry in data.get("suites", {}).items():
            if name not in suites.names() or not entry["rows"]:
                continue
            rank = (not entry["machine"].get("simulated"), not entry.get("quick"), entry["date"])
            for found, fits in ((best, True), (beside, compares(entry))):
                if fits and (name not in found or rank > found[name][0]):
                    found[name] = (rank, path, entry)
    return {n: [best[n][1:]] + ([beside[n][1:]] if n in beside and beside[n] != best[n] else [])
            for n in suites.names() if n in best}


def provenance(path, entry, into):
    m = entry["machine"]
    place = os.path.relpath(path, os.path.dirname(os.path.abspath(into)))
    return (f"{m['gpu']}, driver {m.get('driver')}, {m.get('cores')} cores, {entry['date'][:10]}, commit "
            f"`{entry.get('commit')}`; [{os.path.basename(path)}]({place})"
            + (", short run" if entry.get("quick") else ""))


def section(name, path, entry, options):
    suite = suites.load(name)
    lines = [f"## {name}: {entry['about']}", "", provenance(path, entry, options.into), ""]
    if "broken" in entry:
        lines += [f"This suite did not finish: {entry['broken']}", ""]
    for plot, svg in getattr(suite, "plots", lambda _: [])(entry):
        file = os.path.join(options.plots, plot + ".svg")
        if not options.print:
            os.makedirs(options.plots, exist_ok=True)
            with open(file, "w", encoding="utf-8") as f:
                f.write(svg)
        lines += [f"![{plot}]({os.path.relpath(file, os.path.dirname(os.path.abspath(options.into)))})", ""]
    for table in suite.tables(entry):
        if table.rows:
            lines += [tables.markdown(table)]
    promises = tables.checks(entry)
    if promises:
        lines += [promises]
    if entry["skipped"]:
        lines += [f"Not measured: {len(entry['skipped'])} (the file says which and why).", ""]
    return "\n".join(lines)


def insert(into, text):
    try:
        with open(into, encoding="utf-8") as f:
            page = f.read()
    except FileNotFoundError:
        page = f"# Benchmarks\n\n{BEGIN}\n{END}\n"
    if BEGIN not in page or END not in page:
        sys.exit(f"{into}: no markers {BEGIN} … {END}")
    head, rest = page.split(BEGIN, 1)
    tail = rest.split(END, 1)[1]
    with open(into, "w", encoding="utf-8") as f:
        f.write(f"{head}{BEGIN}\n\n{text}\n{END}{tail}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("files", nargs="*")
    p.add_argument("--into", default=os.path.join(ROOT, "docs", "benchmarks.md"))
    p.add_argument("--plots", default=os.path.join(ROOT, "docs", "results", "plots"))
    p.add_argument("--print", action="store_true")
    options = p.parse_args()
    paths = options.files or sorted(glob.glob(os.path.join(ROOT, "docs", "results", "*.json")))
    found = load(paths)
    if not found:
        sys.exit("no results: run tests/bench/run first")
    text = "\n".join(section(n, path, entry, options) for n, entries in found.items() for path, entry in reversed(entries))
    if options.print:
        print(text)
    else:
        insert(options.into, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
