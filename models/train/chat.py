"""Whole chats: a system line or none, facts told early, other things between, questions late."""
import json

import lists
import recall
import stories
import styles
import sums
import talk
import words
from grammar import cap, is_held, say
from noise import typed
from turns import Scene, Turn

# How often each kind of turn stands between the facts of a chat.
TASKS = [(sums.drill, 25), (words.definition, 19), (words.fact, 16), (lists.listing, 14),
         (talk.outside, 13),
         (talk.small_talk, 12), (words.reverse_definition, 3)]
OPENERS = [(("hi", "hello", "hey", "hi there", "hello ember", "good day"), "Hello!"),
           (("thanks", "thank you", "great, thanks"), "You're welcome!"),
           (("good morning",), "Good morning!")]


def any_task(scene):
    return scene.rng.choices([t for t, _ in TASKS], [w for _, w in TASKS])[0](scene)


def greeted(scene, turn):
    """A greeting and a question in one message get both answers."""
    if turn.long or turn.task == "talk":
        return turn
    forms, reply = scene.rng.choice(OPENERS)
    hello = scene.rng.choice(forms)
    user = (cap(hello) if scene.chance(0.6) else hello) + scene("! ", ", ", ". ") + turn.user
    return Turn(turn.task, user, f"{reply} {turn.answer}", turn.short, turn.refusal)


def doubled(scene):
    """Two questions in one message, two sentences as the answer."""
    makers = [sums.plain, words.definition, words.opposite, lists.neighbour, words.colour_of,
              words.plural_of]
    one, two = (scene.rng.choice(makers)(scene) for _ in range(2))
    first = one.user.rstrip("?.! ")
    user = scene(f"{first}? {two.user}", f"{first} and {two.user}", f"{first}? And {two.user}")
    return Turn("mixed", user, f"{one.answer} {two.answer}")


def repeated(scene):
    """Say that again."""
    user = typed(scene.rng, scene("say that again", "repeat that", "can you repeat that",
                                  "what did you say",
                                  "once more please", "again", "say it again",
                                  "please repeat your answer"))
    last = scene.turns[-1]
    return Turn("list", user, last.answer, last.short)


def finished(turns, style):
    for turn in turns:
        if turn is not None:
            yield turn.user, turn.answer if turn.long or style is None else style.applied(turn)


def _system(scene):
    """A style and the system line for it, or (None, None)."""
    draw = scene.rng.random()
    if draw < 0.46:
        return None, None
    if draw < 0.60:
        return styles.neutral(scene), None
    style = styles.drawn(scene)
    if draw > 0.95 and style.key not in ("called", "one word"):
        return style, "user"
    return style, None


def _given_facts(scene):
    """Facts about the user in the system line."""
    facts = [f for f in (recall.fresh(scene) for _ in range(scene.rng.randint(1, 3))) if f]
    text = " ".join(cap(_third(recall.told(scene, f))) + "." for f in facts)
    return scene("Facts: ", "", "", "About the user: ", "Remember: ") + text


def _third(text):
    """What the user would say of himself, said of the user."""
    for hello in ("hi, ", "hello, ", "Hi, "):
        text = text.removeprefix(hello)
    swaps = [("I am ", "the user is "), ("I'm ", "the user is "), ("I have ", "the user has "),
             ("I've got ", "the user has "), ("I was ", "the user was "),
             ("call me ", "the user is called "),
             ("my ", "the user's "), ("I like ", "the user likes "), ("I call ", "the user calls "),
             ("I ", "the user ")]
    words_ = f" {text}"
    for old, new in swaps:
        words_ = words_.replace(" " + old, " " + new)
    return words_.strip()


def _fact_turns(scene, budget):
    """Tells some facts; returns what to ask about later."""
    draw = scene.rng.random()
    if draw < 0.2:
        turns = [recall.passage(scene, scene.rng.randint(3, max(4, min(24, budget // 14))))]
        if turns[0].answer == recall.ACKS_MANY or scene.chance(0.6):
            return turns
        return turns
    turns = []
    same = scene.chance(0.4)
    key = None
    for _ in range(scene(1, 1, 2, 2, 3, 4)):
        facts = [recall.fresh(scene, key=key) for _ in range(scene(1, 1, 1, 2, 2, 3))]
        facts = [f for f in facts if f]
        if not facts:
            continue
        if same:
            key = next(a[1] for a, f in scene.facts.items() if f is facts[0])
            key = key if key in ("called", "favourite", "colour", "spot", "count", "code") else None
        other = scene.rng.random()
        if other < 0.12:
            turns.append(recall.told_and_asked(scene, facts))
        elif other < 0.2:
            turns.append(_told_beside(scene, facts))
        else:
            turns.append(recall.tell(scene, facts))
    return turns


def _told_beside(scene, facts):
    """A fact, then a question about something else in the same message."""
    turn = any_task(scene)
    if turn.long or turn.task == "talk":
        return recall.tell(scene, facts)
    text = recall.spoken(scene, facts)
    text += "" if text[-1] in ".!" else "."
    return Turn(turn.task, f"{text} {cap(turn.user)}", turn.answer, turn.short, turn.refusal)


def _later(scene):
    """One turn of the later part of a chat."""
    draw = scene.rng.random()
    if scene.facts and draw < 0.52:
        if draw < 0.09:
            about = scene.rng.choice(list(scene.facts))
            return recall.correct(scene, about) if about[1] != "owns" else recall.ask(scene, about)
        if draw < 0.12:
            return recall.summary(scene)
        return recall.ask(scene, scene.rng.choice(list(scene.facts)))
    if draw < 0.62:
        return recall.missing(scene)
    return between(scene)


def between(scene):
    draw = scene.rng.random()
    if draw < 0.04:
        return doubled(scene)
    if draw < 0.06 and scene.turns:
        return repeated(scene)
    if draw < 0.10:
        return stories.story(scene)
    if draw < 0.14 and "stories" in scene.lists:
        return stories.about_story(scene)
    return any_task(scene)


def _single_topic(scene):
    """A system line that allows one topic."""
    topic, line, no = styles.off_topic(scene)
    inside = {"animals": lambda s: _of_animals(s), "numbers": sums.plain, "words": words.opposite,
              "stories": stories.story, "food": lambda s: _of_food(s)}[topic]
    others = [f for f in (sums.plain, words.past_of, lists.calendar, talk.outside_question,
                          stories.story)
              if not (topic == "numbers" and f is sums.plain)
              and not (topic == "stories" and f is stories.story)
              and not (topic == "words" and f is words.past_of)]
    pairs = []
    for _ in range(scene.rng.randint(1, 4)):
        if scene.chance(0.5):
            turn = inside(scene)
            pairs.append((turn.user, turn.answer))
        else:
            pairs.append((scene.rng.choice(others)(scene).user, no))
    return line, pairs


def _of(scene, kinds):
    while True:
        word = scene.rng.choice([w for w in words.WORDS if w.kind in kinds])
        form = "what is <w>"
        name, verb = words.named(word)
        return Turn("definition", typed(scene.rng, say(scene.rng, form.replace("is", verb),
                                                       w=name)),
                    words.meaning(word))


def _of_animals(scene):
    return words.habit(scene) if scene.chance(0.3) else _of(scene, ("animal",))


def _of_food(scene):
    return _of(scene, ("food", "fruit", "vegetable", "drink"))


def messages(line, pairs):
    out = [{"role": "system", "content": line}] if line else []
    for user, answer in pairs:
        out += [{"role": "user", "content": user}, {"role": "assistant", "content": answer}]
    return out


def chat(rng, budget, held=False):
    """One chat of about `budget` tokens at most, as a list of messages."""
    scene = Scene(rng, held)
    if scene.chance(0.02):
        return messages(*_single_topic(scene))
    style, place = _system(scene)
    line = style.line if style and place is None else None
    turns = scene.turns
    if scene.chance(0.05):
        facts = _given_facts(scene)
        line = f"{line} {facts}" if line else facts
        turns.append(recall.ask(scene, scene.rng.choice(list(scene.facts))))
    if scene.chance(0.12):
        turns.append(talk.talk(scene))
    if scene.chance(0.5):
        turns += _fact_turns(scene, budget)
    wanted = max(scene.rng.randint(1, max(2, budget // 28)), len(turns)
                 + scene(0, 1, 1, 2) * bool(scene.facts))
    while len(turns) < wanted or not turns:
        turn = _later(scene) if turns else between(scene)
        if turn is None:
            continue
        if scene.chance(0.03):
            turn = greeted(scene, turn)
        turns.append(turn)
    if place == "user":
        at = scene.rng.randrange(len(turns))
        pairs = [(t.user, t.answer) for t in turns[:at]]
        wish = styles.asked(scene, style)
        return messages(None, pairs + [(wish.user, wish.answer)]
                        + list(finished(turns[at:], style)))
    return messages(line, finished(turns, style))


def drill(rng, count, held=False):
    """Many short questions of one kind, one after the other."""
    scene = Scene(rng, held)
    task = scene(sums.drill, sums.drill, sums.plain, sums.plain, words.definition, lists.listing,
                 words.fact,
                 talk.outside)
    turns = [task(scene) for _ in range(count)]
    return messages(None, [(t.user, t.answer) for t in turns])


def _quiz(scene):
    """A few facts, and questions for them and for older ones."""
    facts = [f for f in (recall.fresh(scene) for _ in range(scene.rng.randint(1, 3))) if f]
    if not facts:
        return [lists.listing(scene)]
    turns = [(recall.told_and_asked if scene.chance(0.4) else recall.tell)(scene, facts)]
    new = [about for about, f in scene.facts.items() if f in facts]
    for _ in range(scene.rng.randint(1, 3)):
        about = scene.rng.choice(new if scene.chance(0.5) else list(scene.facts))
        turns.append(recall.ask(scene, about))
    return turns


def practice(rng, count, held=False):
    """What takes longest to learn, in a dense form: to copy, to compare, to obey a system line."""
    scene = Scene(rng, held)
    style = styles.drawn(scene) if scene.chance(0.35) else None
    turns = scene.turns
    while len(turns) < count:
        if style and style.key == "called" and scene.chance(0.4):
            turns.append(talk.naming(scene))
        elif scene.chance(0.4 if style else 0.15):
            turns.append(any_task(scene) if style else lists.listing(scene))
        else:
            turns += _quiz(scene)
    return messages(style.line if style else None, finished(turns, style))


def far_back(rng, budget, held=False):
    """Facts, other turns, and then questions for the facts, however long ago they were told."""
    scene = Scene(rng, held)
    style = styles.drawn(scene) if scene.chance(0.1) else None
    turns = scene.turns
    while not scene.facts:
        turns += _fact_turns(scene, max(60, budget // 3))
    between_them = scene.rng.randint(0, max(1, budget // 32))
    turns += [any_task(scene) for _ in range(between_them)]
    for _ in range(scene.rng.randint(1, max(2, budget // 90))):
        draw = scene.rng.random()
        about = scene.rng.choice(list(scene.facts))
        if draw < 0.1 and about[1] != "owns":
            turns.append(recall.correct(scene, about))
        elif draw < 0.25:
            turns.append(recall.missing(scene))
        else:
            turns.append(recall.ask(scene, about))
    turns = [t for t in turns if t is not None]
    return messages(style.line if style else None, finished(turns, style))


if __name__ == "__main__":
    import random
    import sys
    for seed in range(int(sys.argv[1])):
        print(json.dumps(chat(random.Random(seed), int(sys.argv[2])), ensure_ascii=False))
assert is_held
