"""A callback that watches a fastai `Learner`, as `watch` watches a loop."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable
from typing import Any

from fastai.callback.core import Callback
from fastai.callback.schedule import LRFinder

from diagnostics.api.watch import Watch, check_watching, watch
from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.errors import InvalidInput
from diagnostics.fixed_batch import FixedBatch
from diagnostics.report.build import finished, judged_as_a_whole
from diagnostics.report.report import Report
from diagnostics.taps.fastai import optimizer_step


class FastaiCallback(Callback):  # type: ignore[misc]
    """Watch a fastai Learner train, and report at which step, in which layer and why training failed; see `watch`.

    callback = diagnostics.FastaiCallback()
    learn = Learner(dls, model, cbs=[callback])
    learn.fit_one_cycle(5)
    print(callback.report())

    It changes no result and ends no run: its own errors are lines in the report. A step is an optimizer step,
    counted from 0 at the start of `fit`; the report covers the latest `fit`. Gradients are those that the
    optimizer gets, clipped and unscaled. `lr_find`, which raises the rate until the loss diverges, is not watched.
    fastai does not notify callbacks of an exception that ends training, so the hooks are removed by the next
    `fit`.

    Args:
        every: steps between two reads from the device, as for `watch`.
        stop_after: steps after which to stop watching. Training continues.
        quiet: never print. Otherwise a report with an error or a warning goes to stderr when training ends.
        trace_steps: steps in which every module call is recorded, as for `watch`.
        logger: also receives the recorded values, as for `watch`.
        fixed_batch, histograms: data to show over time, as for `watch`.

    Raises:
        InvalidInput: `every`, `stop_after` or `trace_steps` are not step numbers, `logger` is not a logger, or
            `fixed_batch` is not a `FixedBatch`.
    """

    order = 90  # after the callbacks that clip and that skip a batch
    run_valid = False

    def __init__(
        self,
        every: int = 20,
        stop_after: int | None = None,
        quiet: bool = False,
        trace_steps: Iterable[int] = (),
        logger: Any = None,
        fixed_batch: FixedBatch | None = None,
        histograms: bool = False,
    ) -> None:
        super().__init__()
        traced = check_watching("FastaiCallback", every, stop_after, logger, fixed_batch, trace_steps)
        self._watched: dict[str, Any] = {"every": every, "stop_after": stop_after, "trace_steps": traced}
        self._watched |= {"logger": logger, "fixed_batch": fixed_batch, "histograms": histograms}
        self._quiet = quiet
        self._reset()

    def _reset(self) -> None:
        self._watch: Watch | None = None
        self._unhook: Callable[[], None] = lambda: None
        self._loss: Any = None
        self._why_not = "training has not begun"
        self._guard = FaultGuard(message="watching the Learner failed ({part}): {fault}")

    def __getstate__(self) -> dict[str, Any]:
        """Return the arguments alone: a copy, as in an exported Learner, has watched nothing."""
        return {**self._watched, "quiet": self._quiet}

    def __setstate__(self, arguments: dict[str, Any]) -> None:
        """Make the callback again."""
        self.__init__(**arguments)  # type: ignore[misc]

    def report(self) -> Report:
        """Return the report so far. Reads pending values from the device."""
        watched = self._watch
        report = watched._report() if watched is not None else Report(f"watched nothing: {self._why_not}")
        report = dataclasses.replace(report, faults=(*report.faults, *self._guard.faults.values()))
        return finished(judged_as_a_whole(report))

    # fastai's events.

    def before_fit(self) -> None:
        """Start watching."""
        self._close()
        self._reset()
        self._guard.run("beginning", self._begin)

    def after_loss(self) -> None:
        """Note that there is a loss: a batch that a callback skips has none."""
        self._loss = getattr(self.learn, "loss", None)

    def after_batch(self) -> None:
        """Record the loss of a training batch."""
        loss, self._loss = self._loss, None
        if self._watch is not None and loss is not None:
            self._guard.run("loss", self._watch.step, loss)

    def after_epoch(self) -> None:
        """Record the validation loss of the epoch."""
        self._guard.run("evaluation", self._evaluated)

    def after_fit(self) -> None:
        """Remove the hooks, and report what was wrong."""
        self._guard.run("end", self._end)

    # What is done at them.

    def _begin(self) -> None:
        learn = self.learn
        if any(isinstance(one, LRFinder) for one in learn.cbs):
            self._why_not = "lr_find() raises the rate until the loss diverges, and restores the weights"
            return
        self._unhook = optimizer_step.before.subscribe(lambda *_: None)  # so that they have hooks
        optimizer = getattr(learn.opt, "opt", learn.opt)  # that of PyTorch, in an OptimWrapper
        try:
            self._watch = watch(learn.model, optimizer, **self._watched)
        except InvalidInput as reason:
            self._why_not = str(reason)
            return
        self._watch._name += f" with a {type(learn).__name__}"

    def _evaluated(self) -> None:
        recorder: Any = getattr(self.learn, "recorder", None)
        names = list(getattr(recorder, "metric_names", ()))
        if self._watch is None or "valid_loss" not in names or not recorder.values:
            return
        # The names begin with the epoch and end with the time; the values hold neither.
        loss = recorder.values[-1][names.index("valid_loss") - 1]
        if loss is not None:
            self._watch.evaluated(float(loss))

    def _end(self) -> None:
        watched = self._watch is not None
        self._close()
        if watched and not self._quiet and not (report := self.report()).ok:
            print(report, file=sys.stderr)

    def _close(self) -> None:
        if self._watch is not None:
            self._watch.close()
        self._unhook()
