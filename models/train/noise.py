"""How a stranger types: no capitals, no question mark, a greeting before."""
import re

BEFORE = """please |so |ok, |and |now |well, |hey, |hey |tell me: |tell me, |quick question: |
I have a question: |question: |um |hmm, |one more: |next: |another question: |please tell me: |
ember, |I want to know: |can you tell me: |also, |then |but """.replace("\n", "").split("|")
AFTER = [" please", ", please", " thanks", ", thanks", ", Ember", " then", " now", " pls"]
SHORT = [("what is ", "what's "), ("What is ", "What's "), ("what is ", "whats "),
         ("What is ", "Whats "), ("do not", "don't"), ("I am ", "I'm "), ("I am ", "im ")]


def _end(rng, text, question):
    draw = rng.random()
    if question:
        return text + ("?" if draw < 0.68 else "" if draw < 0.93 else "??" if draw < 0.96 else ".")
    return text + ("." if draw < 0.6 else "" if draw < 0.95 else "!")


def _small(text, keep):
    return re.sub(r"\w+", lambda m: m.group() if m.group().lower() in keep else m.group().lower(),
                  text)


def typed(rng, text, question=True, keep=(), calm=False):
    """`text` without its final mark, as somebody may type it. `keep`: words to leave alone."""
    keep = {word.lower() for phrase in keep for word in re.findall(r"\w+", str(phrase))}
    if rng.random() < 0.15:
        old, new = rng.choice(SHORT)
        text = text.replace(old, new, 1)
    if not calm and rng.random() < 0.14:
        text = rng.choice(BEFORE) + text
    first = text.split(" ")[0]
    if first.lower() not in keep:
        text = text[:1].upper() + text[1:]
    if not calm and rng.random() < 0.07:
        text += rng.choice(AFTER)
    text = _end(rng, text, question)
    draw = rng.random()
    if draw < 0.12:
        text = _small(text, keep)
    elif draw < 0.34 and first.lower() not in keep and not text.startswith("I "):
        text = text[:1].lower() + text[1:]
    if rng.random() < 0.02:
        text = text.replace("'", "\u2019")
    return text
