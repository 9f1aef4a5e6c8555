#!/usr/bin/env python3
"""A seeded training: prints every loss bit by bit, so that two runs can be compared as text."""

import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch
from torch import nn

torch.manual_seed(7)
torch.use_deterministic_algorithms(True)
layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True, dropout=0.1)
model = nn.Sequential(nn.Linear(64, 256), nn.TransformerEncoder(layer, 4), nn.Linear(256, 64)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
data = torch.randn(64, 16, 32, 64, device="cuda")
for step in range(200):
    x = data[step % len(data)]
    with torch.autocast("cuda", torch.bfloat16):
        loss = ((model(x) - x.roll(1, 1)) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item().hex())
print(sum(p.double().sum().item() for p in model.parameters()).hex())
