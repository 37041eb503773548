"""Short stories in simple words, from a small grammar; each of them is coherent."""
import names
from grammar import article, cap, say
from noise import typed
from tables import WORDS
from turns import Turn

HEROES = {"dog": "he", "cat": "she", "mouse": "he", "bear": "he", "fox": "she", "rabbit": "he",
          "owl": "she",
          "frog": "he", "duck": "she", "horse": "he", "lion": "he", "bird": "she", "hedgehog": "he",
          "girl": "she", "boy": "he", "king": "he", "queen": "she", "baker": "he", "farmer": "she",
          "sailor": "he", "pirate": "he", "wizard": "he", "dragon": "she", "robot": "he",
          "knight": "he",
          "elephant": "she", "turtle": "she", "ghost": "he", "monkey": "he", "squirrel": "she"}
# Anything can be asked for as a hero.
NOUNS = [w.text for w in WORDS if w.form == "a" and w.kind and " " not in w.text
         and w.text not in HEROES]
TRAITS = "small old young brave shy clever happy friendly curious lazy kind quiet".split()
PLACES = ["in a small house", "in a deep forest", "near a river", "on a farm", "in an old castle",
          "by the sea", "on a high hill", "in a little village", "under a big tree",
          "on a green island"]
THINGS = ["a golden key", "a red ball", "a warm coat", "a small boat", "a silver coin",
          "a blue hat",
          "a big cake", "an old map", "a sweet apple", "a shiny stone"]

# <h> the hero with its article, <n> its name, <s> he or she, <o> him or her, <x> his or her,
# <f> the friend, <g> the friend's name, <t> a thing, <u> the same thing with "the"
PLOTS = [
    ("One day <n> lost <t>. <S> looked everywhere, but <s> could not find it.",
     "Then <s> met <f> called <g>. <g> helped <o> to search.",
     "Together they found <u> under a bush.", "<n> was so happy that <s> gave <g> a big hug."),
    ("One night there was a loud storm. <n> was afraid and could not sleep.",
     "Then <f> called <g> knocked at the door. <g> was wet and cold.",
     "<n> let <g> in and made hot soup.", "They told stories until the storm was over."),
    ("<n> wanted to cross the river, but the water was too deep.",
     "On the other side stood <f> called <g>. <g> had a long rope.",
     "<g> threw the rope and pulled <o> across.", "From that day on they were good friends."),
    ("One morning <n> found <t> on the road. <S> did not know whose it was.",
     "<S> asked <f> called <g>. <g> began to cry, because it was hers.",
     "<n> gave <u> back at once.", "<g> thanked <o> and invited <o> to dinner."),
    ("<n> was very hungry, but there was no food at home.",
     "<S> went out and met <f> called <g>, who had a basket of bread.",
     "<g> shared the bread with <o>.", "The next day <n> baked a cake for <g>."),
    ("One day <n> went for a long walk and lost <x> way.",
     "It got dark. Then <s> saw a light and heard <f> called <g>.",
     "<g> showed <o> the way home.", "<n> never forgot how kind <g> was."),
    ("<n> wanted to learn how to sing, but <x> voice was very low.",
     "Every day <s> sang with <f> called <g>.",
     "After a long winter <n> sang better than anyone.",
     "All the people came to hear <o> and clapped."),
    ("<n> had a dream about <t>. <S> wanted to find it.",
     "So <s> travelled for three days with <f> called <g>.",
     "At last they found <u> in a cave.", "They went home and were happy."),
    ("It was <n>'s birthday, but nobody said a word.",
     "<n> was sad and went to <f> called <g>.",
     "Behind the door all <x> friends were waiting with <t>.", "It was the best day of <x> life."),
    ("One day a fire broke out near the house. <n> saw the smoke.",
     "<S> ran to <f> called <g> for help.", "They carried water until the fire was out.",
     "Everybody thanked <n> and <g>."),
    ("<n> was always alone and wished for a friend.",
     "One day <f> called <g> moved in next door.", "<n> brought <o2> <t> as a gift.",
     "After that they played together every day."),
    ("In winter <n> found <f> called <g> in the snow. <g> was very cold.",
     "<n> took <g> home and made a fire.", "In the spring <g> was strong again.",
     "<g> stayed, and they lived together happily."),
]
OPENINGS = ["Once upon a time there was <h> called <n>. <S> lived <p>.",
            "Once upon a time <h> called <n> lived <p>."]
ENDINGS = ["", "", " The end."]


def write(scene, hero=None, name=None):
    """The text of a story about a hero, and what it tells."""
    rng = scene.rng
    hero = hero or rng.choice(list(HEROES))
    friend = rng.choice([h for h in HEROES if h != hero])
    name = name or names.pet(rng, scene.held)
    other = names.pet(rng, scene.held)
    while other == name:
        other = names.pet(rng, scene.held)
    he = HEROES.get(hero, "he")
    thing = rng.choice(THINGS)
    plot = rng.choice(PLOTS)
    if "hers" in plot[1]:
        friend = rng.choice([h for h, s in HEROES.items() if s == "she" and h != hero])
    trait = rng.choice(TRAITS)
    slots = dict(h=article(f"{trait} {hero}"), n=name, s=he, S=cap(he),
                 x={"he": "his", "she": "her"}[he],
                 o={"he": "him", "she": "her"}[he], f=article(friend), g=other, t=thing,
                 u="the " + thing.split(" ", 1)[1], p=rng.choice(PLACES),
                 o2={"he": "him", "she": "her"}[HEROES[friend]])
    opening = rng.choice(OPENINGS)
    text = " ".join(say(rng, part, **slots) for part in (opening, *plot)) + rng.choice(ENDINGS)
    return text, dict(hero=hero, name=name, friend=friend, other=other, place=slots["p"])


def story(scene):
    rng = scene.rng
    hero = rng.choice(list(HEROES) * 3 + NOUNS) if scene.chance(0.55) else None
    name = names.pet(rng, scene.held) if hero and scene.chance(0.5) else None
    about = f" about {article(hero)}" if hero else ""
    about += (scene(" called ", " named ") + name) if name else ""
    again = "stories" in scene.lists and not hero
    ask = scene("tell me a story", "tell me a short story", "can you tell me a story",
                "write a story",
                "please tell a story", "I want to hear a story", "do you know a story",
                "make up a story",
                "write a short story", "story", "tell a tale", "I would like a story", "a story",
                "could you write a little story", "give me a story")
    if again:
        ask = scene("tell me another story", "another story", "one more story", "a different story")
    text, told = write(scene, hero, name)
    scene.lists["stories"] = told
    user = typed(rng, ask + about, question=ask[:2] in ("ca", "do", "co"), keep=[name] if name
                 else ())
    return Turn("story", user, text, long=True)


def about_story(scene):
    """A question about the last story of the chat."""
    told = scene.lists["stories"]
    hero, friend = told["hero"], told["friend"]
    user, answer = scene.rng.choice([
        (scene(f"what was the {hero} called", f"what is the name of the {hero}",
               f"who is the {hero}"),
         f"The {hero} was called {told['name']}."),
        (scene(f"what was the {friend} called", f"what is the name of the {friend}"),
         f"The {friend} was called {told['other']}."),
        (scene(f"who is {told['other']}", f"who was {told['other']}"),
         f"{told['other']} is {article(friend)}."),
        (scene(f"who is {told['name']}", f"who was {told['name']}"),
         f"{told['name']} is {article(hero)}."),
        (scene(f"where did {told['name']} live", f"where did the {hero} live"),
         f"{told['name']} lived {told['place']}."),
        (scene("what is the story about", "who is the story about", "what was the story about"),
         f"The story is about {article(hero)} called {told['name']}.")])
    return Turn("recall", typed(scene.rng, user, keep=[told["name"], told["other"]]), answer)


def document(scene):
    """A story without a chat around it, so that "Once upon a time" can be continued."""
    return write(scene)[0]
