"""Scenes: people at work or at play, what they wear, and what is around them."""

import random

from bugs.lab.sentences.facts import Fact, facts
from bugs.lab.sentences.names import NUMBERS, WEEKDAYS
from bugs.lab.sentences.scenes import ACTIVITIES, COLOURS, FURS, GARMENTS, PLURALS, TRAITS, Activity
from bugs.lab.sentences.surroundings import STATEMENTS

# a scene is told in one tense throughout
PAST = {
    "is": "was", "are": "were", "has": "had", "have": "had", "will": "would", "does": "did", "sell": "sold",
    "belong": "belonged",
}  # fmt: skip
PRESENT = {verb: verb for verb in PAST}

INDOORS = ("home", "hall", "workshop")
FAR_FROM_INDOORS = ("on a mountain top", "on a beach", "in the middle of a forest", "on a bus")
FAR_FROM_OUTDOORS = ("in a cinema", "in an underground car park", "inside a bank", "in a hospital bed")

# what may be so of anybody (after the subject), and of any group
OPEN = (
    "{be} from a large family", "{be} left-handed", "{be} good at singing", "{be} in love",
    "{have} relatives in Canada", "{have} a house by a lake", "{will} be famous one day", "{will} go home soon",
)  # fmt: skip
OPEN_OF_GROUPS = ("{be} related to each other", "{have} known each other for years")


def scene(rng: random.Random) -> list[Fact]:
    """The facts of one scene, what the people do first."""
    tense = PRESENT if rng.random() < 0.65 else PAST
    activity = rng.choice(ACTIVITIES)
    count = min(rng.choice((1, 1, 2, 3, 4)), activity.most)
    actor = rng.choice(activity.actors)
    actors = actor if count == 1 else PLURALS.get(actor, f"{actor}s")
    place, surroundings = rng.choice(activity.places)
    doing = _doing(rng, activity, count, actor, actors, place, surroundings, tense)
    clothes = [_wearing(rng, count, actors, tense)] if rng.random() < 0.35 else []
    return [doing, *clothes, *_around(rng, surroundings, tense)]


def _doing(
    rng: random.Random,
    activity: Activity,
    count: int,
    actor: str,
    actors: str,
    place: str,
    surroundings: str,
    tense: dict[str, str],
) -> Fact:
    is_, are = tense["is"], tense["are"]
    be, have = (is_, tense["has"]) if count == 1 else (are, tense["have"])
    trait = rng.choice((None, *(trait for trait in TRAITS if _suits(trait, actor, surroundings))))
    described = f"{trait} {actors}" if trait else actors
    who = with_article(described) if count == 1 else f"{NUMBERS[count]} {described}"
    some = with_article(actors) if count == 1 else f"some {actors}"
    they, people = f"the {actors}", "children" if actor in ("girl", "boy") else "people"

    thing, kind = rng.choice(activity.things)
    the_thing = f"the {thing.partition(' ')[2]}"
    doing_it, doing_kind = activity.doing.format(a=the_thing), activity.doing.format(a=kind)
    again, broadly = (doing.format(the=the_thing, kind=kind) for doing in (activity.again, activity.broadly))
    first, second = (f"{they} {be} {doing.format(the=the_thing)}" for doing in rng.sample(activity.instead, 2))
    stated, unstated = rng.sample(activity.details, 2)
    opens = [line.format(be=be, have=have, will=tense["will"]) for line in rng.sample(OPEN, 2)]
    inside = surroundings in INDOORS
    far = rng.choice(FAR_FROM_INDOORS if inside else FAR_FROM_OUTDOORS)
    told = f"{who} {be} {activity.doing.format(a=thing)} {place}"
    more = []
    if rng.random() < 0.4:
        told += f" {stated}"
        more += [f"+ {they} {be} {doing_it} {stated} / {they} {be} {doing_it} {stated}"]
    if trait:
        so, not_so = TRAITS[trait]
        more += [f"+ {they} {be} {so}", f"- {they} {be} {not_so}"]
    if count == 1:
        more += [f"- a group of {rng.choice(NUMBERS[6:13])} {people} {is_} {doing_it}"]
    else:
        together = rng.choice(OPEN_OF_GROUPS).format(be=be, have=have)
        more += [
            f"+ more than one person {is_} {doing_it} / {NUMBERS[count]} {people} {are} {doing_it}",
            f"? {they} {together}",
            f"- only one {actor} {is_} {doing_it} / each of {they} {is_} in a different place",
        ]
    return facts(
        f"""
        {told}
        + {they} {be} {again} / {they} {be} {broadly} / someone {is_} {doing_it}
        + {who} {be} {doing_kind} / there {be} {some} {place} / {they} {be} {"inside" if inside else "outside"}
        ? {they} {be} {doing_it} {unstated} / {they} {be} {doing_it} {unstated}
        ? {they} {opens[0]} / {they} {opens[1]}
        - {first} / {second} / {they} {be} {far}
        - nobody {is_} {doing_it} / {they} {be} not {doing_it}
        """
        + "\n".join(more)
    )[0]


def _wearing(rng: random.Random, count: int, actors: str, tense: dict[str, str]) -> Fact:
    colour, other = rng.sample(COLOURS, 2)
    garment, garments = rng.choice(GARMENTS)
    is_, are, has, have = (tense[verb] for verb in ("is", "are", "has", "have"))
    if count == 1:
        return facts(
            f"""
            the {actors} {is_} wearing {with_article(f"{colour} {garment}")}
            + the {actors} {has} {with_article(garment)} on / the {garment} of the {actors} {is_} {colour}
            + the {actors} {is_} wearing something {colour}
            ? the {garment} of the {actors} {is_} new / the {garment} of the {actors} {has} a hole in it
            ? the {garment} of the {actors} {is_} a present
            - the {garment} of the {actors} {is_} {other} / the {actors} {is_} not wearing {with_article(garment)}
            """
        )[0]
    same = f"{are} all the same colour" if count > 2 else f"{have} the same colour"
    return facts(
        f"""
        {"both" if count == 2 else "all"} of the {actors} {are} wearing {colour} {garments}
        + the {garments} of the {actors} {are} {colour} / the {actors} {have} {garments} on
        + the {garments} of the {actors} {same}
        ? the {garments} of the {actors} {are} new / the {garments} of the {actors} {are} part of a uniform
        ? the {actors} {have} sewn the {garments} themselves
        - the {garments} of the {actors} {are} {other} / none of the {actors} {is_} wearing {with_article(garment)}
        - only one of the {actors} {is_} wearing {with_article(garment)}
        """
    )[0]


def _around(rng: random.Random, surroundings: str, tense: dict[str, str]) -> list[Fact]:
    """One statement of each topic that suits the surroundings, in a random order."""
    suitable = [(topic, template) for topic, where, template in STATEMENTS if surroundings in where]
    topics = sorted({topic for topic, _ in suitable})
    rng.shuffle(topics)
    told = []
    for topic in topics:
        template = rng.choice([template for its_topic, template in suitable if its_topic == topic])
        (colour, other), (fur, otherfur) = rng.sample(COLOURS, 2), rng.sample(FURS, 2)
        words = {
            **tense,
            "colour": colour,
            "other": other,
            "fur": fur,
            "otherfur": otherfur,
            "number": rng.choice(NUMBERS[2:7]),
            "dozens": rng.randint(16, 40),
            "weekday": rng.choice(WEEKDAYS),
            "weekend": rng.choice(("Saturday", "Sunday")),
        }
        told.append(template.format(words))
    return told


def _suits(trait: str, actor: str, surroundings: str) -> bool:
    """Whether the adjective suits the person and the place."""
    if trait == "barefoot":
        return surroundings == "shore"
    return actor not in ("girl", "boy") or trait not in ("elderly", "young")


def with_article(noun: str) -> str:
    """`noun` behind the indefinite article that its sound asks for."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
