"""Writes the held-out evaluation: other seeds, names, sums and phrasings than the training sees."""
import argparse
import json
import pathlib
import random

import chat
import lists
import recall
import stories
import styles
import sums
import talk
import words
from turns import Scene

INSIDE = [sums.drill, words.definition, words.fact, lists.listing, talk.talk,
          words.reverse_definition,
          stories.story]


def _before(scene, count):
    """Turns that come before the one that is examined."""
    return [chat.any_task(scene) for _ in range(count)]


def _line(scene):
    return styles.neutral(scene).line if scene.chance(0.25) else None


def _examined(scene, turns, last, line, accept, style=None):
    pairs = list(chat.finished(turns + [last], style))
    messages = chat.messages(line, pairs)
    return dict(messages=messages[:-1], expect=messages[-1]["content"], accept=accept)


def simple(maker, accept="exact"):
    """An examined turn of one kind after up to three others."""
    def make(rng):
        scene = Scene(rng, True)
        turns = _before(scene, scene(0, 0, 0, 1, 2, 3))
        return _examined(scene, turns, maker(scene), _line(scene), accept)
    return make


def recalled(rng):
    """Facts, other turns, and a question; now and then very far back, or after a correction."""
    scene = Scene(rng, True)
    scene.turns = turns = chat._fact_turns(scene, 200)
    while not scene.facts:
        turns += chat._fact_turns(scene, 200)
    about = rng.choice(list(scene.facts))
    if scene.chance(0.15) and about[1] != "owns":
        turns.append(recall.correct(scene, about))
    turns += _before(scene, scene(0, 1, 2, 3, 4, 6, 12, 20))
    return _examined(scene, turns, recall.ask(scene, about), _line(scene), "exact")


def missed(rng):
    scene = Scene(rng, True)
    turns = chat._fact_turns(scene, 200) if scene.chance(0.7) else []
    last = None
    while last is None:
        last = recall.missing(scene)
    return _examined(scene, turns, last, _line(scene), "refusal")


def styled(rng):
    scene = Scene(rng, True)
    style = styles.drawn(scene)
    turns = []
    if scene.chance(0.3):
        turns = [recall.tell(scene, [recall.fresh(scene)])]
    last = recall.ask(scene, rng.choice(list(scene.facts))) if turns else chat.any_task(scene)
    if style.key == "called" and scene.chance(0.5):
        last = talk.naming(scene)
    return _examined(scene, turns, last, style.line, "exact", style)


def free(rng):
    """A whole chat, for perplexity."""
    return dict(messages=chat.chat(rng, 300, True), expect=None, accept="any")


TASKS = {
    "recall": recalled, "missing": missed, "definition": simple(words.definition),
    "arithmetic": simple(sums.drill), "list": simple(lists.listing), "facts": simple(words.fact),
    "system": styled, "outside": simple(talk.outside, "refusal"),
    "inside": simple(lambda s: s.rng.choice(INSIDE)(s), "any"),
    "story": simple(stories.story, "any"), "chat": free}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=200)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    (args.folder / "refusals.txt").write_text("\n".join(talk.REFUSALS) + "\n")
    for task, make in TASKS.items():
        lines = [json.dumps(dict(task=task, **make(random.Random(f"held out/{task}/{i}"))),
                            ensure_ascii=False)
                 for i in range(args.count)]
        (args.folder / f"{task}.jsonl").write_text("\n".join(lines) + "\n")
    print(f"wrote {len(TASKS)} tasks of {args.count} to {args.folder}")


if __name__ == "__main__":
    main()
