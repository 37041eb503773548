"""Greedy or sampled answers for many prompts at once, with keys and values kept."""
import torch

import llama


class Cache:
    """Keys and values of one layer; rows have their own lengths."""

    def __init__(self, rows, shape, total, device):
        size = (rows, shape.kv_heads, total, shape.head_dim)
        self.k, self.v = torch.zeros(size, device=device), torch.zeros(size, device=device)
        self.at = None  # where the next token of each row goes; None while the prompt is read

    def __call__(self, k, v):
        if self.at is None:
            self.k[:, :, :k.shape[2]], self.v[:, :, :v.shape[2]] = k, v
            return k, v
        rows = torch.arange(len(self.at), device=k.device)
        self.k[rows, :, self.at], self.v[rows, :, self.at] = k[:, :, 0], v[:, :, 0]
        return self.k, self.v


def _drawn(logits, temperature):
    if temperature == 0:
        return logits.argmax(-1)
    return torch.multinomial((logits / temperature).softmax(-1), 1)[:, 0]


@torch.no_grad()
def answers(model, prompts, end, most=128, temperature=0):
    """For each prompt's ids those of its answer; `end` is the last of them if it came in time."""
    device = model.embed_tokens.weight.device
    rows, longest = len(prompts), max(map(len, prompts))
    total = min(model.shape.positions, longest + most)
    ids = torch.zeros(rows, longest, dtype=torch.long)
    for row, prompt in enumerate(prompts):
        ids[row, :len(prompt)] = torch.tensor(prompt)
    ids, at = ids.to(device), torch.tensor([len(p) for p in prompts], device=device)
    caches = [Cache(rows, model.shape, total, device) for _ in model.layers]
    bias = llama.text_bias(torch.ones_like(ids[:1]))
    hidden = model.hidden(ids, bias, caches=caches)
    token = _drawn(model.logits(hidden[torch.arange(rows), at - 1]), temperature)
    out, running = [[] for _ in prompts], [True] * rows
    while True:
        for row, t in enumerate(token.tolist()):
            if running[row]:
                out[row].append(t)
                length = len(out[row])
                running[row] = t != end and length < most and len(prompts[row]) + length < total
        if not any(running):
            return out
        at = at.clamp(max=total - 1)
        for cache in caches:
            cache.at = at
        seen = torch.arange(total, device=device)[None] <= at[:, None]
        bias = torch.zeros(rows, 1, 1, 1, total, device=device)
        bias.masked_fill_(~seen[:, None, None, None], -1e9)
        hidden = model.hidden(token[:, None], bias, positions=at, caches=caches)
        token, at = _drawn(model.logits(hidden[:, 0]), temperature), at + 1
