"""Byte-level BPE: learnt here, written as tokenizer.json, and read back for training."""
import collections
import heapq
import json
import re

SPECIALS = ["<|end|>", "<|system|>", "<|user|>", "<|assistant|>", "<|pad|>"]
# The split that GGUF calls "qwen2": every digit stands alone.
PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
           r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
# The same in Python's words, exact for all that the grammar writes.
SPLIT = re.compile(PATTERN.replace(r"[^\r\n\p{L}\p{N}]", r"(?:[^\r\n\w]|_)")
                   .replace(r"[^\s\p{L}\p{N}]", r"(?:[^\s\w]|_)")
                   .replace(r"\p{L}", r"[^\W\d_]").replace(r"\p{N}", r"\d"))


def byte_names():
    """The printable character that stands for each byte in such vocabularies."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    names, extra = {b: chr(b) for b in plain}, 256
    for b in range(256):
        if b not in names:
            names[b] = chr(extra)
            extra += 1
    return names


NAMES = byte_names()


def spelled(text):
    return [NAMES[b] for b in text.encode()]


def learn(texts, size):
    """The merges that a corpus suggests, most frequent pair first; ties by spelling."""
    counts = collections.Counter(piece for text in texts for piece in SPLIT.findall(text))
    words = [(spelled(piece), count) for piece, count in sorted(counts.items())]
    pairs, where = collections.Counter(), collections.defaultdict(set)
    for i, (word, count) in enumerate(words):
        for pair in zip(word, word[1:]):
            pairs[pair] += count
            where[pair].add(i)
    heap = [(-count, pair) for pair, count in pairs.items()]
    heapq.heapify(heap)
    merges, known = [], set()
    while len(merges) < size - 256 - len(SPECIALS) and heap:
        count, pair = heapq.heappop(heap)
        if pairs[pair] != -count:
            if pairs[pair] > 0:
                heapq.heappush(heap, (-pairs[pair], pair))
            continue
        if pair[0] + pair[1] in known:  # two ways to one token would leave a hole in the ids
            continue
        known.add(pair[0] + pair[1])
        merges.append(pair)
        for i in sorted(where.pop(pair)):
            _merge(words, i, pair, pairs, where, heap)
        pairs[pair] = 0
    return merges


def _merge(words, i, pair, pairs, where, heap):
    word, count = words[i]
    new = merged(word, pair)
    for old in zip(word, word[1:]):
        pairs[old] -= count
    for fresh in zip(new, new[1:]):
        pairs[fresh] += count
        where[fresh].add(i)
        heapq.heappush(heap, (-pairs[fresh], fresh))
    words[i] = (new, count)


def merged(word, pair):
    out, i = [], 0
    while i < len(word):
        if i + 1 < len(word) and (word[i], word[i + 1]) == pair:
            out.append(word[i] + word[i + 1])
            i += 2
        else:
            out.append(word[i])
            i += 1
    return out


def as_json(merges):
    """The file in the format of the `tokenizers` library."""
    tokens = sorted(NAMES.values()) + [a + b for a, b in merges]
    vocab = {token: i for i, token in enumerate(tokens)}
    added = [{"id": len(vocab) + i, "content": s, "single_word": False, "lstrip": False,
              "rstrip": False,
              "normalized": False, "special": True} for i, s in enumerate(SPECIALS)]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False,
             "use_regex": False}
    split = {"type": "Split", "pattern": {"Regex": PATTERN}, "behavior": "Isolated",
             "invert": False}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
            "normalizer": None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, level]},
            "post_processor": level,
            "decoder": level,
            "model": {"type": "BPE", "dropout": None, "unk_token": None,
                      "continuing_subword_prefix": "",
                      "end_of_word_suffix": "", "fuse_unk": False, "byte_fallback": False,
                      "ignore_merges": False, "vocab": vocab,
                      "merges": [f"{a} {b}" for a, b in merges]}}


class Tokenizer:
    def __init__(self, path):
        data = json.load(open(path))
        self.ids = data["model"]["vocab"]
        self.ranks = {tuple(m.split(" ")): i for i, m in enumerate(data["model"]["merges"])}
        self.special = {t["content"]: t["id"] for t in data["added_tokens"]}
        self.end, self.system, self.user, self.assistant, self.pad = (self.special[s]
                                                                      for s in SPECIALS)
        self.size = len(self.ids) + len(self.special)
        self.texts = {i: t for t, i in self.ids.items()}
        self.bytes = {c: b for b, c in NAMES.items()}
        self.cache = {}

    def _piece(self, piece):
        word = spelled(piece)
        while len(word) > 1:
            best = min(zip(word, word[1:]), key=lambda p: self.ranks.get(p, 1 << 30))
            if best not in self.ranks:
                break
            word = merged(word, best)
        return [self.ids[t] for t in word]

    def encode(self, text):
        out = []
        for piece in SPLIT.findall(text):
            ids = self.cache.get(piece)
            if ids is None:
                ids = self._piece(piece)
                if len(self.cache) < 200000:
                    self.cache[piece] = ids
            out += ids
        return out

    def decode(self, ids):
        joined = "".join(self.texts[i] for i in ids if i in self.texts)
        return bytes(self.bytes[c] for c in joined).decode(errors="replace")

    def chat(self, messages, user_weight=0.0):
        """The ids of a chat as the template writes it, and how much each counts as a target."""
        ids, weights = [], []
        for m in messages:
            text = self.encode(m["content"]) + [self.end]
            mine = m["role"] == "assistant"
            ids += [self.special[f"<|{m['role']}|>"]] + text
            weights += [0.0] + [1.0 if mine else user_weight] * len(text)
        return ids, weights

    def prompt(self, messages):
        return self.chat(messages)[0] + [self.assistant]
