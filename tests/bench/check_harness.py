#!/usr/bin/env python3
"""Checks of the benchmark's own arithmetic: that it sees a missing limiter, and reads its tools' files right."""

import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "gpu", "workloads")]
sys.dont_write_bytecode = True

import worker  # noqa: E402
from harness import stats, suites, tables, ways  # noqa: E402
from harness.report import Report  # noqa: E402


def entry():
    path = os.path.join(tempfile.mkdtemp(), "result.json")
    return Report(path, {"machine": {}, "commit": None, "quick": False}).suite("shares", "")


def run(e, way, rate, cap=None, **more):
    e.row(way=way, us=570, mode=more.pop("mode", "queue"), cap=cap, rate=rate, seconds=1, launches=1, cv=0,
          longest_ms=1, **more)


class Shares(unittest.TestCase):
    def judged(self, rate_under_cap):
        shares, e = suites.load("shares"), entry()
        run(e, "native", 1000, solo=True)
        run(e, "native", 990, judged=True)
        run(e, "cuota", rate_under_cap, cap=30)
        shares.finish(e, 1.0)
        shares.judge(e, 1.0)
        return e, {c["name"].split(":")[0].split(" within")[0]: c["ok"] for c in e.data["checks"]}

    def test_a_share_is_the_rate_against_the_rate_alone(self):
        e, checks = self.judged(305)
        self.assertAlmostEqual(e.rows(way="cuota")[0]["error_points"], 0.5)
        self.assertTrue(checks["share"])

    def test_a_limiter_that_does_nothing_is_seen(self):
        _, checks = self.judged(995)
        self.assertFalse(checks["share"])

    def test_native_misses_every_binding_cap(self):
        _, checks = self.judged(300)
        self.assertTrue(checks["method"])

    def test_a_reference_that_is_itself_limited_is_a_fault_of_the_method(self):
        shares, e = suites.load("shares"), entry()
        run(e, "native", 1000, solo=True)
        run(e, "native", 302, judged=True)  # as if somebody capped the native runs
        run(e, "cuota", 300, cap=30)
        shares.finish(e, 1.0)
        shares.judge(e, 1.0)
        self.assertIs(e.data["checks"][0]["ok"], False)

    def test_a_cap_above_the_need_is_judged_by_speed(self):
        shares, e = suites.load("shares"), entry()
        run(e, "native", 1000, solo=True)
        run(e, "native", 400, solo=True, mode="wait")
        run(e, "cuota", 380, cap=90, mode="wait")
        shares.finish(e, 1.0)
        row = e.rows(way="cuota")[0]
        self.assertFalse(row["binding"])
        self.assertAlmostEqual(row["of_solo"], 0.95)


class Arithmetic(unittest.TestCase):
    def test_jain_is_one_for_equals_and_a_half_for_one_of_two(self):
        self.assertAlmostEqual(stats.jain([2, 2, 2]), 1)
        self.assertAlmostEqual(stats.jain([1, 0]), 0.5)

    def test_overlapping_kernels_count_once(self):
        got = worker.summary_of_intervals([(0, 10), (5, 12), (20, 30)], 2, 3)
        self.assertAlmostEqual(got["device_ms_per_step"], 22 / 2 / 1e3, places=5)
        self.assertAlmostEqual(got["busy_while_profiled"], 22 / 30, places=4)

    def test_a_changed_cap_settles_where_the_rest_stays_in_band(self):
        change = suites.load("change")
        windows = [0.8] * 10 + [0.8, 0.5] + [0.2] * 12
        self.assertEqual(change.settled_after_ms(windows, 500, 0.2, 3.0), 100)
        self.assertIsNone(change.settled_after_ms([0.8] * 30, 500, 0.2, 3.0))


class Tools(unittest.TestCase):
    def test_callgrind_costs_of_other_objects_and_of_callees_are_left_out(self):
        text = ("ob=(1) /usr/lib/libc.so.6\nfn=(1) a\n10 100\n"
                "ob=(2) /x/libcuota.so\nfn=(2) b\n11 5\n+1 6\n"
                "cob=(1)\ncfn=(1)\ncalls=1 10\n12 100\n13 7\nob=(1)\nfn=(3) c\n14 50\nob=(2)\nfn=(4) d\n* 2\n")
        with tempfile.NamedTemporaryFile("w", suffix=".out", delete=False) as f:
            f.write(text)
        self.assertEqual(suites.load("counts").library_instructions(f.name), 5 + 6 + 7 + 2)
        os.unlink(f.name)

    def test_more_instructions_than_the_band_allows_are_a_regression(self):
        counts, e = suites.load("counts"), entry()
        e.row(case="a", instructions=105.0, baseline=100.0)
        e.row(case="b", instructions=120.0, baseline=100.0)
        counts.judge(e)
        self.assertEqual([c["ok"] for c in e.data["checks"]], [True, False])

    def test_a_peer_is_told_only_what_was_asked(self):
        peer = ways.Peer({}, "/x/lib.so", tempfile.mkdtemp())
        _, env = peer.command(["true"], ways.Quota(sm=30))
        self.assertEqual(env["CUDA_DEVICE_SM_LIMIT"], "30")
        self.assertNotIn("CUDA_DEVICE_MEMORY_LIMIT", env)
        self.assertEqual(env["LD_PRELOAD"], "/x/lib.so")

    def test_a_tenant_inherits_no_quota_of_the_caller(self):
        os.environ["CUOTA_SM"] = "10"
        try:
            self.assertNotIn("CUOTA_SM", ways.clean_environment("/b", False, "/s"))
        finally:
            del os.environ["CUOTA_SM"]

    def test_failures_come_first_in_the_table_of_promises(self):
        text = tables.checks({"checks": [{"name": "a", "ok": True, "detail": ""},
                                         {"name": "b", "ok": False, "detail": ""}]})
        self.assertLess(text.index("| b |"), text.index("| a |"))


if __name__ == "__main__":
    unittest.main()
