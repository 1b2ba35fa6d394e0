"""`watch`: observes a model while it trains."""

from __future__ import annotations

import dataclasses
import math
import sys
import time
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from diagnostics.collectors.isolation.user_modes import call_without_user_modes, without_user_modes
from diagnostics.collectors.system.supported import require_supported
from diagnostics.errors import InvalidInput, what
from diagnostics.fixed_batch import FixedBatch
from diagnostics.report.report import Report
from diagnostics.report.requests import Requests

from .stop_on import StopOn, Stopping, check_stop_on

if TYPE_CHECKING:
    from diagnostics.collectors.pytorch.watch.over_time import OverTime
    from diagnostics.collectors.pytorch.watch.watcher import TorchWatcher
    from diagnostics.facts.pipeline import ModelFacts, OptimizerFacts
    from diagnostics.report.loggers import MetricLogger

USAGE = "It takes a PyTorch model and its optimizer, or a list of them: watch(model, optimizer)."


class Watch:
    """A watched run; made by `watch`, used as a context manager or directly.

    with diagnostics.watch(model, optimizer) as watch:
        for batch, target in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(batch), target)
            loss.backward()
            optimizer.step()
            watch.step(loss)
    print(watch.report())
    """

    def __init__(
        self,
        probe: TorchWatcher,
        name: str,
        facts: tuple[Any, ...],
        stop_after: int | None,
        logger: MetricLogger | None,
        over_time: OverTime | None = None,
        stop_on: Stopping | None = None,
    ) -> None:
        self._probe = probe
        self._name = name
        self._facts = facts
        self._stop_after = stop_after
        self._logger = logger
        self._closed = False
        self._over_time = over_time
        self._requests = Requests()
        self._stop = None if stop_on is None else StopOn(stop_on, self._unfinished)
        if self._stop is not None:
            probe.on_broken = self._stop.broken
        if logger is not None:
            probe.on_read = lambda: logger.take(probe.history)
            if over_time is not None:
                over_time.on_look = lambda look, layers: logger.look(look, layers, over_time.fixed_batch())

    def step(self, loss: Any = None, labels: Any = None) -> None:
        """Record the end of an iteration of the loop, and its loss. Call it once per iteration, at the end.

        Without this call, everything except the loss is watched. With gradient accumulation, call it for each
        micro-batch: their losses are averaged.

        Args:
            loss: a number, or a scalar tensor on any device; does not synchronise.
            labels: labels of the batch, an integer tensor of shape (examples,) on any device; needed only if they
                cannot be read from the loss, as they can from cross entropy, and the model does not receive them.
                The second look of `report` also uses them.
        """
        call_without_user_modes(self._step, loss, labels)

    def _step(self, loss: Any, labels: Any) -> None:
        self._probe.step(loss, labels)
        self._requests.look(self._unfinished)
        if self._stop is not None:
            self._stop.stepped(self._probe.steps)
        if self._stop_after is not None and self._probe.steps >= self._stop_after:
            self.close()

    def evaluated(self, loss: float) -> None:
        """Record the loss of an evaluation, to compare with the training loss.

        Args:
            loss: the loss on the evaluation set.
        """
        self._probe.evaluated(loss)

    def close(self) -> None:
        """Stop watching and remove all hooks. The report stays available."""
        if self._closed:
            return
        self._closed = True
        self._requests.close()
        self._probe.close()
        if self._over_time is not None:
            self._over_time.close()
        if self._logger is not None:
            self._logger.end(lambda: self.report().findings)

    @without_user_modes()
    def report(self, *, second_look: float | None = None) -> Report:
        """Return the report of the run so far. Reads pending values from the device.

        Args:
            second_look: maximum time in seconds for running a copy of the model on changed batches, to see what
                its predictions depend on: other examples, later positions, each input. It uses the latest batch,
                and checks more if `step` was given its labels. None: no second look.

        Raises:
            InvalidInput: `second_look` is not a number of seconds.
        """
        from diagnostics.report.build import finished, judged_as_a_whole

        if second_look is not None:
            _check_seconds(second_look)
        report = self._report()
        if second_look is not None:
            report = self._looked_again(report, second_look)
        return finished(judged_as_a_whole(report))

    def _unfinished(self) -> Report:
        from diagnostics.report.build import finished, judged_as_a_whole

        return finished(judged_as_a_whole(self._report(), complete=False))

    def _looked_again(self, report: Report, seconds: float) -> Report:
        from diagnostics.report.build import extended
        from diagnostics.report.contents import StageResult
        from diagnostics.report.unjudged import SECOND_LOOK

        begun = time.monotonic()
        with self._probe.still():
            found = self._probe.dependence(begun + seconds)
        if isinstance(found, str):
            stage = StageResult(SECOND_LOOK, "not judged", found)
        else:
            took = max(time.monotonic() - begun, 0.1)
            stage = StageResult(SECOND_LOOK, "passed", f"tested what the predictions depend on in {took:.1f} s")
            report = extended(report, (found,))
        return dataclasses.replace(report, stages=(*report.stages, stage))

    @without_user_modes()
    def _report(self) -> Report:
        from .watch_report import watch_report

        with self._probe.still():
            self._probe.read()
            report = watch_report(self._probe, self._name, (*self._facts, *self._probe.course()))
            report = dataclasses.replace(report, traces=self._probe.traces(), failed=self._probe.batch())
            if (looks := self._over_time) is None:
                return report
            return dataclasses.replace(report, fixed_batch=looks.fixed_batch(), histograms=tuple(looks.histograms))

    def release(self) -> Report:
        """Stop watching, and immediately release the model and all recorded data.

        Returns:
            The last report, without grouping the findings.
        """
        self.close()
        report = self._report()
        self._probe.release()
        return report

    def __enter__(self) -> Watch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@without_user_modes()
def watch(
    model: Any,
    optimizer: Any = None,
    *,
    every: int = 20,
    stop_after: int | None = None,
    trace_steps: Iterable[int] = (),
    logger: Any = None,
    fixed_batch: FixedBatch | None = None,
    histograms: bool = False,
    look_steps: Iterable[int] | None = None,
    stop_on: Literal["error", "warning"] | None = None,
) -> Watch:
    """Watch a model train, and report at which step, in which layer and why training failed.

    Hooks on the model and on its optimizers record each step on the device itself; values are read from an
    accelerator only every few steps. Weights, random states and results stay bit-for-bit the same. When a NaN or
    inf first occurs, that step is replayed on a copy of the model, with the same weights, batch and random state,
    to find the module where it began.

        with diagnostics.watch(model, optimizer) as watch:
            for batch in loader:
                ...
                watch.step(loss)
        report = watch.report()
        report.save("report.html")    # or print(report)

    `diagnostics.probe` records a tensor between two modules, and `Report.batch` returns the batch that failed.

    Pass a model under `torch.compile` in its compiled form. Not covered: the passes within one step of LBFGS,
    whose closure runs several; sparse gradients; forward passes that do not call the given model. With more than
    1,000 parameters on a CPU, gradients are measured in every fourth step.

    Args:
        model: the `torch.nn.Module` that the loop calls.
        optimizer: a `torch.optim.Optimizer`, or a list of several. A step of the run is a step of the optimizer
            that steps first. None: a step is a call of `Watch.step`, before the gradients are zeroed.
        every: steps between two reads from the device. Weights, updates and activations are sampled at the same
            interval, and in a long run at eight times the interval. 1 samples all steps, and finds a NaN at once.
        stop_after: steps after which to stop watching, counted by `Watch.step`; None to watch to the end.
        trace_steps: steps, counted from 0, in which every module call is recorded: the smallest and largest
            absolute value of its weights, inputs and outputs, in the first forward pass. These values are in the
            printed report and in ``report.traces``. Such a step synchronises with the device at every module.
        logger: also receives the recorded values: a function, called as ``logger({"watch/loss": 0.7, …}, step)``;
            a TensorBoard ``SummaryWriter``; a Weights & Biases run; or the module ``mlflow`` with an active run.
            `diagnostics.report.loggers` lists the names. If it raises an exception, the error is a line in the
            report, and the logger is not called again.
        fixed_batch: its inputs, targets, predictions and loss are shown over time, in the HTML report and by the
            logger. It runs in evaluation mode, on a copy of the model; anything that its forward prints is
            printed.
        histograms: whether to show the weights and the gradients of each layer over time in the same way.
        look_steps: steps before which the fixed batch and the histograms are recorded, at most 64; None for 0, 1,
            2, 5, 10, 20, 50, … Both synchronise with the device at these steps only. The end of the run is
            recorded as well.
        stop_on: end training as soon as there is a finding of this severity or worse, with
            `diagnostics.TrainingStopped`, whose ``report`` has the finding and the batch. For gradients that are
            not finite, it is raised before the optimizer uses them, and buffers such as batch norm's means get
            their values from before the step. Each step then synchronises with the device. Other findings count
            from step 16 on, every few seconds.

    Returns:
        A `Watch`. Its memory use stays constant however long the run is. On an accelerator, two more copies of the
        weights are kept, if they need at most 512 MiB and three of them fit into a quarter of the free memory. The
        inputs of the last steps are kept, at most 256 MiB; on a CPU, those before the latest step may take up at
        most a sixteenth of the process's memory. In models with more than 8 million weights, a sample of the
        weights is compared before and after a step.

    Raises:
        InvalidInput: the arguments cannot be watched.
    """
    check_rhythm("watch", every, stop_after)
    traced = check_traced("watch", trace_steps)
    chosen = None if look_steps is None else check_traced("watch", look_steps, "look_steps")
    _check_model(model)
    optimizers = _optimizers(optimizer)
    _check_looks(fixed_batch, histograms, optimizers)
    check_stop_on("watch", stop_on)

    from diagnostics.collectors.pytorch.model import uncompiled
    from diagnostics.collectors.pytorch.watch.watcher import TorchWatcher
    from diagnostics.config import shows_batch
    from diagnostics.report.loggers import MetricLogger, check_logger

    check_logger("watch", logger)
    faults: dict[str, str] = {}
    handover = None if logger is None else MetricLogger(logger, faults)
    probe = TorchWatcher(model, optimizers, every, trace_steps=traced, faults=faults, shows_batch=shows_batch())
    facts = _facts(model, optimizers)
    looks = None
    if fixed_batch is not None or histograms:
        from diagnostics.collectors.pytorch.watch.over_time import OverTime

        known = (faults, probe.uncovered)
        looks = OverTime(model, optimizers, fixed_batch, histograms, chosen, lambda: probe.steps, *known)
    return Watch(probe, type(uncompiled(model)).__name__, facts, stop_after, handover, looks, stop_on)


def check_rhythm(name: str, every: Any, stop_after: Any) -> None:
    """Check that both are numbers of steps; `name` is the name of the called function or class."""
    if not isinstance(every, int) or isinstance(every, bool) or every < 1:
        raise InvalidInput(f"{name}() was given every={every!r}. It takes a number of steps, 1 or more.")
    if stop_after is not None and (not isinstance(stop_after, int) or stop_after < 1):
        raise InvalidInput(f"{name}() was given stop_after={stop_after!r}. It takes a number of steps, or None.")


def _check_seconds(seconds: Any) -> None:
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 < seconds < math.inf:
        raise InvalidInput(
            f"report() was given second_look={seconds!r}. It takes the seconds that it may last, more than 0, or "
            "None for no second look."
        )


def check_traced(name: str, steps: Any, argument: str = "trace_steps") -> frozenset[int]:
    """Check that these are step numbers; `name` is the name of the called function or class."""
    given = list(steps) if isinstance(steps, Iterable) and not isinstance(steps, str) else None
    if given is None or not all(isinstance(s, int) and not isinstance(s, bool) and s >= 0 for s in given):
        raise InvalidInput(
            f"{name}() was given {argument}={steps!r}. It takes step numbers, counted from 0: {argument}=[1, 3]."
        )
    return frozenset(given)


def _check_model(model: Any) -> None:
    torch = sys.modules.get("torch")
    trainers = sys.modules.get("transformers.trainer")
    if trainers is not None and isinstance(model, getattr(trainers, "Trainer", ())):
        raise InvalidInput(
            f"watch() was given a {type(model).__name__}. A Trainer is watched by a callback: "
            "trainer.add_callback(diagnostics.TrainerCallback()) before train()."
        )
    from diagnostics.collectors.keras.examine.build import is_keras_model
    from diagnostics.collectors.lightning.kinds import is_trainer

    if is_trainer(model):
        raise InvalidInput(
            "watch() was given a Lightning Trainer. It is watched by a callback: "
            "Trainer(callbacks=[diagnostics.LightningCallback()])."
        )
    if is_keras_model(model):
        raise InvalidInput(
            f"watch() was given the Keras model {type(model).__name__}. Keras is watched by a callback: "
            "model.fit(..., callbacks=[diagnostics.KerasCallback()])."
        )
    if torch is None or not isinstance(model, torch.nn.Module):
        raise InvalidInput(f"watch() was given {what(model)} as model. {USAGE}")
    require_supported("torch")
    if isinstance(model, torch.jit.ScriptModule):
        raise InvalidInput(
            "watch() was given a model made by torch.jit.script or torch.jit.trace, which takes no hooks. Train "
            "the module that it was made from."
        )
    from diagnostics.collectors.pytorch.model import check_runnable
    from diagnostics.collectors.shared.pipeline import StageFailed

    try:
        check_runnable(model)
    except StageFailed as reason:
        raise InvalidInput(f"watch() cannot watch this model. {reason}") from None


def _optimizers(optimizer: Any) -> list[Any]:
    given = list(optimizer) if isinstance(optimizer, list | tuple) else [] if optimizer is None else [optimizer]
    from diagnostics.collectors.pytorch.optimizer import unwrapped

    for one in given:
        inner = unwrapped(one)
        if not hasattr(inner, "param_groups") or not hasattr(inner, "register_step_pre_hook"):
            raise InvalidInput(f"watch() was given {what(one)} as optimizer. {USAGE}")
    return given


def check_watching(
    name: str, every: Any, stop_after: Any, logger: Any, fixed_batch: Any, trace_steps: Any = ()
) -> frozenset[int]:
    """Check the arguments that a callback of the class `name` passes to `watch`. Return the steps to trace.

    Raises:
        InvalidInput: one of them is not what `watch` takes.
    """
    from diagnostics.report.loggers import check_logger

    check_rhythm(name, every, stop_after)
    check_logger(name, logger)
    check_fixed_batch(name, fixed_batch)
    return check_traced(name, trace_steps)


def check_fixed_batch(name: str, batch: Any) -> None:
    """Check that it is None or a `FixedBatch`; `name` is the name of the called function or class."""
    if batch is not None and not isinstance(batch, FixedBatch):
        raise InvalidInput(
            f"{name}() was given {what(batch)} as fixed_batch. It takes a diagnostics.FixedBatch: "
            "fixed_batch=FixedBatch(inputs, targets, loss_fn)."
        )


def _check_looks(fixed_batch: Any, histograms: bool, optimizers: list[Any]) -> None:
    check_fixed_batch("watch", fixed_batch)
    if (fixed_batch is not None or histograms) and not optimizers:
        raise InvalidInput(
            "watch() was given no optimizer, before whose steps it could look at the fixed batch and the layers. "
            "Pass it: watch(model, optimizer, histograms=True)."
        )


def _facts(model: Any, optimizers: list[Any]) -> tuple[ModelFacts | OptimizerFacts, ...]:
    """Describe the model, and all of its optimizers as if they were one."""
    from diagnostics.collectors.pytorch.model import describe_model, uncompiled
    from diagnostics.collectors.pytorch.optimizer import facts_together, unwrapped

    model = uncompiled(model)
    described = dataclasses.replace(describe_model(model, training=None, computes_loss=False), computes_loss=None)
    if not optimizers:
        return (described,)
    together = facts_together([unwrapped(optimizer) for optimizer in optimizers], model)
    return described, together
