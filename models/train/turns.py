"""One question with its one right answer, and what a chat remembers between them."""
import dataclasses


@dataclasses.dataclass
class Turn:
    task: str
    user: str
    answer: str
    short: str = None     # the answer in one word, where there is one
    refusal: bool = False
    long: bool = False    # a story: no style is put on it


@dataclasses.dataclass
class Scene:
    """The state of one chat while it is written."""
    rng: object
    held: bool = False            # whether this chat may use what the evaluation keeps for itself
    facts: dict = dataclasses.field(default_factory=dict)
    lists: dict = dataclasses.field(default_factory=dict)  # how far each list has been told
    turns: list = dataclasses.field(default_factory=list)
    name: str = "Ember"
    role: str = None

    def __call__(self, *choices):
        return self.rng.choice(choices)

    def chance(self, p):
        return self.rng.random() < p
