"""Telling and asking: facts of the conversation, corrections, and what was never told."""
import dataclasses
import re

import names
from fact_kinds import MINE, THEIRS
from grammar import cap, is_held, joined, say
from noise import typed
from turns import Turn

FIX = ["actually, <t>", "no, <t>", "sorry, <t>", "I was wrong, <t>", "correction: <t>", "wait, <t>",
       "I made a mistake. <T>", "no, that was wrong, <t>", "oh, I meant that <t>",
       "not any more: now <t>"]
ACKS_MANY = "OK, I will remember that."


@dataclasses.dataclass
class Fact:
    kind: dict
    slots: dict

    def say(self, rng, template, **more):
        return re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", say(rng, template,
                                                            **{**self.slots, **more}))

    def full(self, rng):
        return cap(self.say(rng, self.kind["full"])) + "."

    @property
    def person(self):
        return self.slots["p"]


def _weighted(rng, kinds):
    keys = list(kinds)
    key = rng.choices(keys, [kinds[k]["weight"] for k in keys])[0]
    return key, kinds[key]


def make(scene, person=None, key=None, noun=None):
    """A new fact about the user, or about `person`, with the key that a correction would share."""
    kinds = THEIRS if person else MINE
    key, kind = (key, kinds[key]) if key else _weighted(scene.rng, kinds)
    noun = noun or scene.rng.choice(kind["nouns"])
    value = kind["value"](scene.rng, scene.held, noun)
    return (person, key, noun), Fact(kind, {"n": noun, "p": person, "v": value})


def again(scene, about):
    """The same thing with another value."""
    old = scene.facts[about].slots["v"]
    while True:
        _, fact = make(scene, *about)
        if fact.slots["v"].lower() != old.lower():
            return fact


def _form(scene, fact, part):
    """A phrasing; the evaluation keeps some phrasings of each noun for itself, where there are others
    from which they can be learnt."""
    forms = fact.kind[part]
    if len(fact.kind["nouns"]) == 1:
        return scene.rng.choice(forms)
    fits = [f for f in forms if is_held(f, fact.slots["n"]) == scene.held]
    return scene.rng.choice(fits or forms)


def told(scene, fact):
    return fact.say(scene.rng, _form(scene, fact, "tell"))


def _clash(facts, about, fact):
    """Two facts that a question could not tell apart."""
    for (person, key, _), other in facts.items():
        same_value = other.slots["v"].lower() == fact.slots["v"].lower()
        if about[0] == person and about[1] in ("time", "plan") and key in ("time", "plan") and \
                other.slots["n"] == fact.slots["n"]:
            return True
        if same_value and about[1] == key:
            return True
        if about[0] == person is not None and {about[1], key} == {"job", "spot"}:
            return True
    return False


def fresh(scene, person=None, key=None, noun=None):
    """A fact that the chat does not have yet, kept in it; None when none came up."""
    for _ in range(6):
        about, fact = make(scene, person, key, noun)
        if about not in scene.facts and not _clash(scene.facts, about, fact):
            scene.facts[about] = fact
            return fact
    return None


def ack(scene, facts):
    if len(facts) > 1:
        return ACKS_MANY
    fact = facts[0]
    if "ack" in fact.kind:
        return fact.say(scene.rng, fact.kind["ack"])
    return "OK, " + fact.say(scene.rng, fact.kind["full"]) + "."


def _values(facts):
    return [v for f in facts for v in f.slots.values() if v]


def spoken(scene, facts):
    """Facts as one message: a sentence each, or joined by commas and "and"."""
    texts = [told(scene, f) for f in facts]
    joint = joined(texts) if scene.chance(0.4) else ". ".join(cap(t) for t in texts)
    return typed(scene.rng, joint, question=False, keep=_values(facts), calm=scene.chance(0.7))


def tell(scene, facts):
    return Turn("recall", spoken(scene, facts), ack(scene, facts), "OK.")


def ask(scene, about):
    """A question for a fact that was told."""
    fact = scene.facts[about]
    user = typed(scene.rng, fact.say(scene.rng, _form(scene, fact, "ask")), keep=_values([fact]))
    return Turn("recall", user, fact.full(scene.rng), cap(fact.slots["v"]) + ".")


def missing(scene):
    """A question for something that was never told."""
    if scene.chance(0.07):
        name = names.person(scene.rng, scene.held)
        if all(name not in f.slots.values() for f in scene.facts.values()):
            user = scene(f"who is {name}", f"do you know {name}", f"who's {name}",
                         f"do you know who {name} is")
            return Turn("missing", typed(scene.rng, user, keep=[name]),
                        f"You haven't told me who {name} is.",
                        refusal=True)
    for _ in range(20):
        known = [p for p, _, _ in scene.facts if p]
        person = None
        if scene.chance(0.35):
            person = scene.rng.choice(known) if known and scene.chance(0.6) else \
                names.person(scene.rng, scene.held)
        about, fact = make(scene, person)
        if about in scene.facts or (about[1] in ("time", "plan") and any(
                k[2] == about[2] for k in scene.facts)):
            continue
        if person and about[1] in ("job", "spot") and any(k[0] == person for k in scene.facts):
            continue
        form = _form(scene, fact, "ask")
        user = typed(scene.rng, fact.say(scene.rng, form), keep=_values([fact]))
        return Turn("missing", user, fact.say(scene.rng, fact.kind["unknown"]), refusal=True)
    return None


def correct(scene, about):
    fact = again(scene, about)
    scene.facts[about] = fact
    text = told(scene, fact)
    while text.startswith(("hi,", "hello,")):
        text = told(scene, fact)
    user = typed(scene.rng, say(scene.rng, scene.rng.choice(FIX), t=text, T=cap(text)),
                 question=False,
                 keep=_values([fact]), calm=True)
    return Turn("recall", user, "OK, " + fact.say(scene.rng, fact.kind["full"]) + ".", "OK.")


def summary(scene):
    mine = [f for (p, _, _), f in scene.facts.items() if p is None]
    user = typed(scene.rng, scene(
        "what do you know about me", "what have I told you about me", "what did I tell you",
        "what do you remember about me", "tell me what you know about me",
        "sum up what I told you"))
    if not mine:
        return Turn("missing", user, "You haven't told me anything about you.", refusal=True)
    if len(mine) > 4:
        return None
    return Turn("recall", user, " ".join(f.full(scene.rng) for f in mine))


def told_and_asked(scene, facts):
    """Facts and a question for one of them in one message."""
    turn = ask(scene, scene.rng.choice([a for a, f in scene.facts.items() if f in facts]))
    text = spoken(scene, facts)
    text += "" if text[-1] in ".!" else "."
    return dataclasses.replace(turn, user=text + " " + cap(turn.user))


def passage(scene, sentences):
    """Facts about several persons, as a text that was pasted in."""
    people = names.people(scene.rng, scene.held, max(2, min(6, sentences // 2)))
    facts = []
    for _ in range(sentences):
        fact = fresh(scene, scene.rng.choice(people))
        if fact:
            facts.append(fact)
    text = ". ".join(cap(told(scene, f)) for f in facts) + "."
    head = scene("Here is a text: ", "Read this: ", "", "", "Please read: ", "Text: ", "Listen. ",
                 "I will tell you about my friends. ", "Remember this: ")
    if scene.chance(0.25):
        turn = ask(scene, scene.rng.choice([a for a, f in scene.facts.items() if f in facts]))
        return dataclasses.replace(turn, user=f"{head}{text} {cap(turn.user)}")
    return Turn("recall", head + text, ACKS_MANY, "OK.")
