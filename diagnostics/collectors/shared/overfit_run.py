"""One run of the overfit trial: its settings, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Run:
    """One training run of a fresh copy on the batch.

    Attributes:
        losses: before each step.
        update_ratios: for each step, the median over weights of |update| / |weight|.
        output_spread: see `OverfitFacts`.
        symmetric: see `OverfitFacts`.
        pace: seconds a step, without the first, which may be the one that compiles.
    """

    losses: tuple[float, ...]
    update_ratios: tuple[float, ...] = ()
    output_spread: float | None = None
    symmetric: tuple[str, ...] = ()
    pace: float = 0.0

    @property
    def lowest(self) -> float:
        """The least loss; NaN counts as the worst."""
        return min((loss for loss in self.losses if loss == loss), default=float("inf"))


@dataclass(frozen=True)
class Plan:
    """The settings of one run.

    Attributes:
        learning_rate: for every parameter group; for the user's optimizer at its own rates, the largest of them.
        theirs: whether the user's optimizer is used (a fresh one with its settings), or AdamW.
        factor: times the user's rates, if `theirs`.
        steps: at most.
        enough: the loss at which to stop; None: never.
        rescaled: whether the targets of a regression are brought to mean 0 and standard deviation 1.
        batches: how many batches take turns, one a step; `enough` is for the mean over a turn of all.
        stop: asked after each loss whether the run may end for another reason.
    """

    learning_rate: float
    theirs: bool
    factor: float
    steps: int
    enough: float | None
    rescaled: bool = False
    batches: int = 1
    stop: Callable[[], bool] = lambda: False

    def got_there(self, losses: Sequence[float]) -> bool:
        """Whether these losses are low enough."""
        turn = losses[-self.batches :]
        return self.enough is not None and len(turn) == self.batches and sum(turn) / len(turn) <= self.enough

    def is_done(self, losses: Sequence[float]) -> bool:
        """Return whether the run may stop: it has succeeded, never will, or is told to."""
        return losses[-1] != losses[-1] or self.got_there(losses) or self.stop()
