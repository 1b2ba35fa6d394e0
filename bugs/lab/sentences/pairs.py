"""Sentence pairs for natural language inference, made from scenes and reports.

A premise tells up to five facts; three hypotheses are written for it, one a label, as in MNLI. Each is decided by
one of the facts. The same seed gives the same pairs, on any machine.
"""

import random
from collections.abc import Iterator
from typing import NamedTuple

from bugs.lab.sentences.reports import NUMBERS, REPORTS, WEEKDAYS, Fact
from bugs.lab.sentences.scenes import ACTIVITIES, COLOURS, FURS, GARMENTS, PLURALS, TRAITS
from bugs.lab.sentences.surroundings import INDOORS, SIDES

LABELS = ("entailment", "neutral", "contradiction")
SHORTEST, LONGEST = 5, 60  # words in a premise

PRESENT = {
    "is": "is",
    "are": "are",
    "has": "has",
    "have": "have",
    "will": "will",
    "does": "does",
    "sell": "sell",
}
PAST = {
    "is": "was",
    "are": "were",
    "has": "had",
    "have": "had",
    "will": "would",
    "does": "did",
    "sell": "sold",
}
PRESENT |= {"belong": "belong"}
PAST |= {"belong": "belonged"}

# what may be so of anybody, and what cannot be so of anybody who is busy with something else
GENERAL_NEUTRAL = (
    "{they} {be} from a large family",
    "{they} {will_} be famous one day",
    "{they} {have_} relatives in Canada",
    "{they} {be} left-handed",
    "{they} {be} good at singing",
    "{they} {will_} go home soon",
)
TOGETHER_NEUTRAL = ("{they} {are} related to each other", "{they} {have} known each other for years")
ELSEWHERE_INDOORS = ("on a mountain top", "on a beach", "in the middle of a forest", "on a bus")
ELSEWHERE_OUTDOORS = ("in a cinema", "in an underground car park", "inside a bank", "in a hospital bed")


class Pair(NamedTuple):
    """A premise, a hypothesis, and the index of the label in `LABELS`."""

    premise: str
    hypothesis: str
    label: int


def with_article(noun: str) -> str:
    """`noun` behind the indefinite article that its sound asks for."""
    vowel = noun[0] in "aeiou" and not noun.startswith(("uni", "use", "one", "eu"))
    return f"{'an' if vowel else 'a'} {noun}"


def definite(phrase: str) -> str:
    """`a red bicycle` as `the red bicycle`; only the first article is changed."""
    article, _, rest = phrase.partition(" ")
    return f"the {rest}" if article in ("a", "an", "some") else phrase


def fits(trait: str, actor: str, surroundings: str) -> bool:
    """Whether the adjective suits the person and the place."""
    if actor in ("girl", "boy"):
        return trait not in ("elderly", "young")
    return trait != "barefoot" or surroundings == "shore"


def sentence(clause: str) -> str:
    """A clause with its capital and its full stop."""
    return f"{clause[0].upper()}{clause[1:]}."


def scene(rng: random.Random) -> list[Fact]:
    """People at work or at play, and what is around them."""
    activity = rng.choice(ACTIVITIES)
    tense = PRESENT if rng.random() < 0.65 else PAST
    count = rng.choice((1, 1, 2, 3, 4))
    count = min(count, activity.most)
    actor = rng.choice(activity.actors)
    place, surroundings = rng.choice(activity.places)
    suited = [trait for trait in TRAITS if fits(trait, actor, surroundings)]
    trait = rng.choice((None, *suited))
    actors = actor if count == 1 else PLURALS.get(actor, f"{actor}s")
    described = f"{trait} {actors}" if trait else actors
    who = with_article(described) if count == 1 else f"{NUMBERS[count]} {described}"
    they = f"the {actors}"
    one = count == 1
    be = tense["is" if one else "are"]
    have = tense["has" if one else "have"]
    thing, kind = rng.choice(activity.things)
    indoors = surroundings in INDOORS.split()
    words = {
        **tense,
        "a": thing,
        "the": definite(thing),
        "kind": kind,
        "they": they,
        "be": be,
        "have_": have,
        "will_": tense["will"],
    }
    doing, again, broadly = (
        part.format_map(words) for part in (activity.doing, activity.again, activity.broadly)
    )
    doing_it = activity.doing.replace("{a}", "{the}").format_map(words)
    doing_kind = activity.doing.replace("{a}", kind)
    stated, unstated = rng.sample(activity.details, 2)
    told = rng.random() < 0.4
    lead = f"{who} {be} {doing} {place}" + (f" {stated}" if told else "")

    is_one, is_many = tense["is"], tense["are"]
    people = "children" if actor in ("girl", "boy") else "people"
    entailment = [
        f"{they} {be} {again}",
        f"{they} {be} {broadly}",
        f"someone {is_one} {doing_it}",
        f"{who} {be} {doing_kind}",
        f"{they} {be} {'inside' if indoors else 'outside'}"
        if surroundings != "hall"
        else f"{they} {be} {place}",
        f"there {be} {with_article(actors) if one else 'some ' + actors} {place}",
    ]
    neutral = [f"{they} {be} {doing_it} {unstated}", f"{they} {be} {doing_it} {unstated}"]
    neutral += rng.sample([line.format_map(words) for line in GENERAL_NEUTRAL], 2)
    contradiction = [f"{they} {be} {line.format_map(words)}" for line in activity.instead]
    contradiction += [
        f"nobody {is_one} {doing_it}",
        f"{they} {be} not {doing_it}",
        f"{they} {be} {rng.choice(ELSEWHERE_INDOORS if indoors else ELSEWHERE_OUTDOORS)}",
    ]
    if told:
        entailment += [f"{they} {be} {doing_it} {stated}"] * 2
    if not one:
        entailment += [
            f"more than one person {is_one} {doing_it}",
            f"{NUMBERS[count]} {people} {is_many} {doing_it}",
        ]
        neutral += [line.format_map(words) for line in TOGETHER_NEUTRAL]
        contradiction += [
            f"only one {actor} {is_one} {doing_it}",
            f"each of {they} {is_one} in a different place",
        ]
    else:
        contradiction += [f"a group of {rng.choice(NUMBERS[6:13])} {people} {is_one} {doing_it}"]
    if trait:
        entailment += [f"{they} {be} {TRAITS[trait][0]}"]
        contradiction += [f"{they} {be} {TRAITS[trait][1]}"]
    facts = [Fact(lead, tuple(entailment), tuple(neutral), tuple(contradiction))]

    if rng.random() < 0.35:
        facts.append(clothing(rng, actors, count, tense))
    return facts + around(rng, surroundings, tense)


def clothing(rng: random.Random, actors: str, count: int, tense: dict[str, str]) -> Fact:
    """What the people of a scene wear."""
    colour, other = rng.sample(COLOURS, 2)
    garment, garments = rng.choice(GARMENTS)
    is_, are, has, have = (tense[word] for word in ("is", "are", "has", "have"))
    if count == 1:
        it = f"the {garment} of the {actors}"
        return Fact(
            f"the {actors} {is_} wearing {with_article(f'{colour} {garment}')}",
            (
                f"the {actors} {has} a {garment} on",
                f"{it} {is_} {colour}",
                f"the {actors} {is_} wearing something {colour}",
            ),
            (f"{it} {is_} new", f"{it} {has} a hole in it", f"{it} {is_} a present"),
            (f"{it} {is_} {other}", f"the {actors} {is_} not wearing a {garment}"),
        )
    all_of = "both of" if count == 2 else "all of"
    return Fact(
        f"{all_of} the {actors} {are} wearing {colour} {garments}",
        (
            f"the {garments} of the {actors} {are} {colour}",
            f"the {actors} {have} {garments} on",
            f"the {garments} {are} all the same colour"
            if count > 2
            else f"the two {garments} {have} the same colour",
        ),
        (
            f"the {garments} of the {actors} {are} new",
            f"the {actors} {have} sewn the {garments} themselves",
            f"the {garments} {are} part of a uniform",
        ),
        (
            f"the {garments} of the {actors} {are} {other}",
            f"none of the {actors} {is_} wearing a {garment}",
            f"only one of the {actors} {is_} wearing a {garment}",
        ),
    )


def around(rng: random.Random, surroundings: str, tense: dict[str, str]) -> list[Fact]:
    """The side facts that suit a kind of place, one of each topic, in a random order."""
    suitable = [side for side in SIDES if surroundings in side.kinds.split()]
    topics = sorted({side.topic for side in suitable})
    rng.shuffle(topics)
    facts = []
    for topic in topics:
        side = rng.choice([side for side in suitable if side.topic == topic])
        (colour, other), (fur, otherfur) = rng.sample(COLOURS, 2), rng.sample(FURS, 2)
        words = {
            **tense,
            "colour": colour,
            "other": other,
            "number": NUMBERS[rng.randint(2, 6)],
            "fur": fur,
            "otherfur": otherfur,
            "dozens": str(rng.randint(16, 40)),
            "weekday": rng.choice(WEEKDAYS),
            "weekend": rng.choice(("Saturday", "Sunday")),
        }
        text, *hypotheses = (
            tuple(line.format_map(words) for line in lines)
            for lines in ((side.text,), side.entailed, side.neutral, side.contradicted)
        )
        facts.append(Fact(text[0], *hypotheses))
    return facts


def told(rng: random.Random) -> list[Fact]:
    """The facts of one premise, in the order of telling."""
    if rng.random() < 0.6:
        lead, *rest = scene(rng)
        if rng.random() < 0.12 and len(rest) > 1:  # the people are out of the picture
            lead, *rest = rest
    else:
        lead, *rest = rng.choice(REPORTS)(rng)
    keep = sorted(rng.sample(range(len(rest)), rng.randint(0, min(4, len(rest)))))
    return [lead, *(rest[place] for place in keep)]


def joinable(first: str, second: str) -> bool:
    """Whether two clauses make a sentence that is neither crowded nor far-fetched."""
    if " and " in first + second or " but " in first + second:
        return False
    dates = [clause.startswith(("it is", "it was")) for clause in (first, second)]
    days = [clause.rsplit(" ", 1)[-1].endswith("day") for clause in (first, second)]
    return all(dates) or not any(date and day for date, day in zip(dates, days, strict=True))


def tell(rng: random.Random, facts: list[Fact]) -> str:
    """The facts as sentences; now and then two short ones share a sentence."""
    sentences, waiting = [], [fact.text for fact in facts]
    while waiting:
        clause = waiting.pop(0)
        if waiting and rng.random() < 0.35 and joinable(clause, waiting[0]):
            clause = f"{clause}, and {waiting.pop(0)}"
        sentences.append(sentence(clause))
    return " ".join(sentences)


def pairs(seed: int) -> Iterator[tuple[Pair, Pair, Pair]]:
    """Endless: for each new premise its three pairs, one a label; no premise comes twice."""
    rng = random.Random(seed)
    seen = set()
    while True:
        facts = told(rng)
        premise = tell(rng, facts)
        if premise in seen or not SHORTEST <= len(premise.split()) <= LONGEST:
            continue
        seen.add(premise)
        written = []
        for label, name in enumerate(LABELS):
            fact = facts[0] if rng.random() < 0.3 else rng.choice(facts)
            written.append(Pair(premise, sentence(rng.choice(getattr(fact, name))), label))
        yield tuple(written)
