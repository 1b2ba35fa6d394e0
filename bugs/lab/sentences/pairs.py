"""Sentence pairs for natural language inference, made from scenes, reports and stories.

A premise tells up to five facts; three hypotheses are written for it, one a label, as in MNLI, each of them
decided by one of the facts. The same seed gives the same pairs, on any machine.
"""

import random
from collections.abc import Iterator
from typing import NamedTuple

from bugs.lab.sentences.facts import Fact
from bugs.lab.sentences.people import scene
from bugs.lab.sentences.reports import REPORTS
from bugs.lab.sentences.stories import STORIES

LABELS = ("entailment", "neutral", "contradiction")
SHORTEST, LONGEST = 5, 60  # words in a premise


class Pair(NamedTuple):
    """A premise, a hypothesis, and the index of the label in `LABELS`."""

    premise: str
    hypothesis: str
    label: int


def pairs(seed: int) -> Iterator[tuple[Pair, ...]]:
    """Endless: for each new premise its three pairs, one a label; no premise comes twice."""
    rng = random.Random(seed)
    seen = set()
    while True:
        facts = _facts(rng)
        premise = _tell(rng, facts)
        if premise in seen or not SHORTEST <= len(premise.split()) <= LONGEST:
            continue
        seen.add(premise)
        triple = []
        for label, name in enumerate(LABELS):
            fact = facts[0] if rng.random() < 0.3 else rng.choice(facts)
            triple.append(Pair(premise, _sentence(rng.choice(getattr(fact, name))), label))
        yield tuple(triple)


def _facts(rng: random.Random) -> list[Fact]:
    """The facts of one premise, in the order of telling."""
    if rng.random() < 0.6:
        lead, *rest = scene(rng)
        if rng.random() < 0.12:  # the people are out of the picture
            lead, *rest = [fact for fact in rest if "wearing" not in fact.text]
    else:
        lead, *rest = rng.choice(REPORTS + STORIES)(rng)
    keep = sorted(rng.sample(range(len(rest)), rng.randint(0, min(4, len(rest)))))
    return [lead, *(rest[place] for place in keep)]


def _tell(rng: random.Random, facts: list[Fact]) -> str:
    """The facts as sentences; now and then two short ones share a sentence."""
    sentences, waiting = [], [fact.text for fact in facts]
    while waiting:
        clause = waiting.pop(0)
        if waiting and rng.random() < 0.35 and _go_together(clause, waiting[0]):
            clause = f"{clause}, and {waiting.pop(0)}"
        sentences.append(_sentence(clause))
    return " ".join(sentences)


def _go_together(first: str, second: str) -> bool:
    """Whether two clauses make a sentence that is neither crowded nor far-fetched."""
    if any(word in f"{first} {second}" for word in (" and ", " but ")):
        return False
    of_time = [clause.startswith(("it is", "it was")) for clause in (first, second)]
    of_day = [start and clause.endswith("day") for start, clause in zip(of_time, (first, second), strict=True)]
    return all(of_time) or not any(of_day)


def _sentence(clause: str) -> str:
    """A clause with its capital and its full stop."""
    return f"{clause[0].upper()}{clause[1:]}."
