"""`overfit`: trains copies on 1, 2 and 5 examples and on one batch, and reports at which number learning fails."""

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

    A healthy model memorises so few examples, whatever their labels. The first number that fails shows where to
    look. If one example fails, the loss, the label or the gradient is wrong; if two fail, the inputs do not reach
    the prediction; if five fail, labels contradict each other; if the batch fails, the learning rate or the
    capacity is too small.

        print(diagnostics.overfit(trainer))
        result = diagnostics.overfit(model, loader, loss_fn, optimizer)
        result = diagnostics.overfit(keras_model, dataset)
        result.save("overfit.html")  # the curves, and how the predictions sharpen

    First, the data, the batch, the loss and the gradients are examined, as by `diagnostics.examine`; an error
    there ends the test. Each run starts from the model's current weights with the same seeds, with dropout off and
    a copy of the user's optimizer; if that optimizer fails, AdamW is tried at other rates. Only copies are
    trained: the model, its optimizer, the order of the data and all random states stay bit-for-bit unchanged.

    Args:
        target: see `diagnostics.examine`; likewise for `loader`, `loss_fn` and `optimizer`.
        loader: up to 8 batches are read, to find every label.
        loss_fn: called as ``loss_fn(prediction, target)``.
        optimizer: read, never stepped. None: only AdamW is tried.
        seconds: time for training, shared among the numbers of examples; the earlier stages do not count, and a
            step that has begun is completed.

    Returns:
        An `OverfitReport`: `stops_at`, `points_to`, `history` (plain data), `report` (with the findings of the
        rules); text when printed, HTML in a notebook or with `save("overfit.html")`.

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
