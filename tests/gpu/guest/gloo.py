#!/usr/bin/env python3
"""torch.distributed: two ranks on one GPU, gloo, gradients summed."""

import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def rank_main(rank):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=os.environ.get("GLOO_PORT", "29507"))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    torch.manual_seed(rank)
    x = torch.randn(1000, 1000, device="cuda")
    for _ in range(5):
        x = (x @ x.t()) / 1000
        dist.all_reduce(x)
        x /= x.norm()
    if rank == 0:
        print(f"{x.double().sum().item():.6f}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(rank_main, nprocs=2)
