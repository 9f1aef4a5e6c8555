"""A service with a request every 5 ms beside a job that would take the whole device."""

from .. import workloads
from ..tables import Table
from ..ways import Quota

ABOUT = "latency of a small service beside a long job, with priorities (SCHED-004, IS-009)"
BUDGET = (120, 22, 25)
SERVICE = {"us": 20, "kernels": 25}
JOBS = {"0.57 ms kernels, queue": (570, "queue")}
PROGRAM_JOBS = ("training xl", "training large")
WAYS = (
    ("native", "the driver's own slicing", Quota(), Quota()),
    ("cuota", "equal weights", Quota(weight=100), Quota(weight=100)),
    ("cuota", "high beside normal", Quota(priority="high"), Quota(weight=100)),
    ("cuota", "high beside low", Quota(priority="high"), Quota(priority="low")),
    ("mps", "priorities", Quota(priority="high"), Quota(priority="low")),
)


def service(bench, seconds, start):
    return [bench.tool("bench_request"), "--us", f"{bench.nominal(SERVICE['us']):.4g}", "--kernels",
            str(SERVICE["kernels"]), "--period-us", "5000", "--seconds", f"{seconds:g}", "--start",
            str(start)]


def beside_kernels(bench, entry, seconds):
    alone = bench.start("native", service(bench, seconds, 0)).answer(seconds + 30)
    if "error" in alone:
        entry.skip("the service alone", alone["error"])
        return
    entry.row(job="none", way="native", case="alone", **latencies(alone))
    for job, (us, mode) in JOBS.items():
        solo = bench.alone("native", bench.work(us, mode), seconds)
        for way, case, high, low in WAYS:
            if not bench.way(way) or not bench.time_left(seconds + 2) or "error" in solo:
                continue
            at = bench.start_at(2)
            worker = bench.start(way, bench.work(us, mode, seconds=f"{seconds:g}", start=at), low)
            requests = bench.start(way, service(bench, seconds, at), high)
            answers = []
            for part in (requests, worker):
                try:
                    answers.append(part.answer(seconds * 2 + 20))
                except TimeoutError as e:
                    answers.append({"error": str(e)})
                part.end(patience=1)
            if any("error" in a for a in answers):
                entry.skip(f"{way}, {case}", next(a["error"] for a in answers if "error" in a))
                continue
            entry.row(job=job, way=way, case=case, job_of_solo=round(answers[1]["rate"] / solo["rate"], 4),
                      **latencies(answers[0]))


def latencies(got):
    return {"p50_ms": round(got["latency_ns"]["p50"] / 1e6, 3),
            "p99_ms": round(got["latency_ns"]["p99"] / 1e6, 3),
            "longest_ms": round(got["latency_ns"]["max"] / 1e6, 3), "dropped": got["dropped"]}


def beside_programs(bench, entry, seconds):
    """Inference beside training, both PyTorch: what a person would run."""
    for job in PROGRAM_JOBS[: bench.pick(2, 0, 0)]:
        if not bench.wants(job):
            continue
        if not bench.time_left(25 + seconds * (2 + len(WAYS))):
            entry.skip(job, "out of time")
            continue
        wanted = []
        for _, (way, case, high, low) in enumerate(WAYS):
            if bench.way(way):
                wanted += [(way, "inference, 5 ms apart", high), (way, job, low)]
        programs = workloads.start_programs(bench, wanted)
        try:
            run_programs(bench, entry, job, programs, seconds)
        finally:
            for program in programs:
                program.end()


def run_programs(bench, entry, job, programs, seconds):
    def one(name, way, quota):
        return next((p for p in programs if (p.name, p.way, p.quota) == (name, way, quota)), None)

    alone = {name: one(name, "native", Quota()) for name in ("inference, 5 ms apart", job)}
    if not all(alone.values()):
        entry.skip(job, "the programs did not start")
        return
    solo = {name: p.run(seconds) for name, p in alone.items()}
    if any("error" in s for s in solo.values()):
        entry.skip(job, "a program failed alone")
        return
    entry.row(job=f"none ({job})", way="native", case="alone", program=True,
              **program_latencies(solo["inference, 5 ms apart"]))
    for way, case, high, low in WAYS:
        pair = one("inference, 5 ms apart", way, high), one(job, way, low)
        if not all(pair) or not bench.time_left(seconds + 2):
            continue
        at = bench.start_at(0)
        for part in pair:
            part.ask_run(seconds, at)
        answers = [part.answer(seconds * 2 + 30) for part in pair]
        if any("error" in a for a in answers):
            entry.skip(f"{job}, {way}, {case}", next(a["error"] for a in answers if "error" in a))
            continue
        entry.row(job=job, way=way, case=case, program=True,
                  job_of_solo=round(answers[1]["rate"] / solo[job]["rate"], 4),
                  **program_latencies(answers[0]))


def program_latencies(got):
    return {k: got[k] for k in ("p50_ms", "p99_ms", "longest_ms", "dropped")}


def run(bench, entry):
    seconds = bench.seconds(2.5, 2, 1.5)
    if not bench.options.programs:
        beside_kernels(bench, entry, seconds)
    if not bench.simulated and workloads.has_module("torch"):
        beside_programs(bench, entry, seconds)
    judge(entry)


def judge(entry):
    for job in dict.fromkeys(r["job"] for r in entry.data["rows"] if r["case"] != "alone"):
        rows = entry.rows(job=job)
        program = rows[0].get("program", False)
        alone = [r for r in entry.data["rows"] if r["case"] == "alone" and r.get("program", False) == program
                 and (not program or job in r["job"])]
        native = [r for r in rows if r["way"] == "native"]
        if not alone or not native:
            continue
        for case in ("high beside normal", "high beside low"):
            for row in entry.rows(job=job, case=case):
                # A kernel that runs is not interrupted by cuota; the promise is for programs with short ones.
                limit, said = alone[0]["p99_ms"] * 1.25, "1.25 x alone"
                if not program:
                    limit = alone[0]["p99_ms"] + JOBS[job][0] / 1e3 + 0.5
                    said = "alone + one kernel of the job + 0.5 ms"
                entry.check(f"{case} ({job}): p99 at most {said}", row["p99_ms"] <= limit,
                            f"{row['p99_ms'] / alone[0]['p99_ms']:.2f} x ({row['p99_ms']:.2f} ms; driver "
                            f"{native[0]['p99_ms']:.2f} ms)", timing=True)
                part = row["job_of_solo"] / native[0]["job_of_solo"] if native[0]["job_of_solo"] else 0
                entry.check(f"{case} ({job}): the job keeps 0.9 of the driver's", part >= 0.9, f"{part:.2f}",
                            timing=True)


def tables(data):
    lines = [(r["job"], r["way"], r["case"], r["p50_ms"], r["p99_ms"], r["longest_ms"], r["dropped"],
              r.get("job_of_solo")) for r in data["rows"]]
    return [Table("A request every 5 ms beside a job", ["job", "way", "case", "p50 ms", "p99 ms",
                                                        "longest ms", "dropped", "job, of its rate alone"],
                  lines)]
