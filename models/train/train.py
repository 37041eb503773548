"""Trains Ember or Ember-draft: a stable part that can go on for ever, and a decay from any point.

A run folder holds `stable.pt` (weights, optimizer, step), during a decay `decay.pt`, after it
`final.pt`. Text is made from the seed and the step, so a run that is stopped goes on as if it had
not been."""
import argparse
import dataclasses
import json
import os
import pathlib
import signal
import time

import machine  # before PyTorch, whose threads it tells how to wait
import torch
import torch.nn.functional as F

import corpus
import fused
import llama
import optimizer
from tokenizer import Tokenizer

WARMUP = 100_000  # tokens
# (from so many tokens, rows of a batch, their length); in a decay, from this share of it
BATCHES = [(0, 32, 128), (1_500_000, 16, 256), (8_000_000, 8, 512), (24_000_000, 4, 1024)]
DECAY_BATCHES = [(0, 8, 512), (0.5, 4, 1024)]
RATES = {"ember": (0.012, 0.0025), "draft": (0.012, 0.004)}  # of the matrices, of the rest


def parsed():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=pathlib.Path, help="run folder; taken up where it stopped")
    parser.add_argument("--model", choices=llama.SHAPES, default="ember")
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--tokens", type=float, default=40,
                        help="length of the stable part, in millions")
    parser.add_argument("--decay", type=float, default=0,
                        help="instead: decay over so many million tokens")
    parser.add_argument("--rate", type=float, default=1,
                        help="multiplies the learning rates: a second, smaller decay polishes")
    parser.add_argument("--teacher", type=pathlib.Path, help="a checkpoint of Ember to learn from")
    parser.add_argument("--save-minutes", type=float, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--even-if-slow", action="store_true",
                        help="start on a loaded machine, too")
    return parser.parse_args()


def batch_size(at, table):
    """Rows and their length."""
    return [(rows, length) for start, rows, length in table if at >= start][-1]


def factor(done, wanted, decaying):
    """What the learning rates are multiplied with after so many tokens."""
    return 1 - done / wanted if decaying else min(1, (done + 2048) / WARMUP)


def counted(data, device, kernels):
    """How to compute a model's hidden states where the loss counts, their goals and weights."""
    if kernels:
        texts = fused.Texts(*data)
        return lambda model: fused.hidden(kernels, model, texts), texts.goals, texts.weights
    ids, targets, weights, number = (torch.from_numpy(a).to(device) for a in data)
    bias, there = llama.text_bias(number), weights > 0
    return lambda model: model.hidden(ids, bias)[there], targets[there], weights[there]


def losses(model, teacher, data, device, kernels):
    """The weighted loss of a batch, and the loss of the assistant's tokens alone."""
    hidden, goal, weight = counted(data, device, kernels)
    if kernels and not teacher:
        total, loss = fused.HeadLoss.apply(kernels, hidden(model), model.embed_tokens.weight,
                                           goal, weight / weight.sum())
        return total, loss[weight == 1].mean().item()
    logits = model.logits(hidden(model))
    loss = F.cross_entropy(logits, goal, reduction="none")
    answers = loss[weight == 1].mean().item()
    if teacher:
        with torch.no_grad():
            wanted = teacher.logits(hidden(teacher)).softmax(-1)
        # The teacher's whole distribution says more than the one token of the text.
        loss = 0.2 * loss + 0.8 * -(wanted * logits.log_softmax(-1)).sum(-1)
    return (loss * weight).sum() / weight.sum(), answers


def load(path, device="cpu"):
    saved = torch.load(path, map_location=device)
    model = llama.Llama(llama.Shape(**saved["shape"])).to(device)
    model.load_state_dict(saved["model"])
    return model, saved


@dataclasses.dataclass
class At:
    """Where a run is: steps and tokens so far, and the tokens before this part of it."""
    step: int = 0
    tokens: int = 0
    first: int = 0


def save(path, model, opt, at):
    part = path.with_suffix(".part")
    torch.save(dict(model=model.state_dict(), optimizer=opt.state_dict(), at=vars(at),
                    shape=vars(model.shape)), part)
    os.replace(part, path)


def begun(args, device):
    """The model, its optimizer and where the run is."""
    args.run.mkdir(parents=True, exist_ok=True)
    stable, decay = args.run / "stable.pt", args.run / "decay.pt"
    source = decay if args.decay and decay.exists() else stable
    at = At()
    if source.exists():
        model, saved = load(source, device)
        at = At(**saved["at"])
    elif args.decay:
        raise SystemExit(f"train: {stable} is missing; run the stable part first")
    else:
        torch.manual_seed(args.seed)
        shape = llama.Shape(vocab=Tokenizer(args.tokenizer).size, **llama.SHAPES[args.model])
        model = llama.Llama(shape).to(device)
    opt = optimizer.Both(model, *RATES[args.model])
    if source.exists():
        opt.load_state_dict(saved["optimizer"])
    if args.decay and source == stable:
        at.first = at.tokens
    return model, opt, at


class Stop:
    """Set by a first Ctrl-C or a kill, so that the step is finished and saved."""

    def __init__(self):
        self.asked = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.ask)

    def ask(self, number, frame):
        if self.asked:
            raise SystemExit(1)
        self.asked = True


class Progress:
    """A line every few seconds: step, tokens, loss, speed, time left."""

    def __init__(self, log, at, last):
        self.log, self.begin, self.last = log, at.tokens, last
        self.start = self.told = time.time()
        self.loss = None

    def step(self, at, answers, length):
        self.loss = answers if self.loss is None else 0.97 * self.loss + 0.03 * answers
        if time.time() - self.told < 10 and at.tokens < self.last:
            return
        self.told = time.time()
        speed = (at.tokens - self.begin) / (self.told - self.start)
        left = max(0, self.last - at.tokens) / speed
        print(f"step {at.step}  {at.tokens / 1e6:.2f} of {self.last / 1e6:.2f} M tokens  "
              f"length {length}  loss {self.loss:.4f}  {speed:.0f} tok/s  {left / 60:.0f} min left",
              flush=True)
        self.log.write(json.dumps(dict(step=at.step, tokens=at.tokens, loss=round(self.loss, 5),
                                       length=length, speed=round(speed))) + "\n")
        self.log.flush()


def one_step(model, teacher, opt, data, device, kernels, rate):
    loss, answers = losses(model, teacher, data, device, kernels)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step(rate)
    return answers


def trained(args, device):
    """Runs the part to its end and tells whether it got there."""
    tokenizer = Tokenizer(args.tokenizer)
    model, opt, at = begun(args, device)
    count = sum(p.numel() for p in model.parameters())
    print(f"{args.model}: {count / 1e6:.2f} M parameters, step {at.step}", flush=True)
    teacher = load(args.teacher, device)[0] if args.teacher else None
    kernels = fused.built(args.run, model.shape) if device == "cpu" else None
    wanted = int((args.decay or args.tokens) * 1e6)
    target = args.run / ("decay.pt" if args.decay else "stable.pt")
    stop, saved_at = Stop(), time.time()
    with open(args.run / "log.jsonl", "a") as log:
        progress = Progress(log, at, at.first + wanted)
        while at.tokens < at.first + wanted and not stop.asked:
            done = at.tokens - at.first
            rows, length = batch_size(done / wanted, DECAY_BATCHES) if args.decay else \
                batch_size(at.tokens, BATCHES)
            data = corpus.batch(tokenizer, args.seed, at.step, at.tokens, rows, length)
            answers = one_step(model, teacher, opt, data, device, kernels,
                               args.rate * factor(done, wanted, args.decay))
            at.step, at.tokens = at.step + 1, at.tokens + rows * length
            progress.step(at, answers, length)
            if time.time() - saved_at > args.save_minutes * 60:
                save(target, model, opt, at)
                saved_at = time.time()
    save(target, model, opt, at)
    return at.tokens >= at.first + wanted


def main():
    args = parsed()
    if (args.run / "final.pt").exists() and args.decay:
        raise SystemExit(f"train: {args.run / 'final.pt'} exists; move it away to decay again")
    if not trained(args, machine.device(args.even_if_slow)):
        raise SystemExit("train: stopped; the same command goes on from here")
    if args.decay:
        os.replace(args.run / "decay.pt", args.run / "final.pt")


if __name__ == "__main__":
    main()
