#!/usr/bin/env python3
"""A cuBLAS loop: bf16 matrix products, as many as the device takes, eight to a step."""

import torch

from torch_workload import TorchWorkload, seed
from worker import serve


def make(options):
    seed()
    torch.set_grad_enabled(False)
    n = options.n
    a, b = (torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    c = torch.empty(n, n, device="cuda", dtype=torch.bfloat16)

    def body():
        for _ in range(8):
            torch.mm(a, b, out=c)

    return TorchWorkload(body)


if __name__ == "__main__":
    serve("gemm", make, {"n": 4096})
