"""Ember's forward and backward pass for training on a CPU: packed texts without padding, and the
arithmetic of fused.cpp. The mathematics is llama.py's, to which check_fused.py compares it."""
import ctypes
import hashlib
import os
import pathlib
import shutil
import subprocess

import numpy as np
import torch
import torch.nn.functional as F
from torch.autograd import Function

import llama

SOURCE = pathlib.Path(__file__).with_name("fused.cpp")
BUILD = ["g++", "-std=c++20", "-O3", "-march=native", "-fopenmp", "-fPIC", "-shared"]
LANES, HEAD = 16, 32  # of fused.cpp
LOGIT_ROWS = 512  # so many rows of logits at a time stay in the cache


def _argument(value):
    if isinstance(value, torch.Tensor):
        assert value.is_contiguous() and value.dtype in (torch.float32, torch.int64)
        return ctypes.c_void_p(value.data_ptr())
    if value is None:
        return None
    return {int: ctypes.c_int64, float: ctypes.c_float}[type(value)](value)


class Kernels:
    """The functions of a shared object; tensors are handed over as pointers."""

    def __init__(self, path):
        self._library = ctypes.CDLL(str(path))

    def __call__(self, name, *args):
        getattr(self._library, name)(*map(_argument, args))


def without(reason):
    print(f"train: {reason}; going on without fused.cpp, at about half the speed", flush=True)


def built(folder, shape):
    """The kernels, built into `folder` unless they are there already; None where they can't be."""
    widths = (shape.hidden, shape.ff, shape.vocab)
    if shape.head_dim != HEAD or any(n % LANES for n in widths):
        return without(f"heads must have {HEAD} floats, and widths be multiples of {LANES}")
    if not shutil.which(BUILD[0]):
        return without("g++ is missing (apt-get install g++)")
    # What -march=native means is another thing on another machine.
    machine = [line for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
               if line.startswith(("flags", "Features"))][:1]
    digest = hashlib.sha256(repr((SOURCE.read_text(), BUILD, machine)).encode()).hexdigest()[:16]
    path = pathlib.Path(folder) / f"fused-{digest}.so"
    if not path.exists():
        part = path.with_suffix(f".{os.getpid()}")
        if subprocess.run([*BUILD, str(SOURCE), "-o", str(part)]).returncode:
            return without("g++ could not build it")
        os.replace(part, path)
    return Kernels(path)


class Linear(Function):
    """x times several matrices at once, side by side."""

    @staticmethod
    def forward(ctx, x, *matrices):
        matrix = torch.cat(matrices) if len(matrices) > 1 else matrices[0]
        ctx.save_for_backward(x, matrix)
        ctx.sizes = [len(m) for m in matrices]
        return x @ matrix.t()

    @staticmethod
    def backward(ctx, d_y):
        x, matrix = ctx.saved_tensors
        return d_y @ matrix, *(d_y.t() @ x).split(ctx.sizes)


class Norm(Function):
    """x + delta and its norm."""

    @staticmethod
    def forward(ctx, kernels, x, delta, gain, eps):
        sums = x if delta is None else torch.empty_like(x)
        y, inverse = torch.empty_like(x), x.new_empty(len(x))
        kernels("norm", x, delta, gain, eps, *x.shape, sums, y, inverse)
        ctx.kernels, ctx.alone = kernels, delta is None
        ctx.save_for_backward(sums, gain, inverse)
        ctx.set_materialize_grads(False)
        return sums, y

    @staticmethod
    def backward(ctx, d_sums, d_y):
        sums, gain, inverse = ctx.saved_tensors
        d_x, d_gain = torch.empty_like(sums), torch.zeros_like(gain)
        ctx.kernels("norm_back", sums, gain, inverse, d_y, d_sums, *sums.shape, d_x, d_gain)
        return None, d_x, None if ctx.alone else d_x, d_gain, None


class Gated(Function):
    """silu(gate) * up."""

    @staticmethod
    def forward(ctx, kernels, both):
        y = both.new_empty(len(both), both.shape[1] // 2)
        kernels("gated", both, *y.shape, y)
        ctx.kernels = kernels
        ctx.save_for_backward(both)
        return y

    @staticmethod
    def backward(ctx, d_y):
        both, = ctx.saved_tensors
        d_both = torch.empty_like(both)
        ctx.kernels("gated_back", both, d_y, *d_y.shape, d_both)
        return None, d_both


class Attention(Function):
    """Of the queries, keys and values of packed texts, before they are turned."""

    @staticmethod
    def forward(ctx, kernels, qkv, starts, heads, kv_heads, cosine, sine):
        out, logs = qkv.new_empty(len(qkv), heads * HEAD), qkv.new_empty(len(qkv), heads)
        ctx.form = (starts, len(starts) - 1, heads, kv_heads, cosine, sine)
        kernels("attention", qkv, *ctx.form, out, logs)
        ctx.kernels = kernels
        ctx.save_for_backward(qkv, out, logs)
        return out

    @staticmethod
    def backward(ctx, d_out):
        qkv, out, logs = ctx.saved_tensors
        d_qkv = torch.empty_like(qkv)
        ctx.kernels("attention_back", qkv, *ctx.form, out, logs, d_out, d_qkv)
        return None, d_qkv, None, None, None, None, None


class HeadLoss(Function):
    """The weighted sum of the losses, and each one. Gradients are made at once, while the logits
    are in the cache; the logits themselves are never all there."""

    @staticmethod
    def forward(ctx, kernels, hidden, matrix, goals, weights):
        losses = torch.empty_like(weights)
        d_hidden, d_matrix = torch.empty_like(hidden), torch.zeros_like(matrix)
        for at in range(0, len(hidden), LOGIT_ROWS):
            part = slice(at, at + LOGIT_ROWS)
            logits = hidden[part] @ matrix.t()
            kernels("cross_entropy", logits, goals[part], weights[part], *logits.shape,
                    losses[part])
            torch.mm(logits, matrix, out=d_hidden[part])
            d_matrix.addmm_(logits.t(), hidden[part])
        ctx.save_for_backward(d_hidden, d_matrix)
        ctx.mark_non_differentiable(losses)
        return losses @ weights, losses

    @staticmethod
    def backward(ctx, d_sum, _):
        d_hidden, d_matrix = ctx.saved_tensors
        return None, d_hidden * d_sum, d_matrix * d_sum, None, None


class Texts:
    """A batch without its padding: the tokens of all texts in one line, and where each starts."""

    def __init__(self, ids, targets, weights, number):
        kept = number > 0
        number = number[kept]
        changes = np.flatnonzero(np.diff(number)) + 1
        self.starts = torch.from_numpy(np.concatenate([[0], changes, [len(number)]]))
        self.ids, targets, weights = (torch.from_numpy(a[kept]) for a in (ids, targets, weights))
        self.counted = (weights > 0).nonzero()[:, 0]
        self.goals, self.weights = targets[self.counted], weights[self.counted]


def angles(shape):
    """cos and sin for each position. Positions count from a text's start, since only their
    differences matter."""
    return (t[:, :HEAD // 2].contiguous() for t in llama.rotary(shape, "cpu"))


def hidden(kernels, model, texts):
    """The last hidden state of the tokens that count in the loss."""
    s = model.shape
    cosine, sine = angles(s)
    x, delta = F.embedding(texts.ids, model.embed_tokens.weight), None
    for layer in model.layers:
        a, m = layer.self_attn, layer.mlp
        x, y = Norm.apply(kernels, x, delta, layer.input_layernorm.weight, s.eps)
        qkv = Linear.apply(y, a.q_proj.weight, a.k_proj.weight, a.v_proj.weight)
        y = Attention.apply(kernels, qkv, texts.starts, s.heads, s.kv_heads, cosine, sine)
        if layer is model.layers[-1]:  # from here on nothing looks at other tokens
            x, y = (t.index_select(0, texts.counted) for t in (x, y))
        delta = Linear.apply(y, a.o_proj.weight)
        x, y = Norm.apply(kernels, x, delta, layer.post_attention_layernorm.weight, s.eps)
        y = Gated.apply(kernels, Linear.apply(y, m.gate_proj.weight, m.up_proj.weight))
        delta = Linear.apply(y, m.down_proj.weight)
    return Norm.apply(kernels, x, delta, model.norm.weight, s.eps)[1]
