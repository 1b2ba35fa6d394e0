"""One trial of a function: on something healthy, where it must be silent, or on something broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import diagnostics


@dataclass(frozen=True)
class Case:
    """A trial.

    Attributes:
        name: what is healthy about it, or broken.
        run: does it, and returns what the function had to say: an empty text if all is well.
        says: words that name what is broken; empty for a healthy one.
    """

    name: str
    run: Callable[[], str]
    says: str = ""

    @property
    def is_healthy(self) -> bool:
        return not self.says

    def failure(self) -> str:
        """Run it; say what was wrong with the outcome, or nothing."""
        said = self.run()
        if self.is_healthy:
            return said
        return "" if self.says in " ".join(said.split()) else f"{self.says!r} is not in: {said or 'nothing'}"


def failed(check: Callable[[], object]) -> str:
    """Return the message of a check that fails, and nothing of one that passes."""
    try:
        check()
    except diagnostics.CheckFailed as reason:
        return str(reason)
    return ""


def cases(
    healthy: dict[str, Callable[[], str]], broken: dict[str, tuple[Callable[[], str], str]]
) -> Iterator[Case]:
    """Make cases of functions by name; those of broken ones have the words to be said beside them."""
    yield from (Case(name, run) for name, run in healthy.items())
    yield from (Case(name, run, says) for name, (run, says) in broken.items())
