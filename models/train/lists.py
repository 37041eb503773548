"""Lists: counting, days and months, things of one kind, sorting, spelling, saying again."""
import names
from grammar import cap, joined, say
from noise import typed
from sums import in_words
from tables import BY_KIND, WORDS
from turns import Turn
from words import named, plural

DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = """January February March April May June July August September October November
December""".split()
SEASONS = "spring summer autumn winter".split()
COLOURS = "red blue green yellow black white orange brown pink purple grey".split()
LETTERS = "A B C D E F G H I J K L M N O P Q R S T U V W X Y Z".split()


def _things(kind):
    return [named(w)[0] for w in BY_KIND[kind]]


KINDS = {"animals": _things("animal"), "tools": _things("tool"), "fruits": _things("fruit"),
         "vegetables": _things("vegetable"), "drinks": _things("drink"), "colours": COLOURS,
         "rooms": _things("room"), "vehicles": _things("vehicle"), "jobs": _things("job"),
         "pieces of furniture": _things("piece of furniture"),
         "kinds of weather": _things("weather"),
         "pieces of clothing": _things("piece of clothing"), "foods": _things("food"),
         "parts of the body": [f"the {w.text}" for w in BY_KIND["body part"]],
         "instruments": _things("instrument"), "games": _things("game"), "plants": _things("plant"),
         "buildings": _things("building"), "insects": _things("insect"),
         "metals": ["gold", "silver", "iron"],
         "school things": _things("school thing"), "places": _things("place"),
         "family members": _things("family member"), "materials": _things("material")}


def of_a_kind(scene):
    """The n first of a kind; asked again in the same chat, the next ones."""
    kind = scene.rng.choice(list(KINDS))
    told = scene.lists.get(kind, 0)
    left = len(KINDS[kind]) - told
    if left < 2:
        return of_a_kind(scene)
    count = min(left, scene(2, 3, 3, 3, 4, 5, 5))
    number = in_words(count) if scene.chance(0.6) else str(count)
    ask = scene("list <n> <k>", "name <n> <k>", "give me <n> <k>", "tell me <n> <k>",
                "can you name <n> <k>", "I need <n> <k>", "write a list of <n> <k>", "say <n> <k>",
                "which <k> do you know? Name <n>", "make a list of <n> <k>", "list me <n> <k>",
                "please list <n> <k>", "could you give me a list of <n> <k>", "<n> <k>")
    if told:
        ask = ask.replace("<n> <k>", scene("<n> more <k>", "<n> other <k>"))
    user = typed(scene.rng, say(scene.rng, ask, n=number, k=kind), question=ask[0] in "cw")
    scene.lists[kind] = told + count
    things = joined(KINDS[kind][told:told + count])
    return Turn("list", user, f"{cap(in_words(count))} {kind} are {things}.", cap(f"{things}."))


def counting(scene):
    down = scene.chance(0.25)
    step = scene(1, 1, 1, 1, 2, 5, 10)
    low = 0 if step > 1 else scene(0, 1, 1, 1, 1, scene.rng.randint(2, 60))
    if step > 1:
        low = step
    high = low + step * scene.rng.randint(3, 9)
    run = list(range(low, high + 1, step))
    if down:
        run.reverse()
    verb = scene("count", "count", "can you count", "please count", "list the numbers")
    by = {1: "", 2: " by twos", 5: " by fives", 10: " by tens"}[step]
    start = f" from {run[0]}" if low != 1 or down or scene.chance(0.4) else ""
    word = " down" if down and scene.chance(0.5) and verb != "list the numbers" else ""
    user = typed(scene.rng, f"{verb}{word}{start} to {run[-1]}{by}", question=verb[:3] == "can")
    return Turn("list", user, ", ".join(map(str, run)) + ".")


def calendar(scene):
    name, row = scene(("days of the week", DAYS), ("months of the year", MONTHS),
                      ("seasons", SEASONS),
                      ("letters of the alphabet", LETTERS))
    ask = scene("list the <n>", "what are the <n>", "name the <n>", "tell me the <n>",
                "list all <n>",
                "say the <n>", "can you list the <n>", "give me the <n>", "which are the <n>",
                "the <n>")
    if name == "letters of the alphabet" and scene.chance(0.5):
        ask = scene("say the alphabet", "tell me the alphabet", "what is the alphabet",
                    "recite the abc")
    answer = ", ".join(row) + "." if row is LETTERS else f"The {name} are {joined(row)}."
    return Turn("list", typed(scene.rng, say(scene.rng, ask, n=name), question="wh" in ask), answer)


def neighbour(scene):
    """What comes before or after a day, month or letter."""
    row, what = scene((DAYS, "day"), (DAYS, "day"), (MONTHS, "month"), (MONTHS, "month"),
                      (LETTERS, "letter"))
    at, step = scene.rng.randrange(len(row)), scene(1, 1, -1)
    if row is LETTERS and not 0 <= at + step < len(row):
        at = 5
    other, word = row[(at + step) % len(row)], "after" if step == 1 else "before"
    ask = scene("what comes <w> <a>", "which <d> comes <w> <a>", "what <d> is <w> <a>",
                "what is the <d> <w> <a>", "tell me the <d> <w> <a>", "which <d> is <w> <a>")
    user = typed(scene.rng, say(scene.rng, ask, w=word, a=row[at], d=what))
    return Turn("list", user, f"{other} comes {word} {row[at]}.", f"{other}.")


def _some_words(scene, count):
    if scene.chance(0.3):
        return names.people(scene.rng, scene.held, count)
    plain = [w.text for w in WORDS if w.kind and " " not in w.text]
    while True:
        chosen = scene.rng.sample(plain, count)
        if len({w[0] for w in chosen}) == count:
            return chosen


def sorting(scene):
    count = scene(3, 3, 3, 4, 4, 5)
    if scene.chance(0.6):
        given = scene.rng.sample(range(100 if scene.chance(0.7) else 20), count)
        down = scene.chance(0.2)
        order = sorted(given, reverse=down)
        tail = scene(" from big to small", ", the largest first",
                     " in falling order") if down else \
            scene("", "", " from small to big", " in order", ", the smallest first",
                  " in rising order")
        ask = scene("sort <l>", "sort the numbers <l>", "put <l> in order", "order <l>",
                    "sort: <l>",
                    "arrange the numbers <l>", "can you sort <l>", "sort these numbers: <l>")
        ask = ask.replace(" in order", "", 1) if tail else ask
    else:
        given = _some_words(scene, count)
        order, tail = sorted(given, key=str.lower), ""
        ask = scene("sort the words <l>", "sort <l> by the alphabet",
                    "put <l> in alphabetical order",
                    "put these words in order: <l>", "sort alphabetically: <l>",
                    "sort these words: <l>",
                    "sort <l>", "arrange <l> alphabetically")
    shown = [str(g) for g in given]
    row = joined(shown) if scene.chance(0.5) else ", ".join(shown)
    user = typed(scene.rng, say(scene.rng, ask, l=row) + tail, question=False, keep=shown)
    return Turn("list", user, ", ".join(map(str, order)) + ".")


def extreme(scene):
    given = scene.rng.sample(range(100), scene(3, 3, 4, 5))
    big = scene.chance(0.6)
    word = scene("largest", "biggest", "highest") if big else scene("smallest", "lowest")
    ask = scene("what is the <w> of <l>", "which is the <w>: <l>", "find the <w> number of <l>",
                "which number is the <w>, <l>", "the <w> of <l>")
    user = typed(scene.rng, say(scene.rng, ask, w=word, l=joined(map(str, given))))
    value = max(given) if big else min(given)
    return Turn("list", user, f"The {word} is {value}.", f"{value}.")


def spelling(scene):
    word = scene.rng.choice([w.text for w in WORDS if " " not in w.text and "-" not in w.text])
    kind = scene.rng.randrange(5)
    if kind < 2:
        ask = scene("spell <w>", "how do you spell <w>", "can you spell <w>", "spell the word <w>")
        answer = "-".join(word.upper()) + "."
    elif kind == 2:
        ask = scene("what is the first letter of <w>", "first letter of <w>",
                    "with which letter does <w> begin", "which letter does <w> start with")
        answer = f"The first letter of {word} is {word[0].upper()}."
    elif kind == 3:
        ask = scene("what is the last letter of <w>", "last letter of <w>",
                    "with which letter does <w> end", "which letter does <w> end with")
        answer = f"The last letter of {word} is {word[-1].upper()}."
    else:
        ask = scene("how many letters does <w> have", "how many letters are in <w>",
                    "count the letters of <w>")
        answer = f"The word {word} has {len(word)} letters."
    return Turn("list", typed(scene.rng, say(scene.rng, ask, w=word), keep=[word]), answer)


def again(scene):
    """Saying something after the user, which is pure copying."""
    draw = scene.rng.random()
    if draw < 0.35:
        words = _some_words(scene, scene(2, 3, 4))
        row = ", ".join(words)
        if scene.chance(0.4):
            ask = scene("say <l> backwards", "reverse the list <l>", "say <l> in reverse order")
            return Turn("list", typed(scene.rng, say(scene.rng, ask, l=row), question=False,
                                      keep=words),
                        ", ".join(reversed(words)) + ".")
        text = row
    elif draw < 0.6:
        text = " ".join(_some_words(scene, scene(1, 1, 2, 3)))
    elif draw < 0.7:
        text = " ".join(str(scene.rng.randint(0, 99)) for _ in range(scene.rng.randint(1, 4)))
    else:
        text = scene("I like", "we want", "they have", "she has", "he sees", "you know") + " " + \
            joined([plural(w.text) for w in scene.rng.sample(
                [w for w in WORDS if w.form == "a" and w.kind], scene(1, 1, 2))])
    ask = scene("say <l>", "repeat after me: <l>", "say: <l>", "please say <l>", "repeat: <l>",
                "can you say <l>", "repeat <l>", 'say "<l>"', "write <l>", "echo <l>")
    if '"' in ask:
        return Turn("list", cap(say(scene.rng, ask, l=text)), cap(text) + ".")
    return Turn("list", typed(scene.rng, say(scene.rng, ask, l=text), question=False,
                              keep=text.split(),
                              calm=True), cap(text) + ".")


LISTS = [(of_a_kind, 22), (counting, 14), (calendar, 8), (neighbour, 14), (sorting, 14),
         (extreme, 6),
         (spelling, 10), (again, 12)]


def listing(scene):
    return scene.rng.choices([f for f, _ in LISTS], [w for _, w in LISTS])[0](scene)
