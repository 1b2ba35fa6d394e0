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
        kind: which of the rule's causes it is; empty if the rule has no names for them.
        what: the value that the message names; None if it names none.
    """

    rule: str
    cause: str
    fixes: tuple[str, ...]
    said: str
    kind: str = ""
    what: str | None = None
