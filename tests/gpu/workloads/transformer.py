"""A transformer encoder, written out so that no framework version swaps in a fused fast path."""

import torch
import torch.nn.functional as F
from torch import nn

# name: layers, width, heads, batch, sequence
SIZES = {
    "small": (2, 256, 4, 8, 64),
    "medium": (4, 512, 8, 8, 128),
    "large": (10, 1024, 16, 8, 512),
    "xl": (12, 1024, 16, 32, 512),
}


class Layer(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attend(self, x):
        batch, length, width = x.shape
        q, k, v = (
            t.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for t in self.qkv(x).chunk(3, dim=-1)
        )
        y = F.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        p, training = self.dropout, self.training
        x = x + F.dropout(self.attend(self.norm1(x)), p, training)
        y = F.dropout(F.gelu(self.up(self.norm2(x))), p, training)
        return x + F.dropout(self.down(y), p, training)


class Encoder(nn.Module):
    def __init__(self, layers, width, heads, dropout=0.1):
        super().__init__()
        self.layers = nn.ModuleList(Layer(width, heads, dropout) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, width)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def sized(name):
    layers, width, heads, batch, length = SIZES[name]
    model = Encoder(layers, width, heads).cuda()
    return model, torch.randn(batch, length, width, device="cuda")
