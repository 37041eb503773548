"""Batches from a seed and a step: the same text comes again wherever a run is taken up."""
import random

import numpy as np

import chat
import stories
from turns import Scene

# Shares of bare stories, drills, practice and far questions among the texts; the rest are chats.
DOCUMENTS, DRILLS = 0.015, 0.12
# From so many tokens on: practice, far questions.
SHARES = [(0, 0, 0), (22_000_000, 0.3, 0), (50_000_000, 0.5, 0), (71_000_000, 0.3, 0.25)]


def text_ids(tokenizer, rng, length, practice, far):
    """One chat, drill or story of at most `length` tokens."""
    while True:
        draw = rng.random()
        if draw < DOCUMENTS:
            ids = tokenizer.encode(stories.document(Scene(rng))) + [tokenizer.end]
            weights = [1.0] * len(ids)
        elif draw < DOCUMENTS + DRILLS:
            ids, weights = tokenizer.chat(chat.drill(rng,
                                                     rng.randint(3, max(4, min(12, length // 30)))))
        elif draw < DOCUMENTS + DRILLS + practice:
            ids, weights = tokenizer.chat(
                chat.practice(rng, rng.randint(3, max(4, min(16, length // 28)))))
        elif draw < DOCUMENTS + DRILLS + practice + far:
            ids, weights = tokenizer.chat(chat.far_back(rng, rng.randint(100, length)))
        else:
            # Mostly short chats; now and then one that fills the row.
            budget = length if rng.random() < 0.3 else min(length, rng.choice((64, 128, 256)))
            ids, weights = tokenizer.chat(chat.chat(rng, budget))
        if len(ids) <= length:
            return ids, weights


def batch(tokenizer, seed, step, tokens, rows, length):
    """(ids, targets, weights, text numbers), each rows x length; rows hold several whole texts.

    `tokens` were trained on before."""
    rng = random.Random(f"{seed}/{step}")
    practice, far = [shares for start, *shares in SHARES if tokens >= start][-1]
    texts, total = [], 0
    while total < rows * length:
        ids, weights = text_ids(tokenizer, rng, length, practice, far)
        texts.append((ids, weights))
        total += len(ids)
    texts.sort(key=lambda t: -len(t[0]))
    ids = np.full((rows, length + 1), tokenizer.pad, np.int64)
    weights = np.zeros((rows, length + 1), np.float32)
    number = np.zeros((rows, length), np.int64)
    used = [0] * rows
    for n, (words, counts) in enumerate(texts, 1):
        row = next((r for r in range(rows) if used[r] + len(words) <= length), None)
        if row is None:
            continue
        at, end = used[row], used[row] + len(words)
        ids[row, at:end], weights[row, at:end], number[row, at:end] = words, counts, n
        # Nothing predicts a text's first token.
        weights[row, at] = 0
        used[row] = end
    return ids[:, :-1], ids[:, 1:], weights[:, 1:], number
