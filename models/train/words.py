"""Questions about words and everyday things: definitions, opposites, plurals, who does what."""
from grammar import article, cap, is_held, say
from noise import typed
from tables import (ABILITIES, BABIES, COLOURS_OF, DOES, EATS, LIVES, NUMBERS_OF, OPPOSITES, PAST,
                    PLURALS, SIZES, SOUNDS, USES, WORDS)
from turns import Turn

DEFINE = ["what is <w>", "what is <w>", "what is <w>", "what's <w>", "define <n>",
          "what does <n> mean",
          "explain <w>", "explain the word <n>", "what does the word <n> mean",
          "tell me what <w> is",
          "do you know what <w> is", "can you explain <w>", "what is the meaning of <n>",
          "can you tell me what <w> is", "what is <w> exactly", "what do you know about <w>",
          "tell me about <w>", "describe <w>", "I don't know what <w> is", "what is meant by <n>",
          "give me a definition of <n>", "what exactly is <w>", "meaning of <n>", "define <w>",
          "could you explain what <w> is", "what might <w> be", "what kind of thing is <w>",
          "how would you explain <w>", "please explain <w>", "<n>", "what are <p>", "who is <w>"]


def named(word):
    """The word as it stands in a sentence, and its verb."""
    if word.form == "a":
        return article(word.text), "is"
    if word.form == "^":
        return "the " + word.text, "is"
    return word.text, "are" if word.form == "=" else "is"


def meaning(word):
    name, verb = named(word)
    return f"{cap(name)} {verb} {word.meaning}."


def plural(noun):
    for one, many in PLURALS:
        if noun == one:
            return many
    if noun.endswith(("s", "x", "ch", "sh")):
        return noun + "es"
    return noun[:-1] + "ies" if noun.endswith("y") and noun[-2] not in "aeiou" else noun + "s"


def _suits(form, word):
    if form == "who is <w>":
        return word.kind in ("job", "person", "family member")
    return form != "what are <p>" or (word.form == "a" and bool(word.kind))


# What nothing else says of a word: its plural, the word alone. Without them in training, no evaluation.
SINGULAR_FORMS = ("what are <p>", "<n>", "who is <w>")


def asked_for(scene, word):
    """One of the phrasings that fit the word; a tenth of the others is the evaluation's, by word."""
    fits = [f for f in DEFINE if _suits(f, word)
            and (f not in SINGULAR_FORMS and is_held(f, word.text)) == scene.held]
    if not fits:
        return None
    form = scene.rng.choice(fits)
    name, verb = named(word)
    if verb == "are":
        form = form.replace("is <w>", "are <w>").replace("<w> is", "<w> are").replace(
            "might <w> be", "are <w>")
    return say(scene.rng, form, w=name, n=word.text, p=plural(word.text))


def definition(scene):
    asked = None
    while not asked:
        word = scene.rng.choice(WORDS)
        asked = asked_for(scene, word)
    return Turn("definition", typed(scene.rng, asked), meaning(word))


def reverse_definition(scene):
    word = scene.rng.choice([w for w in WORDS if w.kind])
    while not word.kind or is_held("reverse", word.text) != scene.held:
        word = scene.rng.choice(WORDS)
    ask = scene("what do you call <m>", "what is <m> called", "which word means <m>",
                "what is the word for <m>", "I am looking for the word for <m>", "name <m>",
                "how do you call <m>", "which thing is this: <m>")
    name, _ = named(word)
    user = typed(scene.rng, say(scene.rng, ask, m=word.meaning), keep=[word.meaning])
    return Turn("definition", user, f"That is {name}.", f"{cap(word.text)}.")


def kind_of(scene):
    """Membership: is a hammer an animal?"""
    while True:
        word = scene.rng.choice(WORDS)
        if word.kind and word.form == "a" and word.kind.split()[-1] not in ("thing", "part",
                                                                            "house"):
            break
    kinds = ["animal", "tool", "fruit", "vehicle", "plant", "building", "job", "food", "game",
             "piece of furniture", "place", "insect", "instrument", "vegetable", "person",
             "material",
             "piece of clothing", "drink", "room", "toy"]
    asked = word.kind if scene.chance(0.5) else scene.rng.choice(kinds)
    if asked != word.kind and (asked in word.kind or {asked, word.kind} <= {"insect", "animal"}
                               or {"place", "building", "food", "job",
                                   "person"} & {asked, word.kind}):
        asked = word.kind
    name, form = article(word.text), "food" if asked == "food" else article(asked)
    right = asked == word.kind
    actual = "food" if word.kind == "food" else article(word.kind)
    user = scene(f"is {name} {form}", f"is {name} {form} or not", f"would you call {name} {form}")
    answer = f"{'Yes' if right else 'No'}, {name} is {actual}."
    return Turn("facts", typed(scene.rng, user), answer, "Yes." if right else "No.")


def _pick(scene, table, task="facts"):
    while True:
        row = scene.rng.choice(table)
        if len(table) < 40 or is_held(task, row[0]) == scene.held or scene.chance(0.9):
            return row


def opposite(scene):
    a, b = _pick(scene, OPPOSITES)
    ask = scene("what is the opposite of <a>", "what's the opposite of <a>", "opposite of <a>",
                "what is the reverse of <a>", "tell me the opposite of <a>",
                "the opposite of <a> is",
                "give me the opposite of <a>", "which word is the opposite of <a>",
                "what word means the opposite of <a>", "what is the contrary of <a>",
                "do you know the opposite of <a>", "if something is not <a>, what is it")
    return Turn("facts", typed(scene.rng, say(scene.rng, ask, a=a), keep=[a]),
                f"The opposite of {a} is {b}.", cap(f"{b}."))


def plural_of(scene):
    if scene.chance(0.5):
        one, many = _pick(scene, PLURALS)
    else:
        one = scene.rng.choice([w.text for w in WORDS if w.form == "a" and " " not in w.text])
        many = plural(one)
    ask = scene("what is the plural of <a>", "plural of <a>", "what's the plural of <a>",
                "what do you call more than one <a>", "how do you say two of <a>",
                "one <a>, two what",
                "tell me the plural of <a>", "give me the plural of <a>",
                "what is more than one <a>")
    return Turn("facts", typed(scene.rng, say(scene.rng, ask, a=one), keep=[one]),
                f"The plural of {one} is {many}.", cap(f"{many}."))


def past_of(scene):
    now, past = _pick(scene, PAST)
    ask = scene("what is the past of <a>", "what is the past tense of <a>", "past tense of <a>",
                "what's the past form of <a>", "how do you say <a> in the past", "past of <a>",
                "give me the past tense of <a>", "tell me the past of <a>")
    return Turn("facts", typed(scene.rng, say(scene.rng, ask, a=now), keep=[now]),
                f"The past of {now} is {past}.", cap(f"{past}."))


def colour_of(scene):
    thing, colour = scene.rng.choice(COLOURS_OF)
    ask = scene("what colour is <a>", "what color is <a>", "which colour does <a> have",
                "what is the colour of <a>", "tell me the colour of <a>",
                "what colour does <a> have")
    if scene.chance(0.15):
        other = colour if scene.chance(0.5) else scene("red", "blue", "green", "yellow", "black")
        right = other == colour
        return Turn("facts", typed(scene.rng, f"is {thing} {other}"),
                    f"{'Yes' if right else 'No'}, {thing} is {colour}.", "Yes." if right else "No.")
    return Turn("facts", typed(scene.rng, say(scene.rng, ask, a=thing)),
                f"{cap(thing)} is {colour}.", cap(f"{colour}."))


def how_many(scene):
    rest, answer = scene.rng.choice(NUMBERS_OF)
    user = scene("how many <r>", "how many <r>", "do you know how many <r>", "tell me how many <r>")
    number = next((w for w in answer.split() if w.isdigit()), "no")
    return Turn("facts", typed(scene.rng, say(scene.rng, user, r=rest)), answer, cap(f"{number}."))


def sound_or_baby(scene):
    if scene.chance(0.5):
        animal, sound = scene.rng.choice(SOUNDS)
        ask = scene("what does <a> say", "what sound does <a> make", "what noise does <a> make",
                    "how does <a> sound", "which sound does <a> make")
        return Turn("facts", typed(scene.rng, say(scene.rng, ask, a=article(animal))),
                    f"{cap(article(animal))} says {sound}.", cap(f"{sound}."))
    animal, baby = scene.rng.choice(BABIES)
    ask = scene("what is a baby <a> called", "what do you call a baby <a>",
                "how is a young <a> called",
                "what is a young <a> called", "what's a baby <a>", "what is the name of a baby <a>",
                "a baby <a> is called")
    return Turn("facts", typed(scene.rng, say(scene.rng, ask, a=animal)),
                f"A young {animal} is called a {baby}.", cap(f"{baby}."))


def who_does(scene):
    who, what = scene.rng.choice(DOES)
    if scene.chance(0.5):
        user = typed(scene.rng, scene(f"who {what}", f"tell me who {what}",
                                      f"do you know who {what}"))
    else:
        user = typed(scene.rng, scene(f"what does {who} do", f"what is the work of {who}"))
        return Turn("facts", user, f"{cap(who)} {what}.")
    return Turn("facts", user, f"{cap(who)} {what}.", f"{cap(who)}.")


def used_for(scene):
    what, tool = scene.rng.choice(USES)
    ask = scene("what do I need to <w>", "what do you need to <w>", "what do you use to <w>",
                "what do people use to <w>", "with what do you <w>", "which thing helps me to <w>",
                "I want to <w>, what do I need", "what should I use to <w>",
                "what can I use to <w>")
    return Turn("facts", typed(scene.rng, say(scene.rng, ask, w=what)),
                f"You need {tool} to {what}.", cap(f"{tool}."))


def ability(scene):
    who, can, cannot = scene.rng.choice(ABILITIES)
    yes = scene.chance(0.5)
    user = scene(f"can {who} {can if yes else cannot}",
                 f"is {who} able to {can if yes else cannot}")
    answer = f"Yes, {who} can {can}." if yes else f"No, {who} cannot {cannot}."
    return Turn("facts", typed(scene.rng, user), answer, "Yes." if yes else "No.")


def habit(scene):
    if scene.chance(0.5):
        who, where = scene.rng.choice(LIVES)
        ask = scene("where does <w> live", "where do you find <w>", "where can I find <w>",
                    "what is the home of <w>")
        return Turn("facts", typed(scene.rng, say(scene.rng, ask, w=who)),
                    f"{cap(who)} lives {where}.",
                    cap(f"{where}."))
    who, food = scene.rng.choice(EATS)
    ask = scene("what does <w> eat", "what do you feed <w>", "what is the food of <w>",
                "what does <w> like to eat")
    return Turn("facts", typed(scene.rng, say(scene.rng, ask, w=who)), f"{cap(who)} eats {food}.",
                cap(f"{food}."))


def size(scene):
    a, b = sorted(scene.rng.sample(range(len(SIZES)), 2))
    small, big = article(SIZES[a]), article(SIZES[b])
    first, second = (small, big) if scene.chance(0.5) else (big, small)
    kind = scene.rng.randrange(3)
    if kind == 0:
        user = scene(f"which is bigger, {first} or {second}",
                     f"what is bigger, {first} or {second}",
                     f"which animal is larger, {first} or {second}")
        answer, short = f"{cap(big)} is bigger than {small}.", cap(f"{big}.")
    elif kind == 1:
        user = scene(f"which is smaller, {first} or {second}",
                     f"what is smaller, {first} or {second}")
        answer, short = f"{cap(small)} is smaller than {big}.", cap(f"{small}.")
    else:
        user, yes = f"is {first} bigger than {second}", first == big
        word, more = ("Yes", "bigger") if yes else ("No", "smaller")
        answer = f"{word}, {first} is {more} than {second}."
        short = "Yes." if yes else "No."
    return Turn("facts", typed(scene.rng, user), answer, short)


FACTS = [(opposite, 16), (plural_of, 10), (past_of, 8), (colour_of, 8), (how_many, 8),
         (sound_or_baby, 8), (who_does, 8), (used_for, 9), (ability, 8), (habit, 9), (size, 6),
         (kind_of, 10)]


def fact(scene):
    return scene.rng.choices([f for f, _ in FACTS], [w for _, w in FACTS])[0](scene)
