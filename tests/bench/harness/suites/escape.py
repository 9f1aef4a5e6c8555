"""Ways to take device memory under a cap: which of them pass it. build/tests/escape (tests/escape) tries one way
in a process of its own and says what it was granted; the device's use is read from outside as well."""

import subprocess

from ..nvml import Nvml
from ..tables import Table, unique
from ..ways import Quota

ABOUT = "ways to take memory past the cap (IS-001, IS-002)"
BUDGET = (80, 30, 40)
CAP_MIB, WANT_MIB, PIECE_MIB = 2048, 8192, 256
ROOM_MIB = 16  # the driver's own granularity
NATIVE_WAYS = 4  # enough to see that nothing holds without a limiter
SUCCESS, OUT_OF_MEMORY, INVALID_CONTEXT, NOT_SUPPORTED, NOT_HERE = 0, 2, 201, 801, 10000


def run(bench, entry):
    tool = bench.tool("escape")
    if not tool:
        entry.skip("everything", "build/tests/escape is not built (make tests)")
        return
    listed = subprocess.run([tool, "list"], capture_output=True, text=True, timeout=20)
    ways = [w for w in listed.stdout.splitlines() if w]
    if bench.simulated:
        nvml = Nvml(f"{bench.build}/sim/libnvidia-ml.so.1",
                    bench.ways["native"].env["CUOTA_SIM_STATE"])
    else:
        nvml = Nvml()
    for i, way in enumerate(ways):
        for limiter in ("native", "cuota", "peer", "mps"):
            if not bench.way(limiter) or (limiter == "native" and i >= NATIVE_WAYS):
                continue
            if (bench.quick or bench.simulated) and limiter in ("peer", "mps"):
                continue
            if not bench.time_left(4):
                entry.skip(f"{limiter}: {way}", "out of time")
                continue
            one(bench, entry, tool, nvml, limiter, way)
    judge(entry)


def one(bench, entry, tool, nvml, limiter, way):
    before = nvml.used_mib()
    tenant = bench.start(limiter, [tool, "one", way, str(WANT_MIB), str(PIECE_MIB)],
                         Quota(mem=f"{CAP_MIB}M"))
    try:
        line = tenant.line(20)
        during = nvml.used_mib()
    except TimeoutError as e:
        entry.skip(f"{limiter}: {way}", str(e))
        return
    finally:
        tenant.end(patience=3 if limiter != "peer" else 1)
    words = (line or "").split()
    if len(words) != 3 or not all(w.isdigit() for w in words):
        entry.row(limiter=limiter, way=way, verdict="died", detail=tenant.why()[:120])
        return
    granted, code = int(words[0]) / (1 << 20), int(words[1])
    real = during - before if before is not None and during is not None else None
    entry.row(limiter=limiter, way=way, granted_mib=round(granted, 1), code=code,
              device_mib=round(real, 1) if real is not None else None, verdict=verdict(granted, real, code))


def verdict(granted, real, code):
    # The first ABI's calls answer 201 in today's contexts, with and without a library.
    if code in (NOT_HERE, NOT_SUPPORTED) or (code == INVALID_CONTEXT and not granted):
        return "not here"
    if granted > CAP_MIB or (real is not None and real > CAP_MIB + ROOM_MIB):
        return "escaped"
    if code not in (SUCCESS, OUT_OF_MEMORY):
        return "wrong code"
    return "held"


def judge(entry):
    natives = [r for r in entry.rows(limiter="native") if r["verdict"] != "not here"]
    if natives:
        escaped = [r for r in natives if r["verdict"] == "escaped"]
        # cuMemAlloc of CUDA 2 cannot hand out more than 4 GiB of addresses: not all must pass.
        entry.check("method: without a limiter the cap is passed", 2 * len(escaped) >= len(natives),
                    f"{len(escaped)} of {len(natives)} ways do")
    rows = [r for r in entry.rows(limiter="cuota") if r["verdict"] != "not here"]
    if rows:
        bad = [r for r in rows if r["verdict"] != "held"]
        entry.check("no way passes the cap, every refusal is out of memory", not bad,
                    f"{len(rows) - len(bad)} of {len(rows)} held"
                    + "".join(f"; {r['way']}: {r['verdict']}" for r in bad))


def tables(data):
    limiters = [l for l in ("native", "cuota", "peer", "mps")
                if any(r["limiter"] == l for r in data["rows"])]
    lines = []
    for way in unique(r["way"] for r in data["rows"]):
        found = {r["limiter"]: r for r in data["rows"] if r["way"] == way}
        lines.append((way, *(word(found.get(l)) for l in limiters)))
    return [Table(f"Ways to take {WANT_MIB} MiB under a cap of {CAP_MIB} MiB", ["way", *limiters], lines,
                  "Contexts are inside the cap. In brackets: what was granted, MiB.")]


def word(row):
    if not row:
        return None
    if row["verdict"] == "died":
        return "died"
    shown = {"escaped": "**escaped**", "wrong code": f"error {row['code']}"}.get(row["verdict"], row["verdict"])
    return shown if row["verdict"] == "not here" else f"{shown} ({row['granted_mib']:.0f})"
