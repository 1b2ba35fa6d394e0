"""A callback that watches `fit` of a Keras model."""

from __future__ import annotations

import dataclasses
import sys
from collections import deque
from typing import TYPE_CHECKING, Any, Literal

import keras

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.keras.watch.over_time import HeldBatch, KerasOverTime
from diagnostics.collectors.system.supported import unsupported
from diagnostics.config import shows_batch
from diagnostics.fixed_batch import FixedBatch
from diagnostics.report.build import finished, judged_as_a_whole
from diagnostics.report.loggers import MetricLogger
from diagnostics.report.report import Report
from diagnostics.report.requests import Requests

from .stop_on import StopOn, check_stop_on
from .watch import check_watching
from .watch_report import watch_report

EPOCHS = 1_000  # the latest, whose logs are kept

if TYPE_CHECKING:
    from diagnostics.collectors.keras.watch.torch_watcher import KerasTorchWatcher
    from diagnostics.collectors.keras.watch.watcher import KerasWatcher
    from diagnostics.facts.inputs import InputSample
    from diagnostics.facts.step_times import BatchSource


class KerasCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Watch a Keras model train, and report at which step, in which layer and why training failed.

    callback = diagnostics.KerasCallback()
    model.fit(dataset, callbacks=[callback])
    print(callback.report())

    It changes no result and, without `stop_on`, ends no run: weights and logs stay bit-for-bit the same, and its
    own errors are lines in the report. When a loss is NaN or infinite, that step is replayed eagerly, layer by
    layer, with its weights and its batch.

    It keeps the weights of the last two steps, if they take at most 512 MiB, and their batches.

    The report says what Keras does not expose: gradients; batches and single steps, with `steps_per_execution`
    above 1 or on several devices; and on an accelerator, the weights of a broken step without `every=1`, which
    synchronises at each step. On Keras' PyTorch backend, gradients are recorded, but a broken step is not
    replayed. JAX is not covered.

    Args:
        every: steps between two samples of weights, updates and memory, and between two reads from an accelerator.
        stop_after: steps after which to stop watching. Training continues.
        quiet: print nothing. Otherwise a report with an error or a warning goes to stderr when training ends.
        logger: receives the recorded values, every `every` steps, as in `watch`.
        fixed_batch: its inputs, targets, predictions and loss are shown over time, as in `watch`, before steps 0,
            1, 2, 5, 10, 20, 50, … and at the end. Its inputs and targets are arrays, as for `fit`; its `loss_fn`
            takes ``(targets, outputs)``, and None means the loss of `compile`. The model runs this batch eagerly,
            in inference mode: anything that its `call` prints is printed.
        histograms: whether to show the weights of each layer over time in the same way.
        stop_on: end training at a finding, as for `watch`. Keras computes and applies gradients in one call, so a
            non-finite step is undone: weights and optimizer get their previous values, if these take at most 512
            MiB.

    Raises:
        InvalidInput: `every` or `stop_after` is not a number of steps, `logger` is not a logger, `fixed_batch` is
            not a `FixedBatch` of arrays, or `stop_on` is not a severity.
    """

    def __init__(
        self,
        every: int = 20,
        stop_after: int | None = None,
        quiet: bool = False,
        logger: Any = None,
        fixed_batch: FixedBatch | None = None,
        histograms: bool = False,
        stop_on: Literal["error", "warning"] | None = None,
    ) -> None:
        super().__init__()
        check_stop_on("KerasCallback", stop_on)
        self._stop = None if stop_on is None else StopOn(stop_on, self._unfinished)
        self._on_broken: Any = None if self._stop is None else self._stop.broken
        self._requests = Requests()
        check_watching("KerasCallback", every, stop_after, logger, fixed_batch)
        self._fixed_batch = None if fixed_batch is None else HeldBatch(fixed_batch)
        self._histograms = histograms
        self._over_time: KerasOverTime | None = None
        self._logger = logger
        self._metrics: MetricLogger | None = None
        self._every = every
        self._stop_after = stop_after
        self._quiet = quiet
        self._run: KerasWatcher | KerasTorchWatcher | None = None
        self._first_batches: Any = None  # `diagnose run`'s
        self._sampled_rows: Any = None  # likewise
        self._on_batch: Any = None  # likewise
        self._batch_source: BatchSource | None = None  # likewise
        self._epochs: deque[tuple[int, dict[str, Any]]] = deque(maxlen=EPOCHS)  # those with an evaluation
        self._name = ""
        self._why_not = "training has not begun"
        self._ended = False
        self._final: Report | None = None
        self._inputs: dict[str, InputSample] = {}
        self._guard = FaultGuard(message="watching the model failed ({part}): {fault}")
        self._safely = self._guard.run

    def report(self) -> Report:
        """Return the report so far. Reads pending values from the device."""
        return finished(judged_as_a_whole(self._report()))

    def _release(self) -> None:
        """Keep the report of a training that has ended, and let go of its model: a script may train many."""
        if self._ended:
            self._final, self._inputs = self._report(), self._training_inputs()
            self._run = self._over_time = self._first_batches = self._on_batch = self._model = None

    def _report(self) -> Report:
        if self._final is not None:
            return self._final
        if self._run is None:
            report = Report(f"watched nothing: {self._why_not}")
        else:
            facts = (*_facts(self.model), *self._run.facts())
            report = watch_report(self._run, self._name, facts)
            report = dataclasses.replace(report, failed=self._run.batch(), time=self._run.clock.times())
            if (looks := self._over_time) is not None:
                report = dataclasses.replace(
                    report, fixed_batch=looks.fixed_batch(), histograms=tuple(looks.histograms)
                )
        return dataclasses.replace(report, faults=(*report.faults, *self._guard.faults.values()))

    def _training_inputs(self) -> dict[str, InputSample]:
        """Return a part of the inputs of some batches, by name; nothing on other backends than TensorFlow."""
        seen = getattr(self._run, "inputs", None)
        return self._inputs if seen is None else seen()

    # Keras' events. None per batch: Keras would then no longer log in the background.

    def on_train_begin(self, logs: Any = None) -> None:
        """Start watching."""
        self._safely("beginning", self._begin)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Note that Keras resets its running means."""
        if self._run is not None:
            self._safely("epoch", self._run.epoch_begins)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Record the loss of an evaluation."""
        if self._first_batches is not None:
            self._safely("first batches", self._first_batches.epoch_ends)
        if self._run is not None and isinstance(logs, dict) and logs.get("val_loss") is not None:
            self._safely("evaluation", self._run.evaluated, logs["val_loss"])
            self._epochs.append((self._run.steps, dict(logs)))

    def on_train_end(self, logs: Any = None) -> None:
        """Restore the model, and report what was wrong."""
        self._ended = True
        self._safely("end", self._end)

    # What they do.

    def _begin(self) -> None:
        if self._run is not None:
            self._run.close()
        self._run, self._ended, self._final = None, False, None
        self._epochs.clear()
        self._guard.faults.clear()
        if (why := unsupported("keras")) is not None:
            self._why_not = why
            return
        backend = keras.backend.backend()
        if backend not in ("tensorflow", "torch"):
            self._why_not = f"Keras runs on {backend} here, and only Keras on TensorFlow and on PyTorch is covered"
            return
        self._name = type(self.model).__name__
        self._metrics = self._over_time = None
        self._run = run = self._observe(backend)
        run.on_step = self._stepped
        if self._on_broken is not None:
            run.judge(self._on_broken)
        run.first_batches = getattr(self._first_batches, "take", None)
        if self._logger is not None:
            self._metrics = metrics = MetricLogger(self._logger, self._guard.faults)
            run.on_read = lambda: metrics.take(run.history)
        if self._fixed_batch is not None or self._histograms:
            self._look(run)

    def _stepped(self) -> None:
        self._requests.look(self._unfinished)
        if self._stop is not None and self._run is not None:
            self._stop.stepped(self._run.steps)

    def _unfinished(self) -> Report:
        return finished(judged_as_a_whole(self._report(), complete=False))

    def _observe(self, backend: str) -> KerasWatcher | KerasTorchWatcher:
        if backend == "torch":
            from diagnostics.collectors.keras.watch.torch_watcher import KerasTorchWatcher

            run = KerasTorchWatcher(self.model, self._every, self._stop_after)
            run.on_first_step = getattr(self._first_batches, "first_step", None)
            return run
        from diagnostics.collectors.keras.watch.watcher import KerasWatcher

        observed = KerasWatcher(self.model, self._every, self._stop_after)
        observed.sampled_rows, observed.on_batch = self._sampled_rows, self._on_batch
        observed.shows_batch = shows_batch()
        observed.clock.source = self._batch_source
        return observed

    def _look(self, run: KerasWatcher | KerasTorchWatcher) -> None:
        """Let the run show what changes over time."""
        self._over_time = run.over_time = looks = KerasOverTime(
            self.model, self._fixed_batch, self._histograms, run.faults, run.uncovered
        )
        if (metrics := self._metrics) is not None:
            looks.on_look = lambda look, layers: metrics.look(look, layers, looks.fixed_batch())

    def _end(self) -> None:
        self._requests.close()
        if self._run is None:
            return
        self._run.close()
        if self._metrics is not None:
            self._metrics.end(lambda: self.report().findings)
        if not self._quiet and not (report := self.report()).ok:
            print(report, file=sys.stderr)


def _facts(model: Any) -> tuple[Any, ...]:
    """Describe the model and its optimizer, if there are weights and the optimizer has stepped."""
    from diagnostics.collectors.keras.model import describe_model, has_parts_weights
    from diagnostics.collectors.keras.optimizer import inner_optimizer, optimizer_facts

    if not has_parts_weights(model):
        return ()
    described = dataclasses.replace(describe_model(model), computes_loss=None)
    used = getattr(inner_optimizer(model), "built", False)  # a train_step may step with others
    return (described, optimizer_facts(model)) if used else (described,)
