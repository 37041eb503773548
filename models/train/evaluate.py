"""Exact match, refusals, stop rate, perplexity and a draft's acceptance on the held-out chats."""
import argparse
import collections
import json
import math
import pathlib

import torch

import export
import generation
import llama
from tokenizer import Tokenizer

BATCH = 50


def opened(path, tokenizer):
    import train
    model = export.read(path) if path.is_dir() else train.load(path)[0]
    return model.eval()


def examples(folder, limit, tasks):
    for path in sorted(folder.glob("*.jsonl")):
        if not tasks or path.stem in tasks:
            yield path.stem, [json.loads(line) for line in path.read_text().splitlines()[:limit]]


def answered(model, tokenizer, rows, temperature=0):
    """Ids of the answers, in the order of `rows`; similar lengths are computed together."""
    prompts = [tokenizer.prompt(r["messages"]) for r in rows]
    order = sorted(range(len(rows)), key=lambda i: len(prompts[i]))
    out = [None] * len(rows)
    for at in range(0, len(order), BATCH):
        part = order[at:at + BATCH]
        for i, ids in zip(part, generation.answers(model, [prompts[i] for i in part], tokenizer.end,
                                                   temperature=temperature)):
            out[i] = ids
    return prompts, out


def perplexity(model, tokenizer, rows):
    """Over the assistant's tokens with their stop tokens."""
    total = count = 0
    for row in rows:
        ids, weights = tokenizer.chat(row["messages"])
        ids = torch.tensor(ids[:model.shape.positions + 1])
        with torch.no_grad():
            hidden = model.hidden(ids[None, :-1], llama.text_bias(torch.ones_like(ids[None, :-1])))
        loss = -model.logits(hidden[0]).log_softmax(-1).gather(1, ids[1:, None])[:, 0]
        mine = torch.tensor(weights[1:len(ids)]) == 1
        total, count = total + loss[mine].sum().item(), count + int(mine.sum())
    return math.exp(total / count)


def probabilities(model, prompt, answer):
    """For each token of an answer, the distribution it was drawn from."""
    ids = torch.tensor([prompt + answer])[:, :-1]
    with torch.no_grad():
        hidden = model.hidden(ids, llama.text_bias(torch.ones_like(ids)))
    return model.logits(hidden[0, len(prompt) - 1:]).softmax(-1)


def acceptance(model, draft, prompts, answers, greedy):
    """The share of the model's tokens that the draft would have got right.

    Greedy: both have the same likeliest token. Sampled: the sum of the smaller of both
    probabilities, which is the chance that speculative sampling accepts."""
    right = count = 0
    for prompt, answer in zip(prompts, answers):
        p, q = (probabilities(m, prompt, answer) for m in (model, draft))
        right += (p.argmax(-1) == q.argmax(-1)).sum().item() if greedy else \
            torch.minimum(p, q).sum().item()
        count += len(answer)
    return right / count


class Tally:
    def __init__(self, refusals):
        self.refusals = tuple(refusals)
        self.counts = collections.Counter()

    def add(self, row, text, stopped):
        refused = any(text.startswith(r) or f" {r}" in text for r in self.refusals)
        self.counts.update(all=1, exact=text == row["expect"], refused=refused, stopped=stopped)
        return {"exact": text == row["expect"], "refusal": refused,
                "any": stopped and not refused}[row["accept"]]

    def line(self, task, accepted):
        n = self.counts["all"]
        part = {k: f"{100 * self.counts[k] / n:5.1f} %" for k in ("exact", "refused", "stopped")}
        return (f"{task:11} {n:4} chats  accepted {100 * accepted / n:5.1f} %  "
                f"exact {part['exact']}  refused {part['refused']}  stopped {part['stopped']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=pathlib.Path, help="model folder or checkpoint")
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--tokenizer", type=pathlib.Path, required=True, help="tokenizer.json")
    parser.add_argument("--draft", type=pathlib.Path)
    parser.add_argument("--limit", type=int, default=200, help="chats per task")
    parser.add_argument("--tasks", nargs="*")
    parser.add_argument("--wrong", type=int, default=0, help="print so many wrong answers per task")
    args = parser.parse_args()
    tokenizer = Tokenizer(args.tokenizer)
    model = opened(args.model, tokenizer)
    draft = opened(args.draft, tokenizer) if args.draft else None
    refusals = (args.data / "refusals.txt").read_text().splitlines()
    drafted = []
    for task, rows in examples(args.data, args.limit, args.tasks):
        if task == "chat":
            found = perplexity(model, tokenizer, rows)
            print(f"{task:11} {len(rows):4} chats  perplexity {found:.3f}", flush=True)
            continue
        prompts, out = answered(model, tokenizer, rows)
        tally, accepted, shown = Tally(refusals), 0, 0
        for row, ids in zip(rows, out):
            text = tokenizer.decode(ids)
            good = tally.add(row, text, ids[-1] == tokenizer.end)
            accepted += good
            if not good and shown < args.wrong:
                shown += 1
                print(f"    asked  {row['messages'][-1]['content'][-160:]}\n"
                      f"    right  {row['expect']}\n    said   {text}")
        print(tally.line(task, accepted), flush=True)
        if draft:
            drafted += list(zip(prompts, out))[:40]
    if draft:
        prompts, out = zip(*drafted)
        sampled = [generation.answers(model, [p], tokenizer.end, temperature=1)[0] for p in prompts]
        for name, answers in (("greedy", out), ("sampled", sampled)):
            share = acceptance(model, draft, prompts, answers, name == "greedy")
            print(f"draft       {100 * share:.1f} % accepted, {name}", flush=True)


if __name__ == "__main__":
    main()
