#!/usr/bin/env python3
"""Transformer-encoder training: AdamW, bf16 autocast. --size small | medium | large | xl

On an H200 alone the device is busy about 0.10, 0.17, 0.59 and 0.99 of the time: the first three wait for
the host, the last one for the device.
"""

import torch
import torch.nn.functional as F

from torch_workload import TorchWorkload, seed
from transformer import sized
from worker import serve


def make(options):
    seed()
    model, x = sized(options.size)
    target = torch.randn_like(x)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def body():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            y = model(x)
        F.mse_loss(y.float(), target).backward()
        optimizer.step()

    return TorchWorkload(body)


if __name__ == "__main__":
    serve("train", make, {"size": "small"})
