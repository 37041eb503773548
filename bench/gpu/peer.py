#!/usr/bin/env python3
"""The peer of model_bench: the same shapes, streams and prompts in PyTorch, in bfloat16.

    peer.py [COMMIT [MODEL...]]     exit 77, "skipped", where there is no torch or no GPU

Plain torch: joined projections, scaled_dot_product_attention over a static cache, decodes as a CUDA
graph, as they are and by torch.compile where that works. Prints lines as model_bench does.
"""

import json
import statistics
import sys
import time
from dataclasses import dataclass

STREAMS = (1, 2, 4, 8, 16, 32, 64)
PROMPTS = (512, 4096)
CONTEXT, WARM_UPS, DECODES, PREFILLS = 256, 5, 50, 5
COPIED_BYTES = 1 << 29
LARGE = 8192


@dataclass(frozen=True)
class Shape:
    layers: int
    hidden: int
    head_dim: int
    ffn: int
    tied: bool
    kv_heads: int = 8
    vocab: int = 128256
    theta: float = 500000.0
    eps: float = 1e-5

    @property
    def heads(self):
        return self.hidden // self.head_dim

    @property
    def kv(self):
        return self.kv_heads * self.head_dim

    def layer_weights(self):
        return 2 * self.hidden * (self.hidden + self.kv) + 3 * self.hidden * self.ffn


SHAPES = {"1b": Shape(16, 2048, 64, 8192, True), "8b": Shape(32, 4096, 128, 14336, False)}


def weight_bytes(s):
    """What a token reads of bfloat16 weights; norms, as ours, are floats."""
    return 2 * (s.layers * s.layer_weights() + s.vocab * s.hidden) + s.layers * 2 * s.hidden * 4


def seen():
    """Tokens with keys and values in the middle of what is timed."""
    return CONTEXT + WARM_UPS + (DECODES + 1) / 2


def decode_bytes(s, streams):
    return weight_bytes(s) + streams * seen() * 2 * s.layers * s.kv * 2


def prompt_ops(s, tokens):
    """Behind the last layer's keys and values only the last token is needed."""
    projected = s.hidden * (s.hidden + 2 * s.kv)
    products = tokens * ((s.layers - 1) * s.layer_weights() + projected)
    products += s.layer_weights() - projected + s.vocab * s.hidden
    pairs = (s.layers - 1) * tokens * (tokens + 1) / 2 + tokens
    return 2 * products + 4 * s.hidden * pairs


def spread(seconds):
    v = sorted(seconds)
    return {
        "ms": round(v[len(v) // 2] * 1e3, 4),
        "ms_p10": round(v[len(v) // 10] * 1e3, 4),
        "ms_p90": round(v[len(v) * 9 // 10] * 1e3, 4),
    }


class Machine:
    """What the GPU that is here can do at best, by torch itself."""

    def __init__(self, torch, commit):
        self.torch = torch
        self.of = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "commit": commit}

    def seconds(self, run, times, warm_ups=1):
        took = []
        for i in range(warm_ups + times):
            self.torch.cuda.synchronize()
            begin = time.perf_counter()
            run()
            self.torch.cuda.synchronize()
            if i >= warm_ups:
                took.append(time.perf_counter() - begin)
        return took

    def copy_bytes_per_s(self):
        source = self.torch.ones(COPIED_BYTES, dtype=self.torch.uint8, device="cuda")
        to = self.torch.empty_like(source)
        return 2 * COPIED_BYTES / statistics.median(self.seconds(lambda: to.copy_(source), 50, 5))

    def matrix_ops_per_s(self):
        one = self.torch.ones(LARGE, LARGE, dtype=self.torch.bfloat16, device="cuda")
        return 2 * LARGE**3 / statistics.median(self.seconds(lambda: one @ one, 50, 5))

    def say(self, line, told):
        print(json.dumps({**line, **self.of}, separators=(",", ":")), flush=True)
        print(told, file=sys.stderr, flush=True)


class Model:
    """Random weights and a static cache of `streams` sequences of `room` tokens."""

    def __init__(self, torch, shape, streams, room):
        self.torch, self.s, self.room = torch, shape, room
        torch.manual_seed(7)
        s, wide = shape, shape.hidden + 2 * shape.kv
        self.embed = self.weight(s.vocab, s.hidden)
        self.layers = [
            {
                "qkv": self.weight(wide, s.hidden),
                "o": self.weight(s.hidden, s.hidden),
                "gate_up": self.weight(2 * s.ffn, s.hidden),
                "down": self.weight(s.hidden, s.ffn),
                "norm": self.gain(),
                "mlp_norm": self.gain(),
                "keys": self.cache(streams),
                "values": self.cache(streams),
            }
            for _ in range(s.layers)
        ]
        self.norm = self.gain()
        self.head = self.embed if s.tied else self.weight(s.vocab, s.hidden)
        pair = torch.arange(0, s.head_dim, 2, device="cuda", dtype=torch.float64) / s.head_dim
        angles = torch.outer(torch.arange(room, device="cuda", dtype=torch.float64), s.theta**-pair)
        self.cos = torch.cat((angles, angles), 1).cos().bfloat16()
        self.sin = torch.cat((angles, angles), 1).sin().bfloat16()
        self.columns = torch.arange(room, device="cuda")

    def weight(self, rows, cols):
        made = self.torch.empty(rows, cols, dtype=self.torch.bfloat16, device="cuda")
        return made.normal_(0, cols**-0.5)

    def gain(self):
        return self.torch.ones(self.s.hidden, dtype=self.torch.bfloat16, device="cuda")

    def cache(self, streams):
        shape = (streams, self.s.kv_heads, self.room, self.s.head_dim)
        return self.torch.zeros(shape, dtype=self.torch.bfloat16, device="cuda")

    def normed(self, x, gain):
        wide = x.float()
        return (wide * self.torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.s.eps)).bfloat16() * gain

    @staticmethod
    def turned(torch, x, cos, sin):
        half = x.shape[-1] // 2
        return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin

    def projected(self, layer, x, cos, sin):
        """Queries, keys and values, [stream][head][token][dimension]."""
        s = self.s
        q, k, v = (self.normed(x, layer["norm"]) @ layer["qkv"].T).split((s.hidden, s.kv, s.kv), -1)
        n, tokens = x.shape[:2]
        heads = lambda t, count: t.view(n, tokens, count, s.head_dim).transpose(1, 2)
        q, k = heads(q, s.heads), heads(k, s.kv_heads)
        return self.turned(self.torch, q, cos, sin), self.turned(self.torch, k, cos, sin), heads(v, s.kv_heads)

    def behind(self, layer, x, attended):
        x = x + attended @ layer["o"].T
        gate, up = (self.normed(x, layer["mlp_norm"]) @ layer["gate_up"].T).chunk(2, -1)
        return x + (self.torch.nn.functional.silu(gate) * up) @ layer["down"].T

    def prefill(self, ids, first):
        """Whole prompts of streams from the first on, at once; logits of their last tokens."""
        n, tokens = ids.shape
        s, x = self.s, self.torch.nn.functional.embedding(ids, self.embed)
        cos, sin = self.cos[:tokens], self.sin[:tokens]
        for i, layer in enumerate(self.layers):
            q, k, v = self.projected(layer, x, cos, sin)
            layer["keys"][first : first + n, :, :tokens] = k
            layer["values"][first : first + n, :, :tokens] = v
            group = s.heads // s.kv_heads
            k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
            last = i + 1 == s.layers
            if last:
                q, x = q[:, :, -1:], x[:, -1:]
            out = self.torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=not last)
            x = self.behind(layer, x, out.transpose(1, 2).reshape(n, -1, s.hidden))
        return (self.normed(x, self.norm) @ self.head.T)[:, -1]

    def decode(self, ids, position):
        """A token of each stream at a position that is a tensor; logits. A head's group of queries
        is attention's row of tokens, so nothing is repeated."""
        n, s = ids.shape[0], self.s
        x = self.torch.nn.functional.embedding(ids, self.embed).unsqueeze(1)
        cos, sin = self.cos.index_select(0, position), self.sin.index_select(0, position)
        mask = self.torch.zeros(self.room, dtype=x.dtype, device="cuda")
        mask = mask.masked_fill(self.columns > position, float("-inf"))
        mask = mask.expand(n, s.kv_heads, s.heads // s.kv_heads, self.room)
        for layer in self.layers:
            q, k, v = self.projected(layer, x, cos, sin)
            keys, values = layer["keys"][:n], layer["values"][:n]
            keys.index_copy_(2, position, k)
            values.index_copy_(2, position, v)
            q = q.reshape(n, s.kv_heads, s.heads // s.kv_heads, s.head_dim)
            out = self.torch.nn.functional.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
            x = self.behind(layer, x, out.reshape(n, 1, s.hidden))
        return (self.normed(x, self.norm) @ self.head.T)[:, 0]


def context_ids(torch, s, streams, tokens):
    made = torch.Generator().manual_seed(3)
    return torch.randint(s.vocab, (streams, tokens), generator=made).cuda()


def check(torch, model):
    """A token behind a context says what it says as the last of a prompt, up to rounding."""
    ids = context_ids(torch, model.s, 2, CONTEXT + 1)
    want = model.prefill(ids, 0).float()
    model.prefill(ids[:, :-1], 0)
    got = model.decode(ids[:, -1], torch.tensor([CONTEXT], device="cuda")).float()
    off = ((got - want).norm() / want.norm()).item()
    if not off < 0.1:
        sys.exit(f"FAILED: a decode differs from a prompt by {off:.3f} of its logits' size")


class Decoding:
    """Greedy decodes of the first streams as one graph, which leaves each token where it reads the
    next and moves the position on."""

    def __init__(self, torch, model, streams, decode):
        self.torch, self.position = torch, torch.tensor([CONTEXT], device="cuda")
        self.ids = context_ids(torch, model.s, streams, 1)[:, 0].clone()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                decode(self.ids, self.position)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.ids.copy_(decode(self.ids, self.position).argmax(-1))
            self.position.add_(1)

    def step(self):
        """The host has every token, as ours does."""
        self.graph.replay()
        return self.ids.tolist()


def bench_prompts(machine, name, model, peak):
    for tokens in PROMPTS:
        ids = context_ids(machine.torch, model.s, 1, tokens)
        took = spread(machine.seconds(lambda: model.prefill(ids, 0), PREFILLS))
        least = prompt_ops(model.s, tokens) / peak
        line = {"bench": "model_prefill", "by": "torch", "model": name, "type": "bf16", "tokens": tokens, **took}
        line |= {
            "tokens_per_s": round(tokens / took["ms"] * 1e3, 1),
            "limit_ms": round(least * 1e3, 3),
            "of_peak": round(least * 1e3 / took["ms"], 3),
        }
        told = f"torch: {name} bf16: prompt of {tokens}: {line['tokens_per_s']:.0f} tokens/s"
        machine.say(line, f"{told}, {line['of_peak']:.2f} of the matrix peak")


def bench_decodes(machine, name, model, by, decode):
    for first in range(0, STREAMS[-1], 16):
        model.prefill(context_ids(machine.torch, model.s, STREAMS[-1], CONTEXT)[first : first + 16], first)
    for streams in STREAMS:
        before = machine.copy_bytes_per_s()
        running = Decoding(machine.torch, model, streams, decode)
        took = spread(machine.seconds(running.step, DECODES, WARM_UPS))
        after = machine.copy_bytes_per_s()
        bytes_moved = decode_bytes(model.s, streams)
        rate = bytes_moved / took["ms"] * 1e3
        line = {"bench": "model_decode", "by": by, "model": name, "type": "bf16", "streams": streams}
        line |= {"context": CONTEXT, **took, "tokens_per_s": round(streams / took["ms"] * 1e3, 1)}
        line |= {
            "bytes": bytes_moved,
            "gb_per_s": round(rate * 1e-9, 1),
            "copy_gb_per_s": [round(before * 1e-9, 1), round(after * 1e-9, 1)],
            "steady": max(before, after) <= 1.5 * min(before, after),
            "of_copy": round(rate / max(before, after), 3),
        }
        told = f"{by}: {name} bf16: {streams} streams: {line['tokens_per_s']:.1f} tokens/s"
        machine.say(line, f"{told}, {line['of_copy']:.2f} of the copy's bandwidth")


def bench_model(machine, name, peak):
    torch, s = machine.torch, SHAPES[name]
    room = (CONTEXT + WARM_UPS + DECODES + 15) // 16 * 16
    prompts = Model(torch, s, 1, max(PROMPTS))
    bench_prompts(machine, name, prompts, peak)
    del prompts
    torch.cuda.empty_cache()
    model = Model(torch, s, STREAMS[-1], room)
    check(torch, model)
    bench_decodes(machine, name, model, "torch", model.decode)
    try:
        bench_decodes(machine, name, model, "torch.compile", torch.compile(model.decode, dynamic=False))
    except Exception as why:  # whatever of its own tools is missing
        print(f"torch.compile: not here: {str(why).splitlines()[0][:200]}", file=sys.stderr)


def main(arguments):
    try:
        import torch
    except ImportError:
        print("skipped: no torch")
        return 77
    if not torch.cuda.is_available():
        print("skipped: torch finds no GPU")
        return 77
    names = arguments[1:] or list(SHAPES)
    for name in names:
        if name not in SHAPES:
            print(f"FAILED: no model {name}; there are {' and '.join(SHAPES)}")
            return 1
    machine = Machine(torch, arguments[0] if arguments else "unknown")
    with torch.inference_mode():
        peak = machine.matrix_ops_per_s()
        line = {"bench": "matrix_peak", "type": "bf16", "by": "torch", "tera_ops_per_s": round(peak * 1e-12, 1)}
        machine.say(line, f"torch: {peak * 1e-12:.0f} TFLOPS by a large product")
        for name in names:
            bench_model(machine, name, peak)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
