"""The Llama that Ember is: RMS norms, rotary positions, grouped heads, a gated feed-forward."""
import dataclasses
import math

import torch
import torch.nn.functional as F
from torch import nn


@dataclasses.dataclass
class Shape:
    hidden: int
    heads: int
    kv_heads: int
    ff: int
    layers: int
    vocab: int
    head_dim: int = 32
    positions: int = 1024
    theta: float = 10000.0
    eps: float = 1e-5


SHAPES = {"ember": dict(hidden=256, heads=8, kv_heads=4, ff=768, layers=5),
          "draft": dict(hidden=96, heads=3, kv_heads=1, ff=256, layers=2)}


def rotary(shape, device):
    """cos and sin for each position, for the two halves of a head side by side."""
    pace = shape.theta ** (-torch.arange(0, shape.head_dim, 2, device=device) / shape.head_dim)
    angle = torch.outer(torch.arange(shape.positions, device=device), pace)
    angle = torch.cat([angle, angle], -1)
    return angle.cos(), angle.sin()


def turned(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


class Norm(nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(size)), eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class Attention(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.s = s
        self.q_proj = nn.Linear(s.hidden, s.heads * s.head_dim, bias=False)
        self.k_proj = nn.Linear(s.hidden, s.kv_heads * s.head_dim, bias=False)
        self.v_proj = nn.Linear(s.hidden, s.kv_heads * s.head_dim, bias=False)
        self.o_proj = nn.Linear(s.heads * s.head_dim, s.hidden, bias=False)

    def forward(self, x, cos, sin, bias, cache=None):
        """`bias` is added to the scores. `cache` takes the new keys and values, gives all."""
        rows, length, _ = x.shape
        s = self.s
        group = s.heads // s.kv_heads
        q = self.q_proj(x).view(rows, length, s.heads, s.head_dim).transpose(1, 2)
        k = self.k_proj(x).view(rows, length, s.kv_heads, s.head_dim).transpose(1, 2)
        v = self.v_proj(x).view(rows, length, s.kv_heads, s.head_dim).transpose(1, 2)
        q, k = turned(q, cos, sin) / math.sqrt(s.head_dim), turned(k, cos, sin)
        if cache is not None:
            k, v = cache(k, v)
        # The queries of a group share their keys: one product with group * length rows.
        q = q.reshape(rows, s.kv_heads, group * length, s.head_dim)
        scores = q @ k.transpose(-1, -2)
        scores = scores.view(rows, s.kv_heads, group, length, -1) + bias
        weights = scores.softmax(-1).view(rows, s.kv_heads, group * length, -1)
        out = (weights @ v).view(rows, s.heads, length, s.head_dim)
        return self.o_proj(out.transpose(1, 2).reshape(rows, length, -1))


class FeedForward(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.gate_proj = nn.Linear(s.hidden, s.ff, bias=False)
        self.up_proj = nn.Linear(s.hidden, s.ff, bias=False)
        self.down_proj = nn.Linear(s.ff, s.hidden, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.input_layernorm, self.self_attn = Norm(s.hidden, s.eps), Attention(s)
        self.post_attention_layernorm, self.mlp = Norm(s.hidden, s.eps), FeedForward(s)

    def forward(self, x, *attention):
        x = x + self.self_attn(self.input_layernorm(x), *attention)
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(nn.Module):
    """Its parameters have the names that a Hugging Face folder gives them, less "model."."""

    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.embed_tokens = nn.Embedding(shape.vocab, shape.hidden)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = Norm(shape.hidden, shape.eps)
        self.begin()

    def begin(self):
        deep = 1 / math.sqrt(2 * self.shape.layers)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                scale = 0.02 if "embed" in name else p.shape[1] ** -0.5
                scale *= deep if "o_proj" in name or "down_proj" in name else 1
                nn.init.normal_(p, std=scale)

    def hidden(self, ids, bias, positions=None, caches=None):
        cos, sin = rotary(self.shape, ids.device)
        if positions is None:
            cos, sin = cos[:ids.shape[1]], sin[:ids.shape[1]]
        else:
            cos, sin = cos[positions][:, None, None], sin[positions][:, None, None]
        x = self.embed_tokens(ids)
        for i, layer in enumerate(self.layers):
            x = layer(x, cos, sin, bias, *([caches[i]] if caches else []))
        return self.norm(x)

    def logits(self, hidden):
        return hidden @ self.embed_tokens.weight.t()


def text_bias(number):
    """Scores' bias for packed rows: a token sees earlier tokens of its own text only."""
    length = number.shape[1]
    same = number[:, :, None] == number[:, None, :]
    seen = same & torch.ones(length, length, dtype=torch.bool, device=number.device).tril()
    bias = torch.zeros(seen.shape, device=number.device).masked_fill_(~seen, -1e9)
    return bias[:, None, None]
