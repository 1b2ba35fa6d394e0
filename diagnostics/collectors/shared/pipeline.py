"""What every framework's probe of a training pipeline looks like to the library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from diagnostics.facts.pipeline import Fact


class CannotJudge(Exception):
    """A stage that could not be looked at; the message says why. The stages after it go on."""


class StageFailed(Exception):
    """A stage from which no training can go on; the message says what was there and what to do."""


class UsersCodeRaised(Exception):
    """The user's own code (dataset, collator, model, loss, metric) raised; the cause is what it raised."""


@contextmanager
def users_code() -> Iterator[None]:
    """Mark what runs inside as the user's: what it raises is a fact, not a fault of this library."""
    try:
        yield
    except (CannotJudge, StageFailed, UsersCodeRaised):
        raise
    except (Exception, SystemExit) as error:  # KeyboardInterrupt and its like are for whoever runs this
        raise UsersCodeRaised(type(error).__name__) from error


class Pipeline(Protocol):
    """A training pipeline, one method a stage, in the order in which the data passes them.

    A stage yields facts one by one. Whoever reads them stops as soon as a fact gives an error, so that what
    could harm (a label out of range on a GPU) is never run. A stage may raise the exceptions above.

    Attributes:
        name: what is examined, for the title of the report.
        forward_is_harmless: whether the forward stage may be walked to its end after an error: where a label out
            of range gives a loss of NaN, that is worth seeing.
    """

    name: str
    forward_is_harmless: bool

    def untouched(self) -> AbstractContextManager[None]:
        """Put every random state back, on leaving, to what it was on entering."""

    def dataset(self) -> Iterator[Fact]:
        """Look at the model as it is, and at some rows."""

    def batch(self) -> Iterator[Fact]:
        """Collate a batch as training would."""

    def forward(self) -> Iterator[Fact]:
        """Run a copy of the model, and the loss."""

    def backward(self) -> Iterator[Fact]:
        """Compute the gradients of the copy."""

    def optimizer_step(self) -> Iterator[Fact]:
        """Look at what the optimizer holds."""

    def overfit(self) -> Iterator[Fact]:
        """Train the copy on the one batch."""

    def evaluation(self) -> Iterator[Fact]:
        """Put a question with a known answer to the user's metric."""

    def reproduction(self) -> Iterator[Fact]:
        """Make one step twice from the same state and seeds."""
