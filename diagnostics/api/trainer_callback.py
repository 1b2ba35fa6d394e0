"""A callback that watches a Hugging Face `Trainer`, as `watch` watches a loop."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable
from typing import Any, Literal, Protocol

import transformers

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.system.supported import unsupported
from diagnostics.errors import typed_message
from diagnostics.facts.pipeline import ModelFacts
from diagnostics.fixed_batch import FixedBatch
from diagnostics.report.build import finished, judged_as_a_whole
from diagnostics.report.report import Report
from diagnostics.taps.tap import subscribe
from diagnostics.taps.transformers import training_step

from .stop_on import check_stop_on
from .watch import Watch, check_watching, watch

FRAMES = 12  # between the Trainer that trains and the callback that it calls; three in version 5


class _Observer(Protocol):
    """Observes one `training_step`."""

    def close(self) -> None:
        """Remove all hooks; the step is over, or has failed."""

    def done(self, loss: Any) -> None:
        """Receive the loss that the step returned."""


class TrainerCallback(transformers.TrainerCallback):  # type: ignore[misc]
    """Watch a Trainer train, and report at which step, in which layer and why training failed; see `watch`.

    callback = diagnostics.TrainerCallback()
    trainer.add_callback(callback)
    trainer.train()
    print(callback.report())

    It changes no result and, without `stop_on`, ends no run: its own errors are lines in the report. A step is an
    optimizer step, counted from 0 at the start of `train`. Its loss is the sum of what `training_step` returns for
    its batches, which is the value that is differentiated, whether it is from the model, label smoothing or a
    custom `compute_loss`. (The Trainer logs a mean over `logging_steps` steps, without NaN.) With several
    processes, each watches its own share.

    Not covered: several GPUs in one process (`DataParallel`), and optimizers without PyTorch's hooks, such as
    DeepSpeed's.

    Args:
        every: steps between two reads from the device, as for `watch`.
        stop_after: steps after which to stop watching. Training continues.
        quiet: never print. Otherwise, in the main process, a report with an error or a warning goes to stderr when
            training ends.
        trace_steps: steps in which every module call is recorded, as for `watch`.
        logger: also receives the recorded values, in the main process, as for `watch`.
        fixed_batch, histograms: data to show over time, as for `watch`: a `FixedBatch` of the inputs that the
            collator returns, including the labels.
        stop_on: end training at a finding, as for `watch`.

    Raises:
        InvalidInput: `every`, `stop_after` or `trace_steps` are not step numbers, `logger` is not a logger,
            `fixed_batch` is not a `FixedBatch`, or `stop_on` is not a severity.
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
        stop_on: Literal["error", "warning"] | None = None,
    ) -> None:
        check_stop_on("TrainerCallback", stop_on)
        self._stop_on = stop_on
        self._on_broken: Callable[[], object] | None = None
        self._hold: Callable[[Any, Any], tuple[Any, Any]] = lambda model, optimizer: (model, optimizer)
        self._trace_steps = check_watching("TrainerCallback", every, stop_after, logger, fixed_batch, trace_steps)
        self._logger = logger
        self._shown: dict[str, Any] = {"fixed_batch": fixed_batch, "histograms": histograms}
        self._every = every
        self._stop_after = stop_after
        self._quiet = quiet
        self._watch: Watch | None = None
        self._why_not = "training has not begun"
        self._guard = FaultGuard(message="watching the Trainer failed ({part}): {fault}")
        self._safely = self._guard.run
        self._losses: list[Any] = []  # of the batches of the current step
        self._eval_name: str | None = None
        self._release: Callable[[], None] | None = None
        self._on_first_step: Callable[[Any, Any], _Observer | None] | None = None
        self._on_batch: Callable[[Any], object] | None = None
        self._rests = False  # after training, instead of being closed: evaluations may follow

    def report(self) -> Report:
        """Return the report so far. Reads pending values from the device."""
        return finished(judged_as_a_whole(self._report()))

    def _report(self) -> Report:
        watched = self._watch
        return self._with_faults(
            watched._report() if watched is not None else Report(f"watched nothing: {self._why_not}")
        )

    def _released(self) -> Report:
        """Release the model and all recorded data, and return the last report."""
        watched, self._watch = self._watch, None
        return self._report() if watched is None else self._with_faults(watched.release())

    def _with_faults(self, report: Report) -> Report:
        return dataclasses.replace(report, faults=(*report.faults, *self._guard.faults.values()))

    # The Trainer's events.

    def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Install the hooks."""
        self._safely("beginning", self._begin, args, state, given.get("model"), given.get("optimizer"))

    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Record the loss of the step."""
        self._safely("loss", self._step)

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **given: Any) -> None:
        """Record the loss of an evaluation."""
        self._safely("evaluation", self._evaluated, metrics or {})

    def on_train_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Remove the hooks, and report what was wrong."""
        self._safely("end", self._end, state)

    # What is done at them.

    def _begin(self, args: Any, state: Any, model: Any, optimizer: Any) -> None:
        self._close()
        self._watch, self._losses = None, []
        self._guard.faults.clear()
        if (why := unsupported("transformers")) is not None:
            self._why_not = why
            return
        if args.n_gpu > 1:
            self._why_not = (
                f"the Trainer spreads each batch over {args.n_gpu} GPUs in one process, which is not covered; "
                "start the script with torchrun"
            )
            return
        if not hasattr(getattr(optimizer, "optimizer", optimizer), "register_step_pre_hook"):
            self._why_not = f"its optimizer, {type(optimizer).__name__}, has no hooks to watch its steps by"
            return
        trainer = _trainer_of(self)
        wrapped = getattr(trainer, "model_wrapped", None)
        called = wrapped if hasattr(wrapped, "_orig_mod") else model  # torch.compile: hooks within are not run
        watching = watch(
            *self._hold(called, optimizer),
            every=self._every,
            stop_after=self._stop_after,
            trace_steps=self._trace_steps,
            logger=self._logger if state.is_world_process_zero else None,
            stop_on=self._stop_on,
            **self._shown,
        )
        if self._on_broken is not None:  # `diagnose run`'s
            watching._probe.on_broken = self._on_broken
        resumed = f", from its step {state.global_step} on, which counts as 0" if state.global_step else ""
        watching._facts = tuple(
            dataclasses.replace(fact, arguments=type(args).__name__) if isinstance(fact, ModelFacts) else fact
            for fact in watching._facts
        )
        watching._name += f" with a {type(trainer or transformers.Trainer).__name__}{resumed}"
        if trainer is None:
            watching._probe.uncovered["loss"] = "the Trainer that calls this callback was not found"
        else:
            self._listen(trainer)
        self._watch = watching

    def _listen(self, trainer: Any) -> None:
        """Let `training_step` leave its loss here. It is the one place that knows, whoever computes the loss."""
        first: list[_Observer] = []

        def begins(*args: Any, **kwargs: Any) -> None:
            found = self._first_step(trainer, args, kwargs)
            first[:] = [] if found is None else [found]
            self._safely("batches", self._keep_batch, args[1] if len(args) > 1 else kwargs.get("inputs"))

        def ended(*_: Any, **__: Any) -> None:
            for one in first:
                one.close()

        def returned(loss: Any, *_: Any, **__: Any) -> None:
            while first:
                self._safely("first step", first.pop().done, loss)
            if self._watch is not None:
                self._losses.append(loss)

        step = training_step(trainer)
        self._release = subscribe(None, (step.before, begins), (step.ended, ended), (step.after, returned))

    def _keep_batch(self, inputs: Any) -> None:
        if self._on_batch is not None:
            self._on_batch(inputs)

    def _first_step(self, trainer: Any, args: Any, kwargs: Any) -> _Observer | None:
        begin, self._on_first_step = self._on_first_step, None
        if begin is None:
            return None
        try:
            return begin(trainer, args[1] if len(args) > 1 else kwargs.get("inputs"))
        except Exception as fault:
            self._guard.faults["first step"] = f"looking at the first step failed: {typed_message(fault)}"
            return None

    def _step(self) -> None:
        losses, self._losses = self._losses, []
        if self._watch is not None:
            self._watch.step(sum(losses) if losses else None)

    def _evaluated(self, metrics: dict[str, Any]) -> None:
        """Take the loss; of several evaluation sets that of the first, for losses of two do not compare."""
        if self._watch is None or self._release is None:
            return
        names = [name for name in metrics if name.startswith("eval_") and name.endswith("loss")]
        self._eval_name = self._eval_name or ("eval_loss" if "eval_loss" in names else next(iter(names), None))
        if self._eval_name in metrics:
            self._watch.evaluated(metrics[self._eval_name])

    def _end(self, state: Any) -> None:
        self._close()
        if not self._quiet and state.is_world_process_zero and not (report := self.report()).ok:
            print(report, file=sys.stderr)

    def _close(self) -> None:
        if self._release is not None:
            self._release()
            self._release = None
        if self._watch is None:
            return
        if self._rests:
            self._watch._probe.rest()
        else:
            self._watch.close()


def _trainer_of(callback: TrainerCallback) -> Any:
    """Find the Trainer that is calling, up the stack: its events hand over the model, but not itself."""
    frame = sys._getframe(1)
    for _ in range(FRAMES):
        found = frame.f_locals.get("self")
        if isinstance(found, transformers.Trainer) and callback in found.callback_handler.callbacks:
            return found
        if frame.f_back is None:
            break
        frame = frame.f_back
    return None
