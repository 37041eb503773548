"""Arithmetic: + and - to 99, times and divided by to 10, small stories about numbers."""
from grammar import is_held, say
from noise import typed
from turns import Turn
import names

ONES = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
fifteen sixteen seventeen eighteen nineteen""".split()
TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety".split()

ASK = ["what is <e>", "what's <e>", "how much is <e>", "calculate <e>", "<e>", "compute <e>",
       "tell me <e>", "<e> is", "what does <e> make", "what do you get for <e>", "can you do <e>",
       "solve <e>", "what is the result of <e>", "I need <e>", "work out <e>", "do you know <e>",
       "add it up: <e>", "<e> = ", "<e>=", "how many is <e>", "give me <e>"]
SIGNS = {"plus": ["+", " + ", " + ", " plus ", " plus ", " and "],
         "minus": ["-", " - ", " - ", " minus ", " minus ", " less "],
         "times": ["*", " * ", " x ", "x", " times ", " times ", " multiplied by ", " \u00d7 "],
         "divided by": ["/", " / ", " divided by ", " divided by ", ":", " \u00f7 "]}


def in_words(n):
    if n == 100:
        return "one hundred"
    if n < 20:
        return ONES[n]
    return TENS[n // 10] + ("-" + ONES[n % 10] if n % 10 else "")


def result(op, a, b):
    return {"plus": a + b, "minus": a - b, "times": a * b, "divided by": a // b if b else 0}[op]


def operands(rng, op):
    if op == "times":
        return rng.randint(0, 10), rng.randint(0, 10)
    if op == "divided by":
        b = rng.randint(1, 10)
        return b * rng.randint(0, 10), b
    low = 0 if rng.random() < 0.3 else 10
    a, b = rng.randint(0, 99), rng.randint(low, 99)
    if op == "minus" and a < b and rng.random() < 0.8:
        a, b = b, a
    return a, b


def drawn(scene):
    """An operation and its numbers. Sums of + and - that the evaluation keeps are never trained."""
    while True:
        op = scene("plus", "plus", "plus", "minus", "minus", "minus", "times", "times",
                   "divided by")
        a, b = operands(scene.rng, op)
        small = op in ("times", "divided by") or (a < 10 and b < 10)
        if small or is_held(op, a, b) == scene.held:
            return op, a, b


def plain(scene):
    op, a, b = drawn(scene)
    sign = scene.rng.choice(SIGNS[op])
    said = [str(a), str(b)]
    if sign.strip().isalpha() or " " in sign.strip():
        if scene.chance(0.25):
            said = [in_words(a), in_words(b)]
    ask = scene.rng.choice(ASK)
    if op != "plus" and ask.startswith("add"):
        ask = ASK[0]
    if sign == " and ":
        ask = scene("what is <e>", "how much is <e>", "what do <e> make", "add <e>")
    user = say(scene.rng, ask, e=sign.join(said))
    user = user if ask.endswith(("=", "= ")) else typed(scene.rng, user, keep=said)
    value = result(op, a, b)
    return Turn("arithmetic", user.strip(), f"{a} {op} {b} is {value}.", f"{value}.")


def verbal(scene):
    """Other ways to name an operation."""
    op, a, b = drawn(scene)
    forms = {"plus": ["add <a> and <b>", "what is the sum of <a> and <b>", "add <b> to <a>"],
             "minus": ["subtract <b> from <a>", "take <b> away from <a>",
                       "what is the difference between <a> and <b>"],
             "times": ["multiply <a> by <b>", "what is the product of <a> and <b>"],
             "divided by": ["divide <a> by <b>", "how often does <b> go into <a>"]}[op]
    form = scene.rng.choice(forms)
    if op == "minus" and a < b:
        form = forms[0]
    user = typed(scene.rng, say(scene.rng, form, a=a, b=b), keep=(a, b))
    value = result(op, a, b)
    return Turn("arithmetic", user, f"{a} {op} {b} is {value}.", f"{value}.")


THINGS = """apples pears nuts books coins cards balls sweets eggs pens stones flowers cakes toys
stamps shells plums marbles biscuits pencils""".split()
MORE = ["<p> has <a> <t> and gets <b> more", "<p> has <a> <t>. <p> buys <b> more",
        "<p> has <a> <t> and finds <b> more", "There are <a> <t> in a box. <p> puts in <b> more",
        "<p> picks <a> <t> in the morning and <b> <t> in the evening"]
LESS = ["<p> has <a> <t> and gives away <b>", "<p> has <a> <t> and loses <b>",
        "<p> has <a> <t>. <p> eats <b>", "<p> had <a> <t> and sold <b>",
        "There are <a> <t> in a box. <p> takes out <b>"]
GROUPS = ["<p> has <a> boxes with <b> <t> in each box", "There are <a> bags with <b> <t> in each",
          "<p> buys <a> bags. There are <b> <t> in each bag"]


def word_problem(scene):
    kind = scene("more", "less", "groups")
    a, b = scene.rng.randint(2, 20), scene.rng.randint(1, 20)
    if kind == "groups":
        a, b = scene.rng.randint(2, 10), scene.rng.randint(2, 10)
    elif kind == "less" and a <= b:
        a, b = b + 1, a
    story = scene.rng.choice({"more": MORE, "less": LESS, "groups": GROUPS}[kind])
    thing = scene.rng.choice(THINGS)
    told = say(scene.rng, story, p=names.person(scene.rng, scene.held), a=a, b=b, t=thing)
    left = " left" if kind == "less" else ""
    value = {"more": a + b, "less": a - b, "groups": a * b}[kind]
    ask = scene(f"How many {thing} are there{left}?", f"How many {thing} is that?",
                f"How many {thing} are there{left} now?") if kind != "less" else scene(
                    f"How many {thing} are left?", f"How many {thing} are there now?")
    verb = "There is" if value == 1 else "There are"
    noun = {"boxes": "box"}.get(thing, thing[:-1]) if value == 1 else thing
    return Turn("arithmetic", f"{told}. {ask}", f"{verb} {value} {noun}{left}.", f"{value}.")


def compared(scene):
    a, b = scene.rng.sample(range(100), 2)
    big, small = max(a, b), min(a, b)
    kind = scene.rng.randrange(3)
    if kind == 0:
        user = scene(f"which is bigger, {a} or {b}", f"which number is larger, {a} or {b}",
                     f"what is more, {a} or {b}", f"is {a} or {b} bigger", f"bigger: {a} or {b}")
        return Turn("arithmetic", typed(scene.rng, user), f"{big} is bigger than {small}.",
                    f"{big}.")
    if kind == 1:
        user = scene(f"which is smaller, {a} or {b}", f"what is less, {a} or {b}",
                     f"is {a} or {b} smaller")
        return Turn("arithmetic", typed(scene.rng, user), f"{small} is smaller than {big}.",
                    f"{small}.")
    yes = a > b
    user = scene(f"is {a} bigger than {b}", f"is {a} more than {b}", f"is {a} larger than {b}")
    answer = f"Yes, {a} is bigger than {b}." if yes else f"No, {a} is smaller than {b}."
    return Turn("arithmetic", typed(scene.rng, user), answer, "Yes." if yes else "No.")


def single(scene):
    """Questions about one number."""
    n = scene.rng.randint(1, 50)
    kind = scene.rng.randrange(6)
    if kind == 0:
        user, answer, short = scene(f"double {n}", f"what is double {n}", f"what is twice {n}",
                                    f"what is two times {n}"), f"Double {n} is {2 * n}.", 2 * n
    elif kind == 1:
        user, answer, short = scene(f"what is half of {2 * n}", f"half of {2 * n}",
                                    f"how much is half of {2 * n}"), f"Half of {2 * n} is {n}.", n
    elif kind == 2:
        n = scene.rng.randint(0, 98)
        user, answer, short = scene(
            f"what comes after {n}", f"what number comes after {n}", f"which number follows {n}",
            f"what is the next number after {n}"), f"{n + 1} comes after {n}.", n + 1
    elif kind == 3:
        n = scene.rng.randint(1, 99)
        user, answer, short = scene(f"what comes before {n}", f"what number comes before {n}",
                                    f"which number is before {n}"), \
            f"{n - 1} comes before {n}.", n - 1
    elif kind == 4:
        n = scene.rng.randint(0, 99)
        even = n % 2 == 0
        word = scene("even", "odd")
        user = scene(f"is {n} {word}", f"is {n} an {word} number", f"is the number {n} {word}")
        right = even == (word == "even")
        answer = f"{'Yes' if right else 'No'}, {n} is {'even' if even else 'odd'}."
        short = "Yes" if right else "No"
    else:
        n = scene.rng.randint(0, 99)
        user, answer, short = scene(f"write {n} in words", f"how do you write {n} in words",
                                    f"spell the number {n}", f"what is {n} in words"), \
            f"{n} is {in_words(n)} in words.", in_words(n)
    return Turn("arithmetic", typed(scene.rng, user, question=user[0] != "d"), answer,
                f"{short}.".capitalize())


def too_large(scene):
    """Numbers that this model has never worked with."""
    op = scene(*SIGNS)
    a, b = scene.rng.randint(101, 9999), scene.rng.randint(11, 9999)
    if op == "times" and scene.chance(0.4):
        a, b = scene.rng.randint(13, 99), scene.rng.randint(13, 99)
    if op in ("plus", "minus") and scene.chance(0.3):
        a, b = b, a
    user = typed(scene.rng, say(scene.rng, scene(*ASK[:9]), e=scene.rng.choice(SIGNS[op]).join(
        [str(a), str(b)])))
    return Turn("outside", user, "I don't know. I can only do small sums.", refusal=True)


def drill(scene):
    return scene.rng.choices([plain, verbal, word_problem, compared, single],
                             [62, 10, 11, 7, 10])[0](scene)
