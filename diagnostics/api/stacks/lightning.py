"""A callback that watches a Lightning `Trainer`, as `watch` watches a loop."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from diagnostics.api.watch import Watch, check_watching, watch
from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.lightning.called import FirstCall, part_of
from diagnostics.collectors.lightning.kinds import PACKAGES, imported
from diagnostics.collectors.pytorch.watch.closures import AfterClosure
from diagnostics.errors import InvalidInput
from diagnostics.fixed_batch import FixedBatch
from diagnostics.report.build import finished, judged_as_a_whole
from diagnostics.report.report import Report

SEVERAL = "training_step runs several backward passes by itself, and returns no loss"
NONE = "training_step optimizes by itself, and returns no loss"


def _callbacks() -> tuple[type, ...]:
    """Return the base class of each Lightning that is imported; import the one that is installed if none is."""
    packages = imported()
    for name in () if packages else PACKAGES:
        try:
            packages = [importlib.import_module(name)]
            break
        except ModuleNotFoundError as error:
            if error.name is None or not name.startswith(error.name):
                raise
    if not packages:
        raise ModuleNotFoundError(
            "diagnostics.LightningCallback needs Lightning, and neither lightning nor pytorch_lightning is "
            "installed: pip install lightning"
        )
    return tuple(package.Callback for package in packages)


_Callback: Any = type("Callback", _callbacks(), {})


class LightningCallback(_Callback):  # type: ignore[misc]
    """Watch a Lightning Trainer train, and report at which step, in which layer and why it failed; see `watch`.

    callback = diagnostics.LightningCallback()
    trainer = lightning.Trainer(callbacks=[callback])
    trainer.fit(module, loader)
    print(callback.report())

    It changes no result and ends no run: its own errors are lines in the report, nothing is left on the module,
    and nothing is added to checkpoints. Its base class is that of `lightning.pytorch` or of `pytorch_lightning`,
    whichever is imported. A step is an optimizer step, counted from 0 at the start of `fit`; its loss is the mean
    of what `training_step` returns for its batches. The sanity check is not watched. With several processes, each
    watches its own share.

    With manual optimization, the loss is that of the single backward pass of `training_step`, or the value that it
    returns; if there are several passes, as in a GAN, no loss is checked. Not covered: forward passes of a module
    under `torch.compile`, and optimizers without PyTorch's hooks, such as DeepSpeed's.

    Args:
        every: steps between two reads from the device, as for `watch`.
        stop_after: steps after which to stop watching. Training continues.
        quiet: never print. Otherwise, in the main process, a report with an error or a warning goes to stderr when
            training ends, even if an exception ends it.
        trace_steps: steps in which every module call is recorded, as for `watch`.
        logger: also receives the recorded values, in the main process, as for `watch`.
        fixed_batch, histograms: data to show over time, as for `watch`.

    Raises:
        InvalidInput: `every`, `stop_after` or `trace_steps` are not step numbers, `logger` is not a logger, or
            `fixed_batch` is not a `FixedBatch`.
    """

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
        traced = check_watching("LightningCallback", every, stop_after, logger, fixed_batch, trace_steps)
        self._watched: dict[str, Any] = {"every": every, "stop_after": stop_after, "trace_steps": traced}
        self._watched |= {"logger": logger, "fixed_batch": fixed_batch, "histograms": histograms}
        self._quiet = quiet
        self._watch: Watch | None = None
        self._first: FirstCall | None = None
        self._closures: list[AfterClosure] = []
        self._trains = False
        self._why_not = "no training has begun in this process"
        self._guard = FaultGuard(message="watching the Trainer failed ({part}): {fault}")
        self._safely = self._guard.run
        self._losses, self._validation = StepLosses(), ValidationLoss()

    def __getstate__(self) -> dict[str, Any]:
        """Return the arguments alone: a copy, as one for another process, has watched nothing."""
        return {**self._watched, "quiet": self._quiet}

    def __setstate__(self, arguments: dict[str, Any]) -> None:
        """Make the callback again."""
        self.__init__(**arguments)  # type: ignore[misc]

    def report(self) -> Report:
        """Return the report so far. Reads pending values from the device."""
        return finished(judged_as_a_whole(self._report()))

    def _report(self) -> Report:
        watched = self._watch
        report = watched._report() if watched is not None else Report(f"watched nothing: {self._why_not}")
        return dataclasses.replace(report, faults=(*report.faults, *self._guard.faults.values()))

    # Lightning's events.

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Start watching."""
        self._safely("beginning", self._begin, trainer, pl_module)

    def on_before_backward(self, trainer: Any, pl_module: Any, loss: Any) -> None:
        """Record the loss of a module that runs its backward passes itself."""
        if self._trains and not pl_module.automatic_optimization:
            self._safely("loss", self._losses.backward, loss)

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int, *_: Any
    ) -> None:
        """Record the loss of the batch."""
        if self._trains:
            self._safely("loss", self._batch_ends, trainer, pl_module, outputs)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Record the loss of an evaluation, except that of the sanity check."""
        if self._trains and not trainer.sanity_checking:
            self._safely("evaluation", self._evaluated, trainer)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Remove the hooks, and report what was wrong."""
        self._safely("end", self._end, trainer)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Do the same if an exception ends training."""
        self._safely("end", self._end, trainer)

    # What is done at them.

    def _begin(self, trainer: Any, module: Any) -> None:
        self._close()
        self._watch, self._trains = None, False
        self._guard.faults.clear()
        self._losses, self._validation = StepLosses(), ValidationLoss()
        optimizers = list(trainer.optimizers)
        if not optimizers or type(optimizers[0]).__name__ == "_MockOptimizer":
            self._why_not = "configure_optimizers returned None, so that Lightning steps no optimizer"
            return
        unhooked = [one for one in optimizers if not hasattr(one, "register_step_pre_hook")]
        if unhooked:
            self._why_not = f"its optimizer, {type(unhooked[0]).__name__}, has no hooks to watch its steps by"
            return
        self._trains = True
        self._closures = [AfterClosure(one) for one in optimizers]
        begin = functools.partial(self._safely, "beginning", self._watch_part, trainer)
        wrapped = trainer.model is not None and trainer.model is not module
        if getattr(module, "_compiler_ctx", None) is not None:
            begin(part_of(module, "", module, hooked=False), "the module is compiled by torch.compile")
        elif len(optimizers) > 1:  # several parts take turns, and some may be frozen meanwhile
            begin(part_of(module, "", module) if wrapped else module)
        else:
            self._first = FirstCall(module, wrapped, begin)

    def _watch_part(self, trainer: Any, part: Any, unseen: str = "") -> None:
        options = self._watched if trainer.is_global_zero else {**self._watched, "logger": None}
        try:
            watching = watch(part, [one.optimizer for one in self._closures], **options)
        except InvalidInput as reason:
            self._why_not = str(reason)
            return
        resumed = f", from its step {trainer.global_step} on, which counts as 0" if trainer.global_step else ""
        watching._name += f" with a Lightning Trainer{resumed}"
        if unseen:
            watching._probe.uncovered["forward passes"] = unseen
        self._watch = watching

    def _batch_ends(self, trainer: Any, module: Any, outputs: Any) -> None:
        if self._first is not None:
            self._first.none_was_seen()
            self._first = None
        accumulated = trainer.accumulate_grad_batches if module.automatic_optimization else 1
        why_not = self._losses.batch_ends(outputs, module.automatic_optimization, accumulated)
        if self._watch is None:
            return
        if why_not:
            self._watch._probe.uncovered["loss"] = why_not
        over, loss = self._losses.of_step(self._watch._probe.steps, accumulated)
        if over:
            self._watch.step(loss)

    def _evaluated(self, trainer: Any) -> None:
        loss = self._validation.among(trainer.callback_metrics)
        if loss is not None and self._watch is not None:
            self._watch.evaluated(loss)

    def _end(self, trainer: Any) -> None:
        if not self._trains:
            return
        self._close()
        if not self._quiet and trainer.is_global_zero and not (report := self.report()).ok:
            print(report, file=sys.stderr)

    def _close(self) -> None:
        self._trains = False
        if self._first is not None:
            self._first.close()
            self._first = None
        if self._watch is not None:
            self._watch.close()
        while self._closures:
            self._closures.pop().close()


class StepLosses:
    """The losses of the batches of one optimizer step."""

    def __init__(self) -> None:
        self._of_batches: list[Any] = []
        self._backwards: list[Any] = []  # of the batch that is running, where the module optimizes by itself
        self._steps = 0

    def backward(self, loss: Any) -> None:
        """Record the loss of a backward pass that the module runs itself."""
        self._backwards.append(loss.detach())

    def batch_ends(self, outputs: Any, automatic: bool, accumulated: int) -> str:
        """Record the loss of a batch.

        Args:
            outputs: as passed to `on_train_batch_end`: a dict, with the loss if there is one.
            automatic: whether Lightning runs the backward pass.
            accumulated: batches whose gradients are summed for a step; Lightning has divided the loss by this
                number.

        Returns:
            The reason why no loss could be recorded; empty otherwise.
        """
        backwards, self._backwards = self._backwards, []
        loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
        if automatic:
            if loss is not None:
                self._of_batches.append(loss * accumulated if accumulated > 1 else loss)
            return ""
        if loss is None and len(backwards) == 1:
            loss = backwards[0]
        if loss is None:
            return SEVERAL if backwards else NONE
        self._of_batches.append(loss)
        return ""

    def of_step(self, steps: int, accumulated: int) -> tuple[bool, Any]:
        """Return whether the step is over, and the mean of its losses; None if there is no loss.

        Args:
            steps: optimizer steps so far.
            accumulated: batches after which it is over even if no optimizer has stepped.
        """
        if steps == self._steps and len(self._of_batches) < accumulated:
            return False, None
        self._steps = steps
        losses, self._of_batches = self._of_batches, []
        if not losses:
            return True, None
        return True, losses[0] if len(losses) == 1 else sum(losses) / len(losses)


class ValidationLoss:
    """The validation loss among the metrics of a run; if there are several, always the same one."""

    def __init__(self) -> None:
        self._name: str | None = None

    def among(self, metrics: Mapping[str, Any]) -> float | None:
        """Return its value, or None if there is none."""
        names = [name for name in metrics if _is_validation_loss(name)]
        self._name = self._name or ("val_loss" if "val_loss" in names else next(iter(names), None))
        return float(metrics[self._name]) if self._name is not None and self._name in metrics else None


def _is_validation_loss(name: str) -> bool:
    words = set(re.split(r"[^a-z]+", name.lower()))
    return "loss" in words and bool(words & {"val", "valid", "validation", "eval"})
