"""What every suite needs: the machine, the ways, the time that is left, and running tenants together."""

import json
import os
import signal
import subprocess
import tempfile
import time

from . import ways as ways_module
from .report import progress
from .tenant import Tenant, service_ns
from .ways import Quota

FULL_GRID = 1056  # blocks of 256 threads: every multiprocessor of an H200 eight times


class Bench:
    def __init__(self, root, build, found, options):
        self.root = root
        self.build = build
        self.machine = found
        self.simulated = bool(found.get("simulated"))
        self.options = options
        self.quick = options.quick
        # Ledgers are mapped files: on tmpfs, as in production.
        place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.scratch = tempfile.mkdtemp(prefix="cuota-bench-", dir=place)
        self.log = open(os.path.join(self.scratch, "tenants.log"), "w+", encoding="utf-8")
        self.ways, self.absent = {}, {}
        for way in ways_module.all_ways(build, self.scratch, self.simulated, options.peer):
            why = way.missing()
            if not why and (not options.ways or way.name in options.ways):
                self.ways[way.name] = way
            else:
                self.absent[way.name] = why or "not asked for"
        self.started = set()
        self.deadline = time.monotonic() + options.budget
        self.suite_deadline = self.deadline
        self.scales = {}

    # ---- time ------------------------------------------------------------------------------------

    def begin_suite(self, seconds):
        self.suite_deadline = min(self.deadline, time.monotonic() + seconds)

    def time_left(self, need=0):
        """1 when a step of `need` seconds still fits the suite's part of the budget."""
        return time.monotonic() + need < self.suite_deadline

    def seconds(self, full, quick, simulated=None):
        """How long one measurement lasts; --seconds overrides."""
        if self.options.seconds:
            return self.options.seconds
        if self.simulated:
            return simulated if simulated is not None else quick
        return quick if self.quick else full

    def pick(self, full, quick, simulated=None):
        if self.simulated:
            return simulated if simulated is not None else quick
        return quick if self.quick else full

    def wants(self, program):
        """--programs: by the beginnings of their names."""
        beginnings = self.options.programs.split(";") if self.options.programs else [""]
        return any(program.startswith(b) for b in beginnings)

    # ---- ways and tenants ------------------------------------------------------------------------

    def way(self, name):
        """The way, started; None when it is not available."""
        way = self.ways.get(name)
        if way and name not in self.started:
            try:
                way.start()
            except (OSError, RuntimeError, ValueError, subprocess.SubprocessError) as e:
                way.stop()
                progress(f"{name} cannot be used: {e}")
                self.absent[name] = str(e)
                del self.ways[name]
                return None
            self.started.add(name)
        return way

    def tool(self, name):
        """A built program; None when it was not built."""
        for place in ("bench", "tests"):
            path = os.path.join(self.build, place, name)
            if os.access(path, os.X_OK):
                return path
        return None

    def start(self, way, argv, quota=None, extra_env=None):
        argv, env = self.ways[way].command(argv, quota or Quota())
        env.update(extra_env or {})
        return Tenant(argv, env, self.log, cwd=self.root)

    def start_at(self, tenants):
        """When tenants started now can all be ready: contexts take 0.1 s each, one after the other."""
        if not tenants:
            allowance = 0.05
        else:
            allowance = 0.3 + 0.1 * tenants if self.simulated else 0.7 + 0.25 * tenants
        return time.monotonic_ns() + int(allowance * 1e9)

    def together(self, way, jobs, seconds):
        """Runs (argv, quota) side by side from one instant on; their answers, in order."""
        at = self.start_at(len(jobs)) if len(jobs) > 1 else 0
        tenants = [
            self.start(way, argv + ["--seconds", f"{seconds:g}", "--start", str(at)], quota)
            for argv, quota in jobs
        ]
        end = time.monotonic() + seconds * 2 + 20
        shares = self.service_shares(tenants, at, seconds) if way == "cuota" and at else []
        results = []
        for tenant in tenants:
            try:
                results.append(tenant.answer(end - time.monotonic()))
            except TimeoutError as e:
                results.append({"error": str(e)})
        for tenant in tenants:
            tenant.end(patience=0.5 if any("error" in r for r in results) else 5)
        for result, share in zip(results, shares):
            if share is not None:
                result["service_share"] = round(share, 5)
        for result in results:
            if "error" in result:
                progress(f"{way}: {result['error']}")
        return results

    @staticmethod
    def service_shares(tenants, at, seconds):
        """Part of a core that each tenant's service thread takes in the middle of the run."""
        pids = [t.process.pid for t in tenants]
        time.sleep(max(0, (at - time.monotonic_ns()) / 1e9 + 0.2 * seconds))
        before, began = [service_ns(p) for p in pids], time.monotonic_ns()
        time.sleep(0.6 * seconds)
        after, took = [service_ns(p) for p in pids], time.monotonic_ns() - began
        return [(a - b) / took if a is not None and b is not None else None
                for a, b in zip(after, before)]

    def alone(self, way, argv, seconds, quota=None):
        return self.together(way, [(argv, quota)], seconds)[0]

    def busy_seconds(self, group):
        """What cuota's own meter says of a group; None when it cannot be asked."""
        way = self.ways["cuota"]
        if not way.has_cli:
            return None
        try:
            out = subprocess.run([way.cli, "status", "--json"], env=way.env, capture_output=True,
                                 text=True, timeout=20)
            for gpu in json.loads(out.stdout)["gpus"]:
                for found in gpu["groups"]:
                    if found["name"] == group:
                        return float(found["sm"]["busy_seconds"])
        except (OSError, ValueError, KeyError, TypeError, subprocess.TimeoutExpired):
            pass
        return None

    def alone_metered(self, argv, seconds, quota, settle):
        """Under cuota, with the part of the device that its own meter tells in the middle of the run."""
        at = self.start_at(1)
        tenant = self.start("cuota", argv + ["--seconds", f"{seconds:g}", "--start", str(at)], quota)
        read = []
        for part in (0.15, 0.8):
            time.sleep(max(0, (at - time.monotonic_ns()) / 1e9 + settle + part * seconds))
            read.append((self.busy_seconds(quota.group), time.monotonic()))
        (before, began), (after, ended) = read
        try:
            got = tenant.answer(seconds + 20)
        except TimeoutError as e:
            got = {"error": str(e)}
        tenant.end(patience=0.5 if "error" in got else 5)
        if "error" in got:
            progress(f"cuota: {got['error']}")
        elif before is not None and after is not None:
            got["metered"] = round((after - before) / (ended - began), 5)
        return got

    # ---- the kernel of fixed work ----------------------------------------------------------------

    def work(self, us, mode, **more):
        """The command line for kernels that last `us` on this device, launched in this mode."""
        nominal = self.nominal(us, more.get("grid", FULL_GRID))
        argv = [self.tool("work"), "--us", f"{nominal:.4g}", "--mode", mode]
        for key, value in more.items():
            argv += ["--" + key, str(value)]
        return argv

    def nominal(self, us, grid=FULL_GRID):
        """work's unit is iterations worth about a nanosecond: what to ask for to get `us`."""
        if self.simulated:
            return us
        if grid not in self.scales:
            self.scales[grid] = self.calibrate(grid) or (0.0, 1.0)
        fixed, per_unit = self.scales[grid]
        return max(0.1, (us - fixed) / per_unit)

    def calibrate(self, grid):
        """Device time of two lengths in a deep queue: a line through both."""
        short, long = 40, 400
        times = []
        for us in (short, long):
            argv = [self.tool("work"), "--us", str(us), "--mode", "queue", "--grid", str(grid)]
            rates = [self.alone("native", argv, 0.4).get("rate", 0) for _ in range(2)]
            if not min(rates):
                progress("calibration failed: kernel lengths are nominal")
                return None
            times.append(1e6 / max(rates))
        per_unit = (times[1] - times[0]) / (long - short)
        fixed = times[0] - short * per_unit
        progress(f"calibration, grid {grid}: asking for N us takes {fixed:.2f} + {per_unit:.4f} N us")
        return (fixed, per_unit) if per_unit > 0 else None

    # ---- the end ---------------------------------------------------------------------------------

    def close(self):
        for name in list(self.started):
            self.ways[name].stop()
        self.log.flush()
        keep = self.options.keep_log
        if keep:
            with open(self.log.name, encoding="utf-8", errors="replace") as f, open(
                keep, "w", encoding="utf-8"
            ) as out:
                out.write(f.read())
        self.log.close()
        remove_tree(self.scratch)


def remove_tree(path):
    import shutil

    shutil.rmtree(path, ignore_errors=True)


def kill_now(tenant):
    """SIGKILL to the tenant itself; the instant just before, CLOCK_MONOTONIC."""
    at = time.monotonic_ns()
    tenant.signal(signal.SIGKILL)
    return at
