"""`overfit`: trains copies on 1, 2 and 5 examples and on one batch, and says at which count learning stops."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from diagnostics.errors import InvalidInput

from .examine import pipeline_for
from .walk import OVERFIT, Walk

if TYPE_CHECKING:
    from diagnostics.collectors.shared.pipeline import Pipeline
    from diagnostics.facts.pipeline import Fact
    from diagnostics.facts.trials import SubsetTrial
    from diagnostics.report.overfit import OverfitReport

SECONDS = 60.0
LEAST_FOR_RULES = 5.0  # seconds that the rules' own trial of the batch may take, whatever is left


def overfit(
    target: Any, loader: Any = None, loss_fn: Any = None, optimizer: Any = None, *, seconds: float = SECONDS
) -> OverfitReport:
    """Overfit copies of a model on purpose: on 1, then 2, then 5 examples, then on one batch with every label.

    A model that works learns so few examples by heart, whatever their labels. At which count it stops says
    where to look: one example fails if loss, label or gradient are wired wrongly; two fail where one is
    learned if the inputs do not reach the prediction; five if labels contradict each other; the batch if rate or
    capacity are too small.

        print(diagnostics.overfit(trainer))
        result = diagnostics.overfit(model, loader, loss_fn, optimizer)
        result = diagnostics.overfit(keras_model, dataset)
        result.save("overfit.html")  # the curves, and how the predictions sharpen

    The data, the batch, the loss and the gradients are examined first, as `diagnostics.examine` does; an error
    there ends it. Each run starts from the weights that the model has now, with the same seeds, dropout off,
    and the user's optimizer rebuilt; where that one does not get there, AdamW at other rates is tried. Only
    copies are trained: the model, its optimizer, the data's order and all random states stay bit for bit as
    they are.

    Args:
        target: see `diagnostics.examine`, likewise `loader`, `loss_fn` and `optimizer`.
        loader: up to 8 batches are read, to find every label.
        loss_fn: called as ``loss_fn(prediction, target)``.
        optimizer: read, never stepped. None: only AdamW is tried.
        seconds: to spend on training, shared out among the counts; the stages before are not counted, and a step
            that has begun is finished.

    Returns:
        An `OverfitReport`: `stops_at`, `points_to`, `history` (plain data), `report` (with the findings of the
        rules), text when printed, HTML in a notebook or by `save("overfit.html")`.

    Raises:
        InvalidInput: the arguments cannot be examined.
    """
    from diagnostics.report.build import finished
    from diagnostics.report.overfit import OverfitReport

    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
        raise InvalidInput(f"overfit(seconds={seconds!r}): expected a number above 0.")
    begun = time.monotonic()
    walk = _OverfitWalk(pipeline_for("overfit", target, loader, loss_fn, optimizer), float(seconds))
    report = finished(walk.report())
    return OverfitReport(report, tuple(walk.trials), time.monotonic() - begun, float(seconds))


class _OverfitWalk(Walk):
    """Walks through the stages before training, and trains on a few examples then.

    Args:
        pipeline: to walk through.
        seconds: to spend on training.

    Attributes:
        trials: one a count of examples.
    """

    verb = "overfit"

    def __init__(self, pipeline: Pipeline, seconds: float) -> None:
        super().__init__(pipeline)
        self._seconds = seconds
        self.trials: list[SubsetTrial] = []
        del self.stages["evaluation metric"], self.stages[OVERFIT]
        self.stages |= {"a few examples": self._few_examples, OVERFIT: self._for_rules}

    def _few_examples(self) -> Iterator[Fact]:
        """Train on the subsets; no rule judges one of them alone."""
        from diagnostics.collectors.subset_trials.plan import trials
        from diagnostics.facts.data import DatasetFacts

        (rows,) = self.evaluator.known(DatasetFacts) or (None,)
        labels = None if rows is None else rows.labels
        classes = frozenset[int]() if labels is None else frozenset(map(int, labels))
        for trial in trials(self.pipeline.subsets(classes), self._seconds):
            self.trials.append(trial)
            yield trial

    def _for_rules(self) -> Iterator[Fact]:
        """Try other rates on the batch, as the rules need it, unless the user's own optimizer has learned it."""
        from diagnostics.collectors.shared.pipeline import CannotJudge

        last = self.trials[-1] if self.trials else None
        if last is not None and last.whole_batch and last.theirs is not None and last.theirs.learned:
            raise CannotJudge("your optimizer has memorised the batch, see above")
        spent = sum(trial.seconds for trial in self.trials)
        self.pipeline.overfit_seconds = max(LEAST_FOR_RULES, self._seconds - spent)
        yield from self.pipeline.overfit()
