#!/usr/bin/env python3
"""A decoding loop: one CUDA graph of a small decoder step, replayed and read back for every token."""

import torch
import torch.nn.functional as F

from torch_workload import TorchWorkload, seed
from worker import serve


class Decoder:
    """Attention over a cache of fixed length; weights and buffers are static, as a graph wants them."""

    def __init__(self, layers, width, heads, length, batch):
        def weights(*shape):
            return torch.randn(*shape, device="cuda", dtype=torch.bfloat16) / width**0.5

        self.heads, self.width, self.batch = heads, width, batch
        self.layers = [
            {
                "qkv": weights(width, 3 * width),
                "out": weights(width, width),
                "up": weights(width, 4 * width),
                "down": weights(4 * width, width),
                "keys": weights(batch, heads, length, width // heads),
                "values": weights(batch, heads, length, width // heads),
            }
            for _ in range(layers)
        ]
        self.head = weights(width, 8192)
        self.x = weights(batch, width)
        self.token = torch.zeros(batch, dtype=torch.int64, device="cuda")

    def step(self):
        x = self.x
        for l in self.layers:
            q, k, v = (F.layer_norm(x, (self.width,)) @ l["qkv"]).chunk(3, dim=-1)
            shape = (self.batch, self.heads, 1, self.width // self.heads)
            l["keys"][:, :, :1].copy_(k.reshape(shape))
            l["values"][:, :, :1].copy_(v.reshape(shape))
            y = F.scaled_dot_product_attention(q.reshape(shape), l["keys"], l["values"])
            x = x + y.reshape(self.batch, self.width) @ l["out"]
            x = x + F.gelu(F.layer_norm(x, (self.width,)) @ l["up"]) @ l["down"]
        self.token.copy_((x @ self.head).argmax(dim=-1))


def make(options):
    seed()
    torch.set_grad_enabled(False)
    decoder = Decoder(options.layers, 1024, 16, 1024, options.batch)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            decoder.step()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        decoder.step()

    def body():
        graph.replay()
        decoder.token.tolist()

    return TorchWorkload(body)


if __name__ == "__main__":
    serve("decode", make, {"layers": 8, "batch": 4})
