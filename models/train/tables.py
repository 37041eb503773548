"""What the project wrote down by hand: the lists and the small dictionary under tables/."""
import collections
import pathlib

FOLDER = pathlib.Path(__file__).parent / "tables"


def _lines(name):
    text = (FOLDER / f"{name}.txt").read_text()
    return [line.strip() for line in text.splitlines() if line.strip() and line[0] != "#"]


def _columns(name):
    return [[c.strip() for c in line.split("|")] for line in _lines(name)]


def _pairs(name):
    return [tuple(line.split(None, 1)) for line in _lines(name)]


Word = collections.namedtuple("Word", "text form kind meaning")  # form: "a", "~", "=" or "^"


def _word(text, kind, meaning):
    form = text[0] if text[0] in "~=^" else "a"
    return Word(text.lstrip("~=^"), form, kind, meaning)


WORDS = [_word(*c) for c in _columns("definitions")]
WORDS += [_word(c[0], "", c[1]) for c in _columns("lethe")]
BY_KIND = collections.defaultdict(list)
for word in WORDS:
    BY_KIND[word.kind].append(word)


def _opposites():
    both = {}
    for a, b in _pairs("opposites"):
        both.setdefault(a, b)
        both.setdefault(b, a)
    return sorted(both.items())


OPPOSITES = _opposites()
PAST = _pairs("past")
PLURALS = _pairs("plurals")
SOUNDS = _pairs("sounds")
BABIES = _pairs("babies")
SIZES = _lines("sizes")
JOKES = _lines("jokes")
COLOURS_OF = _columns("colours")
NUMBERS_OF = _columns("numbers_of")
DOES = _columns("does")
USES = _columns("uses")
ABILITIES = _columns("abilities")
LIVES = _columns("lives")
EATS = _columns("eats")
OUTSIDE = _lines("outside")
UNKNOWN_WORDS = " ".join(_lines("unknown_words")).split()
STARTS, PIECES = (" ".join(_lines(name)).split() for name in ("starts", "pieces"))
OUTSIDE_THINGS = {k: [v.strip() for v in vs.split(",")]
                  for k, vs in (line.split(":") for line in _lines("outside_things"))}
TALK = [([q.strip() for q in left.split("|")], right.strip())
        for left, right in (line.split("=>") for line in _lines("qa"))]
