#!/usr/bin/env python3
"""ResNet-like convolution training: 18 layers, SGD with momentum, bf16 autocast, channels last."""

import torch
import torch.nn.functional as F
from torch import nn

from torch_workload import TorchWorkload, seed
from worker import serve


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
        self.short = None
        if stride != 1 or inputs != outputs:
            self.short = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        return F.relu(y + (self.short(x) if self.short is not None else x))


def network(classes):
    stages, inputs = [], 64
    for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        stages += [Block(inputs, outputs, stride), Block(outputs, outputs, 1)]
        inputs = outputs
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(*stem, *stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))


def make(options):
    seed()
    model = network(1000).cuda().to(memory_format=torch.channels_last)
    x = torch.randn(options.batch, 3, 224, 224, device="cuda")
    x = x.to(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (options.batch,), device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def body():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()

    return TorchWorkload(body)


if __name__ == "__main__":
    serve("conv", make, {"batch": 64})
