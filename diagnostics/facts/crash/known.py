"""A fact about a failure whose message explains itself: the table of messages holds cause and fix."""

from __future__ import annotations

from diagnostics.facts.frozen import frozen


@frozen
class KnownFailure:
    """A message whose cause is the same wherever it is raised.

    Attributes:
        rule: the rule that reports it.
        cause: what is wrong, in a sentence or two.
        fixes: what to change, the most likely first.
        said: the words that gave it away.
    """

    rule: str
    cause: str
    fixes: tuple[str, ...]
    said: str
