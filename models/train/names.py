"""Names to copy: given names, invented ones, places. One in ten is kept for the evaluation."""
import re

from grammar import is_held
from tables import PIECES, STARTS

GIVEN = """Anna Ben Clara David Emma Felix Grace Henry Ida Jack Kate Leo Mia Noah Olga Paul Rosa Sam
Tina Viktor Wendy Adam Bella Carl Dora Eric Fiona George Hanna Ivan Julia Karl Lena Max Nina Oscar
Petra Ralf Sara Tom Ulla Vera Walter Xenia Yara Zoe Alice Bruno Cora Daniel Elsa Frank Greta Hugo
Iris Jonas Kira Lukas Maria Nils Olivia Peter Rita Simon Tara Urban Vivian Will Yusuf Zelda Aisha
Bilal Chen Deniz Emil Fatima Gina Hassan Ines Jamal Keiko Liam Mei Nadia Omar Priya Quentin Ravi
Sofia Tariq Uma Vikram Wei Ximena Yuki Zara Arthur Betty Cecil Daisy Edgar Flora Gustav Hilda Igor
Joan Kurt Lydia Martin Nora Otto Paula Robert Stella Theo Ursula Vincent Wilma Agnes Boris Celia
Dennis Edith Fred Gloria Harold Irma James Kevin Laura Mark Nancy Owen Pia Roger Susan Tony Valerie
Warren Andrea Brian Carol Diana Elena Fabian Gerda Helen Isabel Jenny Klaus Linda Moritz Natalie
Oliver Philip Rachel Stefan Teresa Ute Veronica Wolf Alma Bodo Carmen Dirk Ella Finn Gwen Heidi
Ingrid Jan Katja Lars Marta Nico Odette Pablo Rosalind Sven Tilda Ugo Vito Wanda Amir Bea Cyrus
Dalia Esra Farid Gita Hana Ilya Jorge Kofi Lina Malik Naomi Osman Pedro Rania Samir Talia Umar
Vanya Wassim Yasmin Zaid Alan Beth Colin Della Elliot Faye Gareth Holly Ian Jill Keith Lucy Megan
Neil Opal Penny Quinn Ruth Scott Tess Una Vic Wes Amy Bob Cathy Dan Eve Gus Hal Ivy Jim Kim Lou
Meg Ned Pat Ray Sue Ted Val Joe Ann Bill Mary John Jane Alex Chris Robin Charlie Sasha Toni Marco
Luca Giulia Anton Mila Erik Astrid Bjorn Freya Sigrid Tomas Pavel Zdenek Milos Jana Lenka Isaac Isla
Imogen Ismael Ivor Ibrahim Idris Ignaz Ina Ilse Iker Inga Iona Imran Itzel Ivana Meredith Melina Mehmet
Reza Renate Remo Joel Josef Joris Jonah Chad Charlotte Chandra Quincy Quirin Jacob Jackson Zack Luke Poppy
Ulrich Upton Ezra Esther Estelle Otis Orla Orson Yvonne Yann Tomke Grace Graham Gracie Shane Shawn""".split()

PLACES = """Bergen Talla Norwood Lindau Ashford Brookfield Millham Easton Weston Harwick Oakdale
Riverton Stonebridge Greenfield Hillside Marlow Kenford Dunmore Fairview Lakewood Salten Vardo
Tarven Molde Arosa Brunn Celle Dorfen Elmstead Forst Grenna Hollow Inver Kalmar Lomma Mora Nordby
Ossa Pella Quarn Rena Skara Tolga Umber Vinstra Wells Yarrow Zell Bath Cork Derby Exeter Kent Leeds
Luton Perth Rugby Truro York Como Lucca Pisa Siena Turin Bonn Kiel Ulm Trier Graz Linz""".split()

COMMON_PETS = """Bella Max Luna Rocky Milo Coco Buddy Daisy Felix Molly Oscar Simba Tiger Lucky
Shadow Snowy Spot Rex Fluffy Ginger Whiskers Smokey Pepper Cookie Biscuit Peanut Honey Toffee
Muffin Patch Socks Bruno Nala Loki Zeus Apollo Misty Pippin Pim Mimi Bobo Kiki Lulu Fifi Momo Toto
Pip Nemo Bubbles Goldie Hoppy Thumper Sparky Scout Hunter Ziggy Jazz Pixel
Waffles Pickles""".split()

SPLIT = {held: {kind: [n for n in names if is_held(n) == held]
                for kind, names in (("given", GIVEN), ("place", PLACES), ("pet", COMMON_PETS))}
         for held in (False, True)}


def made_up(rng, held):
    """A name that nobody has listed, so that it can only be copied. Its parts are all that words are
    made of: a part that was never copied in training could not be copied later."""
    while True:
        name = rng.choice(STARTS) + rng.choice(PIECES)
        if rng.random() < 0.35:
            name += rng.choice(PIECES)
        if 3 <= len(name) <= 9 and re.search("[aeiouy]", name, re.I) and is_held(name) == held:
            return name


def listed(rng, held, kind):
    return rng.choice(SPLIT[held][kind])


def person(rng, held):
    return listed(rng, held, "given") if rng.random() < 0.7 else made_up(rng, held)


def pet(rng, held):
    draw = rng.random()
    if draw < 0.35:
        return listed(rng, held, "pet")
    return listed(rng, held, "given") if draw < 0.45 else made_up(rng, held)


def place(rng, held):
    return listed(rng, held, "place") if rng.random() < 0.5 else made_up(rng, held)


def people(rng, held, count):
    """Different names, for chats with several persons."""
    found = []
    while len(found) < count:
        name = person(rng, held)
        if name not in found:
            found.append(name)
    return found
