"""What a user may tell: how it is said, asked, answered and missed.

Each kind is a dict of templates. <n> is a thing or relative, <p> a person, <v> the
value; "mine" kinds speak of the user, the others of a third person."""
import names
from grammar import article
from lists import COLOURS, DAYS, MONTHS

RELATIVES = """sister brother mother father aunt uncle cousin friend teacher boss neighbour son
daughter grandmother grandfather wife husband doctor baby colleague dentist""".split()
PETS = """dog cat horse rabbit parrot hamster goldfish turtle cow pig goat duck pony puppy kitten
mouse snake donkey hen""".split()
NAMED = PETS * 2 + RELATIVES + ["boat", "doll", "robot", "teddy bear", "ship", "shop", "band"]
JOBS = [article(j)
        for j in """teacher baker farmer doctor nurse pilot driver sailor painter carpenter
tailor gardener singer writer soldier judge dentist cook firefighter plumber lawyer student clerk
barber butcher waiter dancer actor builder miner clown librarian shepherd potter
policeman postman""".split()]
FAVOURITES = {
    "colour": COLOURS, "day": DAYS, "month": MONTHS, "season": ["spring", "summer", "autumn",
                                                                "winter"],
    "food": "pizza soup rice pasta cheese cake bread salad fish chocolate eggs honey".split(),
    "fruit": "apples bananas pears cherries grapes plums lemons peaches melons oranges".split(),
    "animal": "dogs cats horses lions owls foxes bears dolphins frogs tigers bees".split(),
    "drink": "tea coffee milk water juice cocoa lemonade".split(),
    "game": "chess football tennis cards hide-and-seek golf darts".split(),
    "number": [str(n) for n in range(1, 100)],
    "book": None, "song": None, "flower": "roses tulips sunflowers daisies lilies".split(),
    "word": None, "toy": "ball kite doll puzzle train".split(),
}
OWNED = """car house bike coat door hat bag umbrella boat cup shirt dress scarf pencil box lamp sofa
bicycle jacket kite tent garage chair phone""".split()
HIDDEN = """key book phone wallet ball hat ring pen letter map cup watch glove camera umbrella bag
ticket passport lamp toy coin scarf spoon knife bottle""".split()
SPOTS = ["drawer", "cupboard", "kitchen", "garden", "garage", "box", "bag", "car", "cellar",
         "attic",
         "basket", "bathroom", "bedroom", "library", "oven", "fridge", "desk", "red box",
         "blue bag"]
TOPS = ["table", "shelf", "chair", "bed", "sofa", "floor", "roof", "piano", "desk", "carpet",
        "stairs"]
EVENTS = """meeting train party lesson concert bus film class game show dinner plane match
exam course trip""".split()
PLANS = EVENTS[:1] + ["appointment", "exam", "party", "trip", "interview", "concert", "wedding",
                      "game"]
CODED = ["door code", "PIN", "room number", "code", "locker number", "ticket number",
         "table number",
         "house number", "order number", "bus number", "safe code", "seat number"]
SECRETS = ["password", "code word", "secret word", "magic word", "user name", "team name",
           "project name",
           "company", "school", "street"]
COUNTED = """books coins stamps hats chairs cups keys pens shoes marbles plants pictures apples toys
cards balls boxes cousins friends cats dogs hens""".split()


def spot(rng, held):
    if rng.random() < 0.4:
        return "on the " + rng.choice(TOPS)
    return rng.choice(["in", "in", "in", "under", "behind",
                       "next to"]) + " the " + rng.choice(SPOTS)


def favourite(rng, held, noun):
    pool = FAVOURITES[noun]
    return rng.choice(pool) if pool else names.made_up(rng, held)


def one_of(pool):
    return lambda rng, held, noun=None: rng.choice(pool)


def number(low, high):
    return lambda rng, held, noun=None: str(rng.randint(low, high))


def clock(rng, held, noun=None):
    return f"at {rng.randint(1, 12)} o'clock" if rng.random() < 0.7 else \
        f"at {rng.randint(1, 12)}:{rng.choice(['15', '30', '45', '10', '20'])}"


def called(rng, held, noun):
    return names.person(rng, held) if noun in RELATIVES else names.pet(rng, held)


def secret(rng, held, noun=None):
    return names.made_up(rng, held) if rng.random() < 0.7 else \
        rng.choice("apple river lamp moon tiger bridge candle forest piano silver window".split())


def named_place(rng, held, noun=None):
    return names.place(rng, held)


def code(rng, held, noun=None):
    return str(rng.randint(2, 10 ** rng.choice([2, 3, 4, 4, 5])))


MINE = {
    "called": dict(
        weight=9, nouns=NAMED, value=called,
        tell=["my <n> is called <v>", "my <n>'s name is <v>", "I have a <n> called <v>",
              "I have a <n> named <v>", "the name of my <n> is <v>", "I call my <n> <v>",
              "my <n> is named <v>", "I've got a <n>, and the name is <v>", "this is my <n> <v>"],
        ask=["what is my <n> called", "what is my <n>'s name", "what is the name of my <n>",
             "what's my <n> called", "how is my <n> called", "do you remember my <n>'s name",
             "do you know what my <n> is called", "tell me the name of my <n>", "who is my <n>",
             "what did I call my <n>", "can you tell me what my <n> is called", "name of my <n>",
             "what was my <n>'s name again", "do you still know the name of my <n>",
             "what name does my <n> have", "what did I say my <n> is called", "my <n>'s name"],
        full="your <n> is called <v>",
        unknown="You haven't told me what your <n> is called."),
    "name": dict(
        weight=5, nouns=["name"], value=lambda r, h, n: names.person(r, h),
        tell=["my name is <v>", "I am <v>", "I'm <v>", "I am called <v>", "call me <v>",
              "this is <v>",
              "people call me <v>", "<v> is my name", "they call me <v>", "hi, I'm <v>",
              "hello, my name is <v>", "hi, my name is <v>", "you can call me <v>",
              "it's <v> here"],
        ask=["what is my name", "what's my name", "do you know my name", "do you remember my name",
             "who am I", "what am I called", "tell me my name", "can you tell me my name",
             "what was my name", "what did I say my name is", "say my name", "how am I called",
             "my name", "do you still know who I am", "have you forgotten my name"],
        full="your name is <v>", ack="Nice to meet you, <v>.",
        unknown="You haven't told me your name."),
    "age": dict(
        weight=2, nouns=["age"], value=number(5, 99),
        tell=["I am <v> years old", "I'm <v>", "I am <v>", "my age is <v>", "I'm <v> years old"],
        ask=["how old am I", "what is my age", "do you know how old I am", "do you remember my age",
             "tell me my age", "how many years old am I", "how old did I say I am"],
        full="you are <v> years old",
        unknown="You haven't told me how old you are."),
    "lives": dict(
        weight=3, nouns=["home"], value=named_place,
        tell=["I live in <v>", "I am from <v>", "my home is in <v>", "I come from <v>",
              "my house is in <v>", "I'm from <v>", "I have a flat in <v>", "I moved to <v>"],
        ask=["where do I live", "where is my home", "do you know where I live",
             "which town do I live in",
             "in which place do I live", "tell me where I live", "do you remember where I live",
             "where did I say I live", "where is my house", "what is my home town"],
        full="you live in <v>",
        unknown="You haven't told me where you live."),
    "job": dict(
        weight=3, nouns=["job"], value=one_of(JOBS),
        tell=["I am <v>", "I'm <v>", "I work as <v>", "my job is to be <v>", "by trade I am <v>"],
        ask=["what is my job", "what do I do for a living", "what's my job", "what do I work as",
             "do you know my job", "do you remember my job", "what work do I do", "tell me my job"],
        full="you are <v>", unknown="You haven't told me what your job is."),
    "favourite": dict(
        weight=4, nouns=list(FAVOURITES), value=favourite,
        tell=["my favourite <n> is <v>", "my favorite <n> is <v>", "<v> is my favourite <n>",
              "the <n> I like best is <v>", "I like <v> best of all, so that is my favourite <n>"],
        ask=["what is my favourite <n>", "what's my favourite <n>", "which <n> do I like best",
             "do you know my favourite <n>", "tell me my favourite <n>", "what is my favorite <n>",
             "what <n> do I like best", "do you remember my favourite <n>",
             "which is my favourite <n>"],
        full="your favourite <n> is <v>",
        unknown="You haven't told me your favourite <n>."),
    "colour": dict(
        weight=4, nouns=OWNED, value=one_of(COLOURS),
        tell=["my <n> is <v>", "I have a <v> <n>", "I bought a <v> <n>",
              "the colour of my <n> is <v>",
              "I painted my <n> <v>", "I've got a <v> <n>", "my new <n> is <v>"],
        ask=["what colour is my <n>", "what is the colour of my <n>",
             "which colour does my <n> have",
             "what color is my <n>", "do you know the colour of my <n>",
             "what colour did I say my <n> is",
             "do you remember what colour my <n> is", "tell me the colour of my <n>"],
        full="your <n> is <v>",
        unknown="You haven't told me what colour your <n> is."),
    "spot": dict(
        weight=4, nouns=HIDDEN, value=lambda r, h, n: spot(r, h),
        tell=["my <n> is <v>", "I put my <n> <v>", "I left my <n> <v>", "I keep my <n> <v>",
              "the <n> is <v>", "you can find my <n> <v>", "my <n> lies <v>"],
        ask=["where is my <n>", "where's my <n>", "where did I put my <n>",
             "where did I leave my <n>",
             "do you know where my <n> is", "where can I find my <n>",
             "I can't find my <n>, where is it",
             "do you remember where my <n> is", "where do I keep my <n>"],
        full="your <n> is <v>",
        unknown="You haven't told me where your <n> is."),
    "time": dict(
        weight=2, nouns=EVENTS, value=clock,
        tell=["my <n> starts <v>", "my <n> is <v>", "the <n> starts <v>", "the <n> is <v>",
              "I have a <n> <v>"],
        ask=["when is my <n>", "when does my <n> start", "what time is my <n>",
             "at what time is the <n>",
             "when is the <n>", "do you know when my <n> is", "what time does the <n> start"],
        full="your <n> is <v>",
        unknown="You haven't told me when your <n> is."),
    "plan": dict(
        weight=2, nouns=PLANS, value=lambda r, h, n: "on " + r.choice(DAYS),
        tell=["my <n> is <v>", "the <n> is <v>", "I have my <n> <v>", "my <n> will be <v>"],
        ask=["when is my <n>", "on which day is my <n>", "what day is my <n>",
             "when do I have my <n>",
             "when is the <n>", "do you remember when my <n> is"],
        full="your <n> is <v>",
        unknown="You haven't told me when your <n> is."),
    "birthday": dict(
        weight=2, nouns=["birthday"], value=lambda r, h, n: "in " + r.choice(MONTHS),
        tell=["my birthday is <v>", "I was born <v>", "I have my birthday <v>"],
        ask=["when is my birthday", "in which month is my birthday", "when was I born",
             "in which month was I born", "what month is my birthday", "do you know my birthday"],
        full="your birthday is <v>",
        unknown="You haven't told me when your birthday is."),
    "code": dict(
        weight=3, nouns=CODED, value=code,
        tell=["my <n> is <v>", "the <n> is <v>", "please remember the <n> <v>", "note the <n>: <v>",
              "my <n> is <v>, please keep it in mind", "remember that the <n> is <v>"],
        ask=["what is my <n>", "what is the <n>", "what's the <n>", "do you know the <n>",
             "tell me the <n>", "what was the <n>", "which <n> did I give you", "I forgot the <n>",
             "do you remember my <n>"],
        full="the <n> is <v>", unknown="You haven't told me the <n>."),
    "secret": dict(
        weight=3, nouns=SECRETS, value=secret,
        tell=["my <n> is <v>", "the <n> is <v>", "please remember the <n> <v>",
              "the <n> is called <v>",
              "remember that the <n> is <v>", "note the <n>: <v>"],
        ask=["what is my <n>", "what is the <n>", "what's the <n>", "do you know the <n>",
             "tell me the <n>", "what was the <n>", "I forgot the <n>", "do you remember the <n>"],
        full="the <n> is <v>", unknown="You haven't told me the <n>."),
    "pet": dict(
        weight=2, nouns=["pet"], value=one_of([article(p) for p in PETS]),
        tell=["I have <v>", "I've got <v>", "I own <v>", "my pet is <v>", "I bought <v>",
              "we have <v>"],
        ask=["what pet do I have", "which animal do I have", "what kind of pet do I have",
             "what is my pet",
             "what animal do I have", "which pet do I have", "do you know which animal I have"],
        full="you have <v>",
        unknown="You haven't told me which pet you have."),
    "count": dict(
        weight=2, nouns=COUNTED, value=number(2, 40),
        tell=["I have <v> <n>", "I've got <v> <n>", "I own <v> <n>",
              "there are <v> <n> in my house"],
        ask=["how many <n> do I have", "how many <n> have I got", "do you know how many <n> I have",
             "what is the number of my <n>", "how many <n> did I say I have"],
        full="you have <v> <n>",
        unknown="You haven't told me how many <n> you have."),
}

THEIRS = {
    "called": dict(
        weight=5, nouns=PETS + RELATIVES[:12], value=called,
        tell=["<p>'s <n> is called <v>", "<p> has a <n> called <v>", "<p> has a <n> named <v>",
              "the name of <p>'s <n> is <v>", "<p>'s <n>'s name is <v>"],
        ask=["what is <p>'s <n> called", "what is the name of <p>'s <n>", "what's <p>'s <n> called",
             "do you know what <p>'s <n> is called", "tell me the name of <p>'s <n>"],
        full="<p>'s <n> is called <v>",
        unknown="You haven't told me what <p>'s <n> is called."),
    "lives": dict(
        weight=4, nouns=["home"], value=named_place,
        tell=["<p> lives in <v>", "<p> is from <v>", "<p>'s home is in <v>", "<p> comes from <v>"],
        ask=["where does <p> live", "do you know where <p> lives", "in which town does <p> live",
             "where is <p>'s home", "tell me where <p> lives", "where is <p> from"],
        full="<p> lives in <v>",
        unknown="You haven't told me where <p> lives."),
    "job": dict(
        weight=4, nouns=["job"], value=one_of(JOBS),
        tell=["<p> is <v>", "<p> works as <v>", "<p> is <v> by trade"],
        ask=["what is <p>'s job", "what does <p> do", "what does <p> do for a living",
             "what does <p> work as", "do you know <p>'s job", "what's <p>'s job"],
        full="<p> is <v>", unknown="You haven't told me what <p>'s job is."),
    "age": dict(
        weight=3, nouns=["age"], value=number(1, 99),
        tell=["<p> is <v> years old", "<p>'s age is <v>", "<p> is <v>"],
        ask=["how old is <p>", "what is <p>'s age", "do you know how old <p> is",
             "tell me <p>'s age"],
        full="<p> is <v> years old",
        unknown="You haven't told me how old <p> is."),
    "favourite": dict(
        weight=3, nouns=list(FAVOURITES), value=favourite,
        tell=["<p>'s favourite <n> is <v>", "the <n> that <p> likes best is <v>"],
        ask=["what is <p>'s favourite <n>", "which <n> does <p> like best",
             "what's <p>'s favourite <n>",
             "do you know <p>'s favourite <n>"],
        full="<p>'s favourite <n> is <v>",
        unknown="You haven't told me <p>'s favourite <n>."),
    "colour": dict(
        weight=3, nouns=OWNED, value=one_of(COLOURS),
        tell=["<p>'s <n> is <v>", "<p> has a <v> <n>", "<p> bought a <v> <n>"],
        ask=["what colour is <p>'s <n>", "which colour does <p>'s <n> have",
             "what is the colour of <p>'s <n>", "do you know what colour <p>'s <n> is"],
        full="<p>'s <n> is <v>",
        unknown="You haven't told me what colour <p>'s <n> is."),
    "spot": dict(
        weight=3, nouns=["now"], value=lambda r, h, n: spot(r, h),
        tell=["<p> is <v>", "<p> sits <v>", "<p> waits <v>"],
        ask=["where is <p>", "where is <p> now", "do you know where <p> is",
             "where can I find <p>"],
        full="<p> is <v>", unknown="You haven't told me where <p> is."),
    "owns": dict(
        weight=3, nouns=["thing"],
        value=lambda r, h, n: f"the {r.choice(COLOURS)} {r.choice(HIDDEN)}",
        tell=["<v> belongs to <p>", "<p> owns <v>", "<v> is <p>'s"],
        ask=["what belongs to <p>", "what does <p> own", "which thing belongs to <p>"],
        full="<v> belongs to <p>",
        unknown="You haven't told me what belongs to <p>."),
    "likes": dict(
        weight=3, nouns=["taste"], value=one_of(FAVOURITES["fruit"] + FAVOURITES["animal"]
                                                + FAVOURITES["food"] + FAVOURITES["drink"]),
        tell=["<p> likes <v>", "<p> loves <v>", "<p> is fond of <v>"],
        ask=["what does <p> like", "do you know what <p> likes", "tell me what <p> likes"],
        full="<p> likes <v>",
        unknown="You haven't told me what <p> likes."),
}
