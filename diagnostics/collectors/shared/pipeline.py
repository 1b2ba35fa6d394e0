"""The stages of a training pipeline, whatever the framework."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from diagnostics.facts.pipeline import Fact

from .learnability import KeptRows

if TYPE_CHECKING:
    from diagnostics.collectors.subset_trials.choice import Subsets

OVERFIT_SECONDS = 120.0  # after which no further run is begun: a large model on a CPU may take that for one


class CannotJudge(Exception):
    """A stage cannot be examined; the message says why. Later stages go on."""


class StageFailed(Exception):
    """Training cannot go on from a stage; the message says what was found and what to do."""


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


class Pipeline(ABC):
    """A training pipeline, one method per stage, in the order in which data passes through them.

    A stage yields facts one by one. The reader stops as soon as a fact gives an error, so that what could do harm
    (a label out of range on a GPU) is never run. A stage may raise the exceptions above.

    Attributes:
        name: what is examined, for the title of the report.
        forward_is_harmless: whether the forward stage may be walked to its end after an error: where a label out
            of range gives a loss of NaN, that is worth seeing.
        not_offered: by the method's name, why the pipeline lacks a stage.
        awaits_end: whether `overfit` is to be called again when the training has ended.
        overfit_seconds: after which `overfit` begins no further run.
    """

    name: str
    forward_is_harmless = False
    not_offered: Mapping[str, str] = {}
    awaits_end = False
    overfit_seconds = OVERFIT_SECONDS

    @abstractmethod
    def untouched(self) -> AbstractContextManager[None]:
        """Restore every random state on leaving to what it was on entering."""

    def data_sources(self) -> tuple[Any, ...]:
        """Return what makes the batches, to look for tokenizers and transforms in: collators, datasets."""
        return ()

    @abstractmethod
    def dataset(self) -> Iterator[Fact]:
        """Describe the model as it is, and some rows."""

    @abstractmethod
    def batch(self) -> Iterator[Fact]:
        """Collate a batch as training would."""

    @abstractmethod
    def forward(self) -> Iterator[Fact]:
        """Run a copy of the model, and the loss."""

    def backward(self) -> Iterator[Fact]:
        """Compute the gradients of the copy."""
        raise CannotJudge(self.not_offered["backward"])

    @abstractmethod
    def optimizer_step(self) -> Iterator[Fact]:
        """Describe what the optimizer holds."""

    def overfit(self) -> Iterator[Fact]:
        """Train the copy on the one batch."""
        raise CannotJudge(self.not_offered["overfit"])

    def overfit_is_needed(self, losses: Sequence[float]) -> bool:
        """Whether a training with these losses, one a step, leaves open whether the model can learn."""
        return True

    def subsets(self, classes: frozenset[int]) -> Subsets:
        """Return what trains copies on parts of the batch; after `forward`.

        Args:
            classes: that were seen in the data, to be in one batch together; empty if there are none.
        """
        raise CannotJudge(self.not_offered["overfit"])

    def kept_rows(self) -> KeptRows | None:
        """Copy rows of the data for the end of the run; None where a watcher sees the targets itself."""
        return None

    def evaluation_batch(self) -> Any:
        """Return a batch of the evaluation data; None where there is none that can be read unnoticed."""
        return None

    def evaluation(self) -> Iterator[Fact]:
        """Test the user's metric on predictions with a known answer."""
        raise CannotJudge(self.not_offered["evaluation"])

    def reproduction(self) -> Iterator[Fact]:
        """Make one step twice from the same state and seeds."""
        raise CannotJudge(self.not_offered["reproduction"])
