"""Compares fused.py with PyTorch's own operations: every function's outputs and gradients with
double precision, then a model's loss and gradients with llama.py's. Run it after every change."""
import math
import sys
import tempfile

import numpy as np
import torch
import torch.nn.functional as F

import fused
import llama
import train

NEAR = 5e-5  # largest error over the largest value; single precision leaves 1e-7 to 2e-5
SMALL = 0.01  # values below this count as if they were this large, as some gradients are nothing
SHAPES = {**llama.SHAPES, "small": dict(hidden=48, heads=2, kv_heads=2, ff=80, layers=3)}


def apart(found, right):
    return ((found - right).abs().max() / right.abs().max().clamp(min=SMALL)).item()


class Tally:
    def __init__(self):
        self.wrong = 0

    def __call__(self, name, found, right):
        """One line for a list of pairs of tensors."""
        worst = max(apart(f.detach().double(), r.detach().double()) for f, r in zip(found, right))
        good = worst < NEAR
        self.wrong += not good
        print(f"{'ok   ' if good else 'WRONG'} {worst:.1e}  {name}", flush=True)


def compared(tally, name, ours, theirs, inputs, fixed=()):
    """`ours` in single, `theirs` in double precision; the inputs' gradients are compared, too."""
    torch.manual_seed(7)
    results = []
    for function, kind in ((ours, torch.float32), (theirs, torch.float64)):
        given = [t.detach().clone().to(kind).requires_grad_() for t in inputs]
        out = function(*given, *fixed)
        out = out if isinstance(out, tuple) else (out,)
        slopes = [torch.sin(torch.arange(o.numel(), dtype=torch.float64)).view(o.shape).to(kind)
                  for o in out]
        sum((o * s).sum() for o, s in zip(out, slopes)).backward()
        results.append([*out, *(t.grad for t in given)])
    tally(name, *results)


def norms(tally, kernels):
    def plain(x, delta, gain):
        x = x + delta
        return x, x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * gain

    for rows, width in ((1, 16), (7, 96), (256, 256)):
        x, delta, gain = torch.randn(rows, width), torch.randn(rows, width), torch.randn(width)
        compared(tally, f"norm of a sum, {rows} x {width}",
                 lambda *a: fused.Norm.apply(kernels, *a, 1e-5), plain, (x, delta, gain))
        compared(tally, f"norm, {rows} x {width}",
                 lambda a, g: fused.Norm.apply(kernels, a, None, g, 1e-5)[1],
                 lambda a, g: plain(a, 0, g)[1], (x, gain))


def gates(tally, kernels):
    for rows, width in ((1, 16), (7, 256), (256, 768)):
        compared(tally, f"gated, {rows} x {width}", lambda b: fused.Gated.apply(kernels, b),
                 lambda b: F.silu(b[:, :width]) * b[:, width:], (8 * torch.randn(rows, 2 * width),))


def linears(tally):
    x, a, b = torch.randn(7, 96), torch.randn(32, 96), torch.randn(5, 96)
    compared(tally, "two matrices at once", fused.Linear.apply,
             lambda x, a, b: torch.cat([x @ a.t(), x @ b.t()], -1), (x, a, b))


def head_losses(tally, kernels):
    for rows, width, vocab in ((1, 16, 16), (7, 96, 3072), (513, 256, 3072)):
        goals, weights = torch.randint(vocab, (rows,)), torch.rand(rows)

        def plain(hidden, matrix):
            loss = F.cross_entropy(hidden @ matrix.t(), goals, reduction="none")
            return (loss * weights).sum()

        compared(tally, f"loss of {rows} x {vocab} logits",
                 lambda h, m: fused.HeadLoss.apply(kernels, h, m, goals, weights)[0], plain,
                 (torch.randn(rows, width), torch.randn(vocab, width)))


def plain_attention(qkv, lengths, heads, kv_heads):
    """llama.py's, text by text."""
    shape = llama.Shape(hidden=0, heads=heads, kv_heads=kv_heads, ff=0, layers=0, vocab=0)
    cos, sin = (t.to(qkv.dtype) for t in llama.rotary(shape, "cpu"))
    q, k, v = qkv.view(len(qkv), -1, fused.HEAD).transpose(0, 1).split([heads, kv_heads, kv_heads])
    out, at = [], 0
    for length in lengths:
        here = slice(at, at + length)
        turned = [llama.turned(t[:, here], cos[:length], sin[:length]) for t in (q, k)]
        keys, values = (t.repeat_interleave(heads // kv_heads, 0) for t in (turned[1], v[:, here]))
        scores = turned[0] @ keys.transpose(-1, -2) / math.sqrt(fused.HEAD)
        unseen = torch.ones(length, length, dtype=torch.bool).triu(1)
        out.append(scores.masked_fill(unseen, -math.inf).softmax(-1) @ values)
        at += length
    return torch.cat(out, 1).transpose(0, 1).reshape(len(qkv), -1)


def attentions(tally, kernels):
    cases = [((n,), 8, 4) for n in (1, 7, 31, 32, 33, 256, 1024)]
    cases += [((1, 1, 1), 3, 1), ((7, 256, 64, 1), 8, 4), ((100, 924), 3, 1), ((1024, 1000), 2, 2)]
    angles = tuple(fused.angles(llama.Shape(vocab=0, **llama.SHAPES["ember"])))
    for lengths, heads, kv_heads in cases:
        starts = torch.tensor([0, *np.cumsum(lengths)])
        # Ever larger scores, so that some rows are all but one weight.
        qkv = torch.randn(sum(lengths), (heads + 2 * kv_heads) * fused.HEAD)
        qkv *= torch.linspace(0.1, 4, len(qkv))[:, None]
        compared(tally, f"attention, {heads} heads over {kv_heads}, texts of {lengths}",
                 lambda t: fused.Attention.apply(kernels, t, starts, heads, kv_heads, *angles),
                 lambda t: plain_attention(t, lengths, heads, kv_heads), (qkv,))


def packed(rows, length, texts, vocab, padding):
    """A batch like corpus.batch's, of random tokens; a third of them count."""
    rng = np.random.default_rng(length)
    ids, targets = rng.integers(vocab, size=(2, rows, length))
    number = np.sort(rng.integers(1, texts + 1, size=(rows, length)))
    number += texts * np.arange(rows)[:, None]
    number[:, length - padding:] = 0
    weights = np.where((number > 0) & (rng.random((rows, length)) < 0.34), 1, 0).astype(np.float32)
    weights[0, 0] = 1
    return ids, targets, weights, number


def models(tally, kernels):
    for name, form in SHAPES.items():
        shape = llama.Shape(vocab=3072, **form)
        torch.manual_seed(3)
        model, teacher = llama.Llama(shape), llama.Llama(shape)
        for rows, length, texts, padding in ((1, 1, 1, 0), (2, 7, 2, 1), (2, 256, 4, 30),
                                             (1, 1024, 3, 5)):
            data = packed(rows, length, texts, shape.vocab, padding)
            for taught in (None, teacher):
                results = []
                for arithmetic in (kernels, None):
                    model.zero_grad(set_to_none=True)
                    loss, answers = train.losses(model, taught, data, "cpu", arithmetic)
                    loss.backward()
                    slopes = [p.grad for p in model.parameters()]
                    results.append([loss, torch.tensor(answers), *slopes])
                tally(f"{name}: {rows} rows of {length}, {texts} texts each, {padding} padding"
                      f"{', taught' if taught else ''}", *results)


def main():
    torch.set_num_threads(2)
    with tempfile.TemporaryDirectory() as folder:
        kernels = fused.built(folder, llama.Shape(vocab=3072, **llama.SHAPES["ember"]))
        if not kernels:
            raise SystemExit("check_fused: nothing to compare without g++")
        tally = Tally()
        torch.manual_seed(5)
        norms(tally, kernels)
        gates(tally, kernels)
        linears(tally)
        head_losses(tally, kernels)
        attentions(tally, kernels)
        models(tally, kernels)
    sys.exit(f"check_fused: {tally.wrong} are wrong" if tally.wrong else 0)


if __name__ == "__main__":
    main()
