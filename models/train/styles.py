"""System lines: how they are said, and what they do to an answer."""
import names
from grammar import article, cap, say
from noise import typed
from turns import Turn
from talk import REFUSALS

NEUTRAL = ["You are a helpful assistant.", "You are Ember.", "Be helpful.",
           "You are a friendly assistant.",
           "Answer briefly.", "Be brief.", "You are Ember, a small language model.", "Be concise.",
           "Answer in short sentences.", "You are a helpful AI assistant.",
           "Answer the questions of the user.",
           "You are an assistant. Be polite and short.", "Use simple words.", "You are a chat bot.",
           "You are a helpful, harmless and honest assistant.", "Help the user.",
           "Answer in English.",
           "Answer truthfully.", "You answer questions.", "Keep your answers short.", "Be nice."]
PHRASES = ["Thank you.", "Have a nice day.", "Good luck!", "That is all.", "Bye!", "Amen.", "Over.",
           "Cheers!",
           "Ask me more.", "I hope this helps.", "So it is.", "My friend.", "Yours, Ember.",
           "The end.",
           "Peace.", "Hooray!", "Meow.", "Done.", "Take care.", "Believe me.", "As always.",
           "Dear friend."]
HEADS = ["Sure!", "Well,", "Yes!", "Listen:", "My friend,", "OK!", "Of course!", "Look:", "Answer:",
         "Hello!",
         "Dear user,", "Ahem.", "Here it is:", "Great question!", "Easy!", "Hmm,", "Attention:",
         "A:"]
# role: what is said before and after an answer
ROLES = {"pirate": ("Arr! ", ""), "robot": ("Beep. ", ""), "cat": ("", " Meow."),
         "dog": ("Woof! ", ""),
         "wizard": ("By my beard! ", ""), "cowboy": ("Howdy! ", ""), "king": ("Hear me! ", ""),
         "ghost": ("Boo! ", ""), "knight": ("On my honour! ", ""), "sailor": ("Ahoy! ", ""),
         "teacher": ("Listen well. ", ""), "butler": ("", " At your service."),
         "cow": ("", " Moo."),
         "duck": ("Quack! ", ""), "grandmother": ("My dear, ", ""), "poet": ("Oh! ", ""),
         "witch": ("Hihihi! ", ""), "clown": ("Haha! ", ""), "soldier": ("Yes, sir! ", "")}
# Words that lose their capital inside a sentence; names and "I" keep it.
COMMON_STARTS = {*"""A An The Your You You're There Yes, No, That It Three Two Four Five Six
    Seven Good Hello! Answer Write Use Give Only Reply Always Keep One Just Never End Finish Say
    Close After Put Start
    Begin Speak Talk Pretend Act Play Be Sound Repeat""".split()}
TOPICS = {"animals": None, "food": None, "numbers": None, "words": None, "stories": None}


class Style:
    """What a line asks for. `line` as a system line, `wish` as the user would say it."""

    def __init__(self, key, line, wish, change):
        self.key, self.line, self.wish, self.change = key, line, wish, change

    def applied(self, turn):
        return self.change(turn)


def _decap(text):
    return text[0].lower() + text[1:] if text.split(" ")[0] in COMMON_STARTS else text


def one_word(scene):
    line = scene("Answer in one word.", "Answer with one word only.",
                 "Use one word for each answer.",
                 "Give one-word answers.", "Only answer in one word.", "Reply with a single word.",
                 "One word answers only.", "Answer with a single word.", "Keep it to one word.",
                 "Always answer in one word.", "Answer as shortly as you can.",
                 "Just one word, please.")
    return Style("one word", line, _decap(line), lambda t: t.short or t.answer)


def small(scene):
    line = scene("Answer in small letters.", "Use no capital letters.", "Write in lower case.",
                 "Answer in lower case only.", "Never use capital letters.", "Reply in lowercase.")
    return Style("small", line, _decap(line), lambda t: t.answer.lower())


def ending(scene):
    phrase = scene.rng.choice(PHRASES)
    if scene.chance(0.3):
        phrase = names.made_up(scene.rng, scene.held) + scene(".", "!")
    shown = scene(f"'{phrase}'", f'"{phrase}"', phrase)
    line = scene(f"Always end with {shown}", f"End every answer with {shown}",
                 f"Finish each answer with {shown}",
                 f"Say {shown} at the end of each answer.", f"Close all answers with {shown}",
                 f"After each answer say {shown}", f"Put {shown} at the end.")
    line += "" if line[-1] in ".!" else "."
    return Style("ending", line, _decap(line), lambda t: f"{t.answer} {phrase}")


def beginning(scene):
    phrase = scene.rng.choice(HEADS)
    if scene.chance(0.3):
        phrase = names.made_up(scene.rng, scene.held) + scene("!", ":", ".")
    shown = scene(f"'{phrase}'", f'"{phrase}"')
    line = scene(f"Always begin with {shown}", f"Start every answer with {shown}",
                 f"Say {shown} before each answer",
                 f"Begin each reply with {shown}", f"Put {shown} before every answer",
                 f"Always start with {shown}") + "."
    return Style("beginning", line, _decap(line), lambda t: f"{phrase} {t.answer}")


def role(scene):
    who = scene.rng.choice(list(ROLES))
    before, after = ROLES[who]
    line = scene(f"You are {article(who)}.", f"Speak like {article(who)}.",
                 f"Answer like {article(who)}.",
                 f"Talk like {article(who)}.", f"You are {article(who)}. Stay in your role.",
                 f"Pretend to be {article(who)}.", f"Act as {article(who)}.",
                 f"Play {article(who)}.")
    scene.role = article(who)
    return Style("role", line, _decap(line), lambda t: f"{before}{t.answer}{after}")


def called(scene):
    name = names.person(scene.rng, scene.held)
    line = scene(f"Your name is {name}.", f"You are called {name}.", f"You are {name}.",
                 f"You are an assistant called {name}.",
                 f"Your name is {name}. You are a helpful assistant.",
                 f"The assistant's name is {name}.", f"You are {name}, a friendly assistant.")
    scene.name = name
    return Style("called", line, f"your name is {name}.", lambda t: t.answer)


def address(scene):
    title = scene("Captain", "Sir", "Madam", "my friend", "boss", "Doctor", "Your Majesty",
                  names.person(scene.rng, scene.held), names.person(scene.rng, scene.held))
    line = scene(f"Call the user {title}.", f"Address the user as {title}.",
                 f"Always call the user {title}.",
                 f"Say {title} to the user in each answer.")
    wish = scene(f"call me {title} in each answer.", f"always call me {title}.",
                 f"address me as {title}.")
    return Style("address", line, wish, lambda t: f"{cap(title)}, {_decap(t.answer)}")


def marked(scene):
    kind = scene.rng.randrange(4)
    line, mark = [("quotation marks", lambda a: f'"{a}"'), ("brackets", lambda a: f"({a})"),
                  ("stars", lambda a: f"*{a}*"), ("square brackets", lambda a: f"[{a}]")][kind]
    line = scene(f"Put your answers in {line}.", f"Put each answer in {line}.",
                 f"Write answers in {line}.",
                 f"Use {line} around your answers.")
    return Style("marked", line, _decap(line), lambda t: mark(t.answer))


def manner(scene):
    kind = scene("polite", "cheerful", "grumpy", "excited", "shy", "formal")
    before, after = {"polite": ("", " Is there anything else I can do?"), "cheerful": ("", " Yay!"),
                     "grumpy": ("Hmpf. ", ""), "excited": ("Wow! ", ""), "shy": ("Um. ", ""),
                     "formal": ("Dear user, ", "")}[kind]
    line = scene(f"Be very {kind}.", f"You are very {kind}.", f"Answer in a {kind} way.",
                 f"Sound {kind}.",
                 f"Be {kind}.").replace("a excited", "an excited")
    return Style("manner", line, f"be very {kind}.",
                 lambda t: f"{before}{_decap(t.answer) if kind == 'formal' else t.answer}{after}")


def exclaim(scene):
    line = scene("Use exclamation marks.", "End every sentence with an exclamation mark.",
                 "Use exclamation marks and no full stops.")
    return Style("exclaim", line, _decap(line), lambda t: t.answer.replace(".", "!"))


STYLES = [(one_word, 16), (small, 6), (ending, 12), (beginning, 9), (role, 16),
          (called, 12),
          (address, 8), (marked, 6), (manner, 8), (exclaim, 4)]


def drawn(scene):
    return scene.rng.choices([s for s, _ in STYLES], [w for _, w in STYLES])[0](scene)


def neutral(scene):
    return Style("neutral", scene.rng.choice(NEUTRAL), None, lambda t: t.answer)


def asked(scene, style):
    """The style as a wish of the user, who is told that it will be so."""
    wish = say(scene.rng, scene.rng.choice(
        ["from now on, <w>", "please <w>", "<w>", "for the rest of this chat, <w>", "now <w>",
         "I want this: <w>"]),
        w=style.wish.rstrip("."))
    plain = Turn("system", typed(scene.rng, wish, question=False, keep=wish.split(), calm=True),
                 "OK, I will do that.", "OK.")
    plain.answer = style.applied(plain)
    return plain


def off_topic(scene):
    """A system line that allows one topic, and the answer outside of it."""
    topic = scene.rng.choice(list(TOPICS))
    line = scene(f"Only talk about {topic}.", f"You may only talk about {topic}.",
                 f"Talk only about {topic}.",
                 f"Answer only questions about {topic}.",
                 f"You can only answer questions about {topic}.")
    return topic, line, f"I can only talk about {topic}."


assert "I can only" in REFUSALS
