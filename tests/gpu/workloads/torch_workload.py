"""What the PyTorch workloads share: a step that ends on the device, and the profiler's view of it."""

import json
import os
import tempfile

import torch

from worker import summary_of_intervals

DEVICE_RECORDS = ("kernel", "gpu_memcpy", "gpu_memset")


class TorchWorkload:
    """body() enqueues one step."""

    def __init__(self, body):
        self.body = body

    def step(self):
        self.body()
        torch.cuda.synchronize()

    def profile(self, steps):
        """Device time from the records of CUPTI, read back from the trace: the same in every
        version of PyTorch."""
        from torch.profiler import ProfilerActivity, profile

        path = os.path.join(tempfile.gettempdir(), f"cuota-trace-{os.getpid()}.json")
        self.step()
        with profile(activities=[ProfilerActivity.CUDA]) as recorder:
            for _ in range(steps):
                self.step()
        try:
            recorder.export_chrome_trace(path)
            with open(path, encoding="utf-8") as trace:
                events = json.load(trace)["traceEvents"]
        finally:
            if os.path.exists(path):
                os.unlink(path)
        intervals = [
            (float(e["ts"]), float(e["ts"]) + float(e["dur"]))
            for e in events
            if e.get("ph") == "X" and e.get("cat") in DEVICE_RECORDS
        ]
        return summary_of_intervals(intervals, steps, len(intervals))


def seed():
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.benchmark = False
