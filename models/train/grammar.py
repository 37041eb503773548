"""Templates: "{a|b|}" chooses, "<slot>" fills in, everything else is said as it stands."""
import functools
import re
import zlib


@functools.lru_cache(maxsize=None)
def parse(template):
    """A tuple of literals, ("slot", name) and ("any", alternatives)."""
    parts, at = _parse(template, 0, top=True)
    return parts


def _parse(text, at, top):
    parts, start = [], at
    while at < len(text) and (top or text[at] not in "|}"):
        if text[at] == "{":
            parts += _pieces(text[start:at])
            options, at = _alternatives(text, at + 1)
            parts.append(("any", options))
            start = at
        else:
            at += 1
    parts += _pieces(text[start:at])
    return tuple(parts), at


def _alternatives(text, at):
    options = []
    while True:
        option, at = _parse(text, at, top=False)
        options.append(option)
        if text[at] == "}":
            return tuple(options), at + 1
        at += 1


def _pieces(text):
    split = re.split(r"(<\w+>)", text)
    return [("slot", s[1:-1]) if s.startswith("<") else s for s in split if s]


def _said(rng, parts, slots):
    for part in parts:
        if isinstance(part, str):
            yield part
        elif part[0] == "slot":
            yield str(slots[part[1]])
        else:
            yield from _said(rng, rng.choice(part[1]), slots)


def say(rng, template, **slots):
    return "".join(_said(rng, parse(template), slots))


def is_held(*key):
    """Whether a name, sum or phrasing is kept for the evaluation alone: about one in ten."""
    return zlib.crc32("/".join(map(str, key)).encode()) % 10 == 0


def cap(text):
    return text[:1].upper() + text[1:]


def article(noun):
    return ("an " if noun[0].lower() in "aeiou" else "a ") + noun


def joined(words, last="and"):
    words = list(words)
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + f" {last} " + words[-1]
