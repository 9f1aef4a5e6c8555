#!/usr/bin/env python3
"""Small-batch inference of the medium encoder; meant to be run with a period (a request per 5 ms)."""

import torch

from torch_workload import TorchWorkload, seed
from transformer import sized
from worker import serve


def make(options):
    seed()
    model, x = sized(options.size)
    model.eval()

    def body():
        with torch.inference_mode(), torch.autocast("cuda", dtype=torch.bfloat16):
            model(x)

    return TorchWorkload(body)


if __name__ == "__main__":
    serve("infer", make, {"size": "medium"})
