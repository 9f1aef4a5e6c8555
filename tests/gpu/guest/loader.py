#!/usr/bin/env python3
"""A DataLoader with worker processes, forked or spawned (argument), pinned memory, and CUDA in the parent first."""

import sys

import torch
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 512

    def __getitem__(self, i):
        return torch.full((64,), float(i * i % 97)), i


def main():
    torch.ones(1, device="cuda").sum().item()
    loader = DataLoader(
        Squares(), 32, num_workers=3, pin_memory=True, multiprocessing_context=sys.argv[1], persistent_workers=True
    )
    for epoch in range(2):
        total, seen = 0.0, 0
        for x, i in loader:
            x = x.to("cuda", non_blocking=True)
            total += float((x * 2).sum())
            seen += int(i.sum())
        print(epoch, total, seen)


if __name__ == "__main__":
    main()
