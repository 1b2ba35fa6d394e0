"""A callback that watches `fit` of a skorch net, as `watch` watches a loop."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable
from typing import Any

import skorch

from diagnostics.api.watch import Watch, check_watching, watch
from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.pytorch.watch.closures import AfterClosure
from diagnostics.errors import InvalidInput
from diagnostics.fixed_batch import FixedBatch
from diagnostics.report.build import finished, judged_as_a_whole
from diagnostics.report.report import Report


class SkorchCallback(skorch.callbacks.Callback):  # type: ignore[misc]
    """Watch a skorch net train, and report at which step, in which layer and why training failed; see `watch`.

    callback = diagnostics.SkorchCallback()
    net = NeuralNetClassifier(MyModule, callbacks=[callback])
    net.fit(X, y)
    print(callback.report())

    It changes no result and ends no run: its own errors are lines in the report. A step is a step of the optimizer
    that steps first, counted from 0 at the start of `fit` or `partial_fit`. `clone`, `pickle` and grid search copy
    its arguments, but not what it has recorded. If a net has several modules, `module_` is watched.

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

    # What is no argument ends in "_": scikit-learn's `clone` copies all other attributes.

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
        check_watching("SkorchCallback", every, stop_after, logger, fixed_batch, trace_steps)
        self.every, self.stop_after, self.quiet, self.trace_steps = every, stop_after, quiet, trace_steps
        self.logger, self.fixed_batch, self.histograms = logger, fixed_batch, histograms
        self._reset_()

    def _reset_(self) -> None:
        self.watch_: Watch | None = None
        self.closures_: list[AfterClosure] = []
        self.why_not_ = "training has not begun"
        self.guard_ = FaultGuard(message="watching the net failed ({part}): {fault}")

    def __getstate__(self) -> dict[str, Any]:
        """Return the arguments alone."""
        return {name: value for name, value in vars(self).items() if not name.endswith("_")}

    def __setstate__(self, arguments: dict[str, Any]) -> None:
        """Take the arguments; nothing was watched."""
        self.__dict__.update(arguments)
        self._reset_()

    def report(self) -> Report:
        """Return the report so far. Reads pending values from the device."""
        watched = self.watch_
        report = watched._report() if watched is not None else Report(f"watched nothing: {self.why_not_}")
        report = dataclasses.replace(report, faults=(*report.faults, *self.guard_.faults.values()))
        return finished(judged_as_a_whole(report))

    # skorch's events.

    def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **given: Any) -> None:
        """Start watching."""
        self._close_()
        self._reset_()
        self.guard_.run("beginning", self._begin_, net)

    def on_batch_end(self, net: Any, batch: Any = None, training: Any = None, **step: Any) -> None:
        """Record the loss of a training batch."""
        if training and self.watch_ is not None:
            self.guard_.run("loss", self.watch_.step, step.get("loss"))

    def on_epoch_end(self, net: Any, dataset_train: Any = None, dataset_valid: Any = None, **given: Any) -> None:
        """Record the validation loss of the epoch."""
        if dataset_valid is not None:
            self.guard_.run("evaluation", self._evaluated_, net)

    def on_train_end(self, net: Any, X: Any = None, y: Any = None, **given: Any) -> None:
        """Remove the hooks, and report what was wrong."""
        self.guard_.run("end", self._end_)

    # What is done at them.

    def _begin_(self, net: Any) -> None:
        self.closures_ = [AfterClosure(getattr(net, f"{name}_")) for name in net._optimizers]
        try:
            self.watch_ = watch(
                net.module_,
                [one.optimizer for one in self.closures_],
                every=self.every,
                stop_after=self.stop_after,
                trace_steps=self.trace_steps,
                logger=self.logger,
                fixed_batch=self.fixed_batch,
                histograms=self.histograms,
            )
        except InvalidInput as reason:
            self.why_not_ = str(reason)
            return
        self.watch_._name += f" in a {type(net).__name__}"

    def _evaluated_(self, net: Any) -> None:
        loss = net.history[-1].get("valid_loss")
        if loss is not None and self.watch_ is not None:
            self.watch_.evaluated(loss)

    def _end_(self) -> None:
        self._close_()
        if not self.quiet and not (report := self.report()).ok:
            print(report, file=sys.stderr)

    def _close_(self) -> None:
        if self.watch_ is not None:
            self.watch_.close()
        while self.closures_:
            self.closures_.pop().close()
