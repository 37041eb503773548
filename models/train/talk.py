"""Small talk, questions about Ember and Lethe, and everything that Ember does not know."""
import names
from grammar import article, is_held, say
from noise import typed
from tables import JOKES, OUTSIDE, OUTSIDE_THINGS, TALK, UNKNOWN_WORDS, WORDS
from turns import Turn
from words import DEFINE

DONT_KNOW = "I don't know. I only know simple things."
CAN_T = "I can't do that."

# Every answer that begins like this declines; the evaluation counts it as a refusal.
REFUSALS = ["I don't know", "I can't", "You haven't told me", "I can only"]

TASKS = ("write", "fix", "translate", "summarise", "book", "play", "set", "send", "search", "draw",
         "call", "turn", "order", "open", "solve", "sing", "make", "buy", "pay", "read", "show",
         "find", "start", "stop", "print")


def talk(scene):
    forms, answer = scene.rng.choice(TALK)
    weighted = [f for f in forms if is_held("talk", f) == scene.held] or forms
    user = scene.rng.choice(weighted)
    asks = user.split()[0].lower() in "what who how are do can where why which is when".split()
    if answer.startswith("My name is") and scene.name != "Ember":
        answer = f"My name is {scene.name}."
    elif answer.startswith("I am Ember") and scene.role:
        answer = f"I am {scene.role}."
    elif answer.startswith("I am Ember") and scene.name != "Ember":
        answer = f"I am {scene.name}, a small language model of Lethe."
    return Turn("talk", typed(scene.rng, user, question=asks, calm=not asks), answer,
                _in_one_word(answer))


def naming(scene):
    """A question for the assistant's name."""
    while True:
        turn = talk(scene)
        if turn.answer.startswith("My name"):
            return turn


def _in_one_word(answer):
    """The short form of an answer, where one is clear."""
    if answer.startswith(("Yes, I am", "No, ")):
        return answer.split(",")[0] + "."
    if answer.startswith("My name is "):
        return answer.removeprefix("My name is ")
    return "Fine." if answer.startswith("I am fine") else None


def joke(scene):
    told = scene.lists.get("jokes", 0)
    scene.lists["jokes"] = told + 1
    user = scene("tell me a joke", "do you know a joke", "make me laugh", "tell a joke",
                 "say something funny",
                 "a joke", "can you tell me a joke", "I want a joke", "another joke")
    return Turn("talk", typed(scene.rng, user, question=user[0] in "dc"), JOKES[told % len(JOKES)])


def _thing(scene, kind):
    """An outside thing; some are the evaluation's. Now and then one that nobody has heard of."""
    if kind == "big":
        return str(scene.rng.randint(101, 9999))
    if kind == "small":
        return str(scene.rng.randint(1, 12))
    if scene.chance(0.12) and kind in ("city", "celebrity", "work", "science", "stock", "dish"):
        made = names.made_up(scene.rng, scene.held)
        return made + " " + names.made_up(scene.rng, scene.held) if kind == "celebrity" else made
    pool = [t for t in OUTSIDE_THINGS[kind] if is_held("thing", t) == scene.held]
    return scene.rng.choice(pool or OUTSIDE_THINGS[kind])


def outside_question(scene):
    form = scene.rng.choice(OUTSIDE)
    while is_held("outside", form) != scene.held:
        form = scene.rng.choice(OUTSIDE)
    slots = {kind: _thing(scene, kind) for kind in (*OUTSIDE_THINGS, "big", "small")
             if f"<{kind}>" in form}
    user = typed(scene.rng, say(scene.rng, form, **slots))
    answer = CAN_T if form.split()[0] in TASKS else DONT_KNOW
    return Turn("outside", user, answer, refusal=True)


WH = ["who was the first to <do> <x>", "when did people begin to <do> <x>", "why do <g> <do> <x>",
      "where can I <do> <x> in <city>", "how many <g> live near <x>",
      "what does <x> think about <x2>",
      "is <x> better than <x2>", "who sold <x> to <x2>", "what happened to <x>",
      "how do <g> make <x>",
      "why is <x> so famous", "how much does <x> weigh",
      "what is the difference between <x> and <x2>",
      "when will <x> end", "who owns <x>", "where was <x> made", "what is <x> known for",
      "did <x> ever meet <x2>", "how long did <x> last", "why did <x> leave <city>",
      "what is <x> worth",
      "who is better, <x> or <x2>", "is it true that <x> comes from <city>", "how did <x> begin",
      "what is the history of <x>", "what colour is <x>", "what is the best <x>", "does <x> hurt",
      "can <g> <do> <x>", "how big is <x>", "who are the <g> of <city>", "what is the size of <x>"]


def outside_mix(scene):
    """Open questions from many pools, so that no list of them can be learnt by heart."""
    kinds = ["country", "city", "celebrity", "work", "science", "event", "invention", "stock",
             "dish",
             "mountain", "illness"]
    form = scene.rng.choice(WH)
    while is_held("mix", form) != scene.held:
        form = scene.rng.choice(WH)
    x, x2 = (_thing(scene, scene.rng.choice(kinds)) for _ in range(2))
    user = say(scene.rng, form, x=x, x2=x2, city=_thing(scene, "city"),
               do=scene("see", "buy", "study", "use", "find", "visit", "build", "paint", "win"),
               g=scene("people", "scientists", "doctors", "kings", "students", "players",
                       "tourists"))
    return Turn("outside", typed(scene.rng, user), DONT_KNOW, refusal=True)


def unknown_word(scene):
    """A word that is not in the dictionary; real or made up."""
    known = {w.text for w in WORDS}
    while True:
        word = scene.rng.choice(UNKNOWN_WORDS)
        if scene.chance(0.5):
            word = names.made_up(scene.rng, scene.held).lower()
        if word not in known and is_held("unknown", word) == scene.held:
            break
    form = scene.rng.choice([f for f in DEFINE[:-3] if f != "<n>"])
    name = article(word)
    user = say(scene.rng, form, w=name, n=word)
    return Turn("outside", typed(scene.rng, user, keep=[word]), f"I don't know what {name} is.",
                refusal=True)


REMARKS = ["I went to <place> yesterday", "it was cold this morning", "I bought new shoes today",
           "we had soup for dinner", "the train was late again", "I am reading a long book",
           "yesterday I met an old friend", "my garden looks nice", "I like to walk in the rain",
           "it is raining here", "the sun is shining today", "I have a lot of work",
           "I cleaned the house",
           "tomorrow I will see <p>", "<p> came to visit me", "I am on the bus",
           "I just had breakfast",
           "the children are asleep", "I watched a film last night", "I like cheese",
           "<p> called me today",
           "I am learning to cook", "we played football in the park", "I love the summer",
           "I am at home",
           "my computer is slow", "I hate mondays", "I will go to <place> next week", "it is late"]


def remark(scene):
    """Something that is neither a question nor a fact to keep."""
    text = say(scene.rng, scene.rng.choice(REMARKS), p=names.person(scene.rng, scene.held),
               place=names.place(scene.rng, scene.held))
    return Turn("talk", typed(scene.rng, text, question=False), "I see. Thank you for telling me.")


def gibberish(scene):
    letters = "asdfghjklqwertyuiopzxcvbnm;.,?!123"
    text = "".join(scene.rng.choice(letters) for _ in range(scene.rng.randint(1, 10)))
    if scene.chance(0.2):
        text = scene("?", "...", "!", "??", ".", "-", "\u2026", ":)", "\U0001F600", "\u00e9\u00e8",
                     "\u4f60\u597d")
    return Turn("talk", text, "I am sorry. Please ask me in other words.")


def outside(scene):
    from sums import too_large
    return scene.rng.choices([outside_question, outside_mix, unknown_word, too_large],
                             [52, 18, 20, 10])[0](scene)


def small_talk(scene):
    return scene.rng.choices([talk, joke, remark, gibberish], [80, 7, 9, 4])[0](scene)
