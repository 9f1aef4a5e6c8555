"""Two programs on one GPU: what both get together, against the driver's own time-slicing.

Total = sum over both of rate / rate alone. Every pair of the list, a program with itself included; ways in
turn. cuota runs both with equal weights and no cap.
"""

import time

from .. import workloads
from ..stats import median, spread
from ..tables import Table, unique
from ..ways import Quota

ABOUT = "throughput of pairs against the driver's own slicing (IS-006, IS-009, OH-010)"
BUDGET = (270, 40, 20)
PROGRAMS = ("training small", "training medium", "training large", "inference, 5 ms apart")
QUICK_PAIRS = (("94 us, wait each",) * 2, ("0.57 ms, wait each",) * 2,
               ("94 us, wait each", "5.6 ms, queue"))
WAIT_LOOP = ("94 us, wait each",) * 2
CROWD_KINDS, CROWDS = ("94 us, wait each", "0.57 ms, wait each"), (4, 8)
FLOOR, WAIT_LOOP_FLOOR = 0.98, 2.0


def quota(way, letter, serial):
    return Quota(weight=100, group=f"pair-{serial}-{letter}") if way == "cuota" else Quota()


class Stage:
    """Starts kernels' processes for each run, and keeps programs alive between runs."""

    def __init__(self, bench, names):
        self.bench = bench
        self.serial = 0
        self.programs = {}
        wanted = []
        for name in names:
            if name in workloads.PROGRAMS:
                for way in ("native", "cuota"):
                    for letter in "ab":
                        wanted.append((way, name, quota(way, letter, name.replace(" ", "-")
                                                        .replace(",", ""))))
        # Two at a time of each kind would be slow one by one; all at once is too much for the host.
        for i in range(0, len(wanted), 8):
            for program in workloads.start_programs(bench, wanted[i : i + 8]):
                self.programs.setdefault((program.way, program.name), []).append(program)

    def can(self, way, names):
        return all(
            n in workloads.KERNELS or len(self.programs.get((way, n), [])) >= names.count(n)
            for n in names
        )

    def run(self, way, names, seconds):
        """Rates of these programs side by side; None when one failed."""
        self.serial += 1
        at = self.bench.start_at(sum(n in workloads.KERNELS for n in names))
        used, parts = {}, []
        for i, name in enumerate(names):
            if name in workloads.PROGRAMS:
                index = used.get(name, 0)
                used[name] = index + 1
                program = self.programs[(way, name)][index]
                program.ask_run(seconds, at)
                parts.append(program)
            else:
                us, mode, more = workloads.KERNELS[name]
                argv = self.bench.work(us, mode, **more)
                argv += ["--seconds", f"{seconds:g}", "--start", str(at)]
                parts.append(self.bench.start(way, argv, quota(way, i, self.serial)))
        answers = []
        for part in parts:
            try:
                answers.append(part.answer(seconds * 2 + 20))
            except TimeoutError as e:
                answers.append({"error": str(e)})
        for part, name in zip(parts, names):
            if name in workloads.KERNELS:
                part.end(patience=1)
        if any("error" in a for a in answers):
            return None, next(a["error"] for a in answers if "error" in a)
        return answers, None

    def close(self):
        for programs in self.programs.values():
            for program in programs:
                program.end()


def all_pairs(names):
    """Every pair; two of a kind of program first: when time runs out, mixed pairs are cut."""
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i:]]
    return sorted(pairs, key=lambda p: (p[0] in workloads.KERNELS) != (p[1] in workloads.KERNELS))


def run(bench, entry):
    kernels = list(workloads.KERNELS)
    programs = [p for p in PROGRAMS
                if not bench.simulated and not bench.quick and workloads.has_module("torch")]
    pairs = bench.pick(all_pairs(kernels + programs), QUICK_PAIRS, QUICK_PAIRS[:2])
    pairs = [p for p in pairs if all(bench.wants(n) for n in p)]
    names = unique(n for pair in pairs for n in pair)
    seconds = bench.seconds(1.1, 1.5, 1.5)
    began = time.monotonic()
    stage = Stage(bench, names)
    entry.set(programs_started_s=round(time.monotonic() - began, 1))
    try:
        measure(bench, entry, stage, names, pairs, seconds)
    finally:
        stage.close()
    judge(entry)


def crowds(bench, entry, stage, alone, seconds):
    """More than two of a kind."""
    for name in CROWD_KINDS:
        for count in CROWDS:
            for way in ("native", "cuota", "mps"):
                if name not in alone or not bench.way(way) or not bench.time_left(seconds + 4):
                    continue
                answers, why = stage.run(way, (name,) * count, seconds)
                if not answers:
                    entry.skip(f"{way}: {count} x {name}", why)
                    continue
                parts = [a["rate"] / median(alone[name]) for a in answers]
                entry.row(kind="crowd", way=way, name=name, count=count, total=round(sum(parts), 4),
                          least=round(min(parts), 4), most=round(max(parts), 4),
                          longest_ms=max(a["longest_ms"] for a in answers))


def measure(bench, entry, stage, names, pairs, seconds):
    alone = {}
    for name in names:
        for _ in range(2):
            if stage.can("native", (name,)) and bench.time_left(seconds + 1):
                answers, why = stage.run("native", (name,), seconds)
                if answers:
                    alone.setdefault(name, []).append(answers[0]["rate"])
                    entry.row(kind="alone", name=name, **kept(answers[0]))
                else:
                    entry.skip(f"{name} alone", why)
    for pair in pairs:
        if not all(n in alone for n in pair):
            entry.skip(" + ".join(pair), "one of them did not run alone")
            continue
        for way in ("native", "cuota", "mps"):
            # Programs are kept alive for two ways only; MPS gets two of a kind of kernel.
            if not bench.way(way) or not stage.can(way, pair) or (way == "mps" and pair[0] != pair[1]):
                continue
            if not bench.time_left(seconds + 2):
                entry.skip(f"{way}: " + " + ".join(pair), "out of time")
                continue
            answers, why = stage.run(way, pair, seconds)
            if not answers:
                entry.skip(f"{way}: " + " + ".join(pair), why)
                continue
            parts = [a["rate"] / median(alone[n]) for a, n in zip(answers, pair)]
            entry.row(kind="pair", way=way, pair=list(pair), total=round(sum(parts), 4),
                      parts=[round(p, 4) for p in parts], answers=[kept(a) for a in answers])
    if not bench.quick and not bench.simulated:
        crowds(bench, entry, stage, alone, seconds)


def kept(answer):
    return {k: answer[k] for k in ("rate", "longest_ms", "p50_ms", "p99_ms", "late_ms", "cv")
            if k in answer}


def ratios(data):
    """pair -> total of each way, and cuota / native."""
    found = {}
    for row in data["rows"]:
        if row["kind"] == "pair":
            found.setdefault(tuple(row["pair"]), {})[row["way"]] = row
    return found


def judge(entry):
    against = {p: w["cuota"]["total"] / w["native"]["total"]
               for p, w in ratios(entry.data).items() if "cuota" in w and w.get("native", {}).get("total")}
    if not against:
        entry.check(f"never under {FLOOR} of the driver's total", None, "no pair ran under both")
        return
    worst = min(against, key=against.get)
    good = [r for r in against.values() if r >= FLOOR]
    entry.check(f"never under {FLOOR} of the driver's total", len(good) == len(against),
                f"{len(good)} of {len(against)} pairs; worst {against[worst]:.3f}: {' + '.join(worst)}",
                timing=True)
    if WAIT_LOOP in against:
        entry.check(f"two 94 us wait loops: at least {WAIT_LOOP_FLOOR}",
                    against[WAIT_LOOP] >= WAIT_LOOP_FLOOR, f"{against[WAIT_LOOP]:.2f}", timing=True)


def tables(data):
    alone = []
    for name in unique(r["name"] for r in data["rows"] if r["kind"] == "alone"):
        rates = [r["rate"] for r in data["rows"] if r["kind"] == "alone" and r["name"] == name]
        alone.append((name, median(rates), spread(rates)))
    lines = []
    for pair, ways in ratios(data).items():
        native, cuota, mps = (ways.get(w) for w in ("native", "cuota", "mps"))
        ratio = cuota["total"] / native["total"] if cuota and native and native["total"] else None
        lines.append((" + ".join(pair), ratio, *(parts(w) for w in (native, cuota, mps))))
    lines.sort(key=lambda l: (l[1] is None, l[1]))
    crowd = [(f"{r['count']} x {r['name']}", r["way"], r["total"], f"{r['least']:.3f} – {r['most']:.3f}",
              r["longest_ms"]) for r in data["rows"] if r["kind"] == "crowd"]
    return [
        Table("Alone, without a library", ["program", "per second", "±"], alone),
        Table("Two at once; alone = 1", ["pair", "cuota / driver", "driver's own slicing", "cuota", "MPS"],
              lines, "A cell is the total, and in brackets each program's rate against its rate alone."),
        Table("More at once; alone = 1", ["programs", "way", "total", "least – most", "longest wait ms"],
              crowd),
    ]


def parts(row):
    return f"{row['total']:.2f} ({row['parts'][0]:.2f} + {row['parts'][1]:.2f})" if row else None


def plots(data):
    from .. import plot

    bars = []
    for pair, ways in ratios(data).items():
        if "native" in ways and "cuota" in ways:
            bars.append((" + ".join(pair), {w: ways[w]["total"] for w in ways}))
    if not bars:
        return []
    bars.sort(key=lambda b: b[1]["cuota"] / b[1]["native"])
    return [("pairs", plot.bars("Two programs at once: total, each alone = 1", bars,
                                ("native", "cuota", "mps")))]
