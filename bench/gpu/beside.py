#!/usr/bin/env python3
"""Lines of model_bench beside those of its peers: beside.py OURS THEIRS

Ours in Q8_0 stand beside theirs in bfloat16 as well: they have no other, and the words say so.
"""

import json
import sys

SHARES = {"model_decode": "of_copy", "model_prefill": "of_peak"}


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file if line.startswith("{")]
    return [line for line in lines if line["bench"] in SHARES]


def size_of(line):
    return line.get("streams") or line["tokens"]


def key_of(line):
    return line["bench"], line["model"], size_of(line)


def best_of(peers):
    """The fastest peer of each figure."""
    best = {}
    for line in peers:
        key = key_of(line)
        if key not in best or line["ms"] < best[key]["ms"]:
            best[key] = line
    return best


def row_of(line, peer):
    what = "streams" if "streams" in line else "tokens"
    words = [line["model"], line["type"], line["arithmetic"], f"{size_of(line)} {what}"]
    ours = f"{line['tokens_per_s']:.1f} tokens/s, share {line[SHARES[line['bench']]]:.2f}"
    if not line.get("steady", True):
        ours += " (noisy)"
    if peer is None:
        return words + [ours, "no peer", ""]
    theirs = f"{peer['by']} {peer['type']} {peer['tokens_per_s']:.1f}, {peer[SHARES[peer['bench']]]:.2f}"
    return words + [ours, theirs, f"{line['tokens_per_s'] / peer['tokens_per_s']:.2f} times as fast"]


def table_of(ours, theirs):
    best = best_of(theirs)
    rows = [row_of(line, best.get(key_of(line))) for line in ours]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
    return ["  ".join(word.ljust(width) for word, width in zip(row, widths)).rstrip() for row in rows]


def main(arguments):
    if len(arguments) != 2:
        print("usage: beside.py OURS THEIRS, files of lines of JSON", file=sys.stderr)
        return 2
    print("\n".join(table_of(lines_of(arguments[0]), lines_of(arguments[1]))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
