"""A fact as the corpus tells it, and the notation in which facts are written down.

    a small dog is barking at the door
    + a dog is making noise / the dog is not quiet
    ? the dog has heard a stranger
    - the dog is asleep

What follows from the statement stands behind `+`, what it leaves open behind `?`, what it rules out behind `-`.
All are clauses, without capital and full stop; ` / ` parts one hypothesis from the next.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Fact:
    """One statement, and hypotheses on it for each label."""

    text: str
    entailment: tuple[str, ...]
    neutral: tuple[str, ...]
    contradiction: tuple[str, ...]

    def format(self, words: Mapping[str, object]) -> "Fact":
        """The same fact with `words` put in for the names in braces."""
        told = (
            tuple(line.format_map(words) for line in lines)
            for lines in ((self.text,), self.entailment, self.neutral, self.contradiction)
        )
        (text,), *hypotheses = told
        return Fact(text, *hypotheses)


def facts(written: str) -> list[Fact]:
    """The facts in a text, in the order of writing; a blank line parts one from the next."""
    return [_fact(block) for block in written.strip().split("\n\n")]


def _fact(block: str) -> Fact:
    text, *lines = (line.strip() for line in block.strip().splitlines())
    hypotheses: dict[str, list[str]] = {"+": [], "?": [], "-": []}
    for line in lines:
        hypotheses[line[0]] += line[2:].split(" / ")
    return Fact(text, *(tuple(hypotheses[mark]) for mark in "+?-"))
