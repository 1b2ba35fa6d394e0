"""Buffers what a replay of a broken step needs: the weights and the inputs of the last steps."""

from __future__ import annotations

import dataclasses
import math
from collections import deque
from typing import Any

import torch
from torch import Tensor, nn

from diagnostics.collectors.pytorch.watch.record.captured_pass import CapturedPass, fingerprints
from diagnostics.collectors.pytorch.watch.record.norms import Layers
from diagnostics.collectors.pytorch.watch.record.step_log import NonFiniteStep, StepLog
from diagnostics.collectors.pytorch.watch.replay.replay import locate, not_finite
from diagnostics.collectors.system.host_memory import host_memory, resident_memory
from diagnostics.facts.nonfinite import OriginFacts
from diagnostics.failed_batch import FailedBatch

from . import weight_snapshot
from .weight_snapshot import WeightSnapshot

INPUTS_LIMIT = 256 * 2**20  # bytes of inputs held for a replay
INPUTS_SHARE = 1 / 16  # of what the process holds: at most so much is held of steps before the latest
FREE_SHARE = 1 / 4  # of the device's free memory: at most so much is taken for copies of the weights
COPIES = 3  # of the weights that a replay needs: the snapshot, a model with it, its gradients
STEPS_ON_HOST = 4  # before the latest, whose inputs are held on a CPU: what is not finite is noticed in so many
PASSES_LIMIT = 1024  # the same for passes, each with a random state of 5 KB
PASSES_OF_SKIPPED = 4  # replayed of a step that is skipped again and again: the first may be normal


class ReplayBuffer:
    """Holds the weights and inputs of the last steps, until something is not finite.

    Args:
        model: the one that is watched.
        layers: its parameters.
        device: its device.
        deferred: whether the device decides what is kept; see `WeightSnapshot`.
        always: whether the weights are copied before each step; if False, a non-finite gradient is noticed before
            the optimizer steps on it, and they are copied only then.

    Attributes:
        always: the argument.
        why_not: why the weights are not copied; empty if they are.
        origin: where the first NaN or inf came from, once there is one.
        passes: the passes held, oldest first.
    """

    def __init__(self, model: nn.Module, layers: Layers, device: torch.device, deferred: bool, always: bool):
        self._model = model
        self._layers = layers
        self._device = device
        self._deferred = deferred
        self.always = always
        self._snapshot: WeightSnapshot | None = None
        self._snapshot_step = -1
        # Whether all was finite so far. On a CPU it is read at once: there is nothing to wait for.
        self._good: Tensor | bool = True
        self._noticed = False  # whether it is known that a pass which is held went bad
        self._bytes = 0
        self.why_not = self._why_not_copied() if always else "" if self._is_small() else self._too_large()
        self._inputs_limit = self._inputs_allowed()
        self._steps_limit = math.inf if deferred else STEPS_ON_HOST
        self.passes: deque[CapturedPass] = deque()
        self.origin: OriginFacts | None = None
        self._failed: CapturedPass | None = None  # the pass of the origin

    def _is_small(self) -> bool:
        return weight_snapshot.fits(self._layers.parameters)

    def _too_large(self) -> str:
        return f"the weights take more than {weight_snapshot.LIMIT // 2**20} MiB and were not copied"

    def _why_not_copied(self) -> str:
        """Return why the weights should not be copied now; empty if there is room."""
        if not self._is_small():
            return self._too_large()
        free = free_memory(self._device)
        wanted = weight_snapshot.nbytes(self._layers.parameters) * COPIES
        if wanted <= free * FREE_SHARE:
            return ""
        return (
            f"replaying a step needs {wanted / 2**20:,.0f} MiB, more than a quarter of the "
            f"{free / 2**20:,.0f} MiB that were free, so the weights were not copied"
        )

    def _inputs_allowed(self) -> float:
        if self._deferred:  # what is held is on the device, and the failure is noticed some steps later
            return free_memory(self._device) * FREE_SHARE
        held = resident_memory()
        return math.inf if math.isnan(held) else held * INPUTS_SHARE

    def hold(self, kept: CapturedPass) -> None:
        """Keep a pass that is about to run, and drop the oldest beyond the limits."""
        if self.origin is not None or self._noticed:
            kept.inputs = None  # the pass that went bad is held already
            return
        self.passes.append(kept)
        self._bytes += kept.nbytes
        earlier = min(INPUTS_LIMIT, self._inputs_limit)
        while (
            self._bytes > INPUTS_LIMIT
            or len(self.passes) > PASSES_LIMIT
            or (self._bytes > earlier and self.passes[0].step < kept.step)
            or self.passes[0].step < kept.step - self._steps_limit
        ):
            dropped = self.passes.popleft()
            self._bytes -= dropped.nbytes
            dropped.inputs = None
            dropped.why_not = (
                f"no more than {earlier / 2**20:,.0f} MiB of inputs are held, and {PASSES_LIMIT} passes"
                + ("" if self._deferred else f", of {STEPS_ON_HOST + 1} steps")
            )

    def drop(self, done: int) -> None:
        """Drop the passes of all steps up to `done`."""
        while self.passes and self.passes[0].step <= done:
            self._bytes -= self.passes.popleft().nbytes

    def before_pass(self, step: int) -> None:
        """Copy the weights, if they are copied before each step and were not for this one."""
        if self.always and self._snapshot_step != step and not self.why_not and self.origin is None:
            self._snapshot_step = step
            if self._snapshot is None:
                self._snapshot = WeightSnapshot(self._layers.parameters, self._deferred)
            self._snapshot.take(self._good)

    def note(self, norms: Tensor | list[float], overflow: Tensor | None) -> bool:
        """Check whether the gradients of a step are finite. Return whether it is time for `copy_now`.

        Args:
            norms: of the gradients: (k,) on the device, not waited for, or numbers.
            overflow: () more than 0 if a loss scaler makes the optimizer skip this step.
        """
        if isinstance(norms, Tensor):
            if self.origin is None:
                finite = norms.sum().isfinite()
                if overflow is not None:
                    finite = finite | (overflow.reshape(()) > 0)
                good = self._good
                self._good = finite.to(good.device) & good if isinstance(good, Tensor) else finite
        elif self._good and not math.isfinite(sum(norms)) and (overflow is None or not float(overflow)):
            self._good = False
            self._noticed = True
            return True
        return False

    def noticed(self) -> None:
        """Record that the latest loss is not finite: what led to it is held, and no more is needed."""
        self._noticed = True

    def find(self, failure: NonFiniteStep, noticed: int, step_log: StepLog, copied: bool) -> None:
        """Find where the NaN or inf of a step began. No hook of the watcher may be on the model.

        Args:
            failure: the step.
            noticed: the last step that has run.
            step_log: the history.
            copied: whether no copy of the weights has failed.
        """
        try:
            usable = copied and self._snapshot is not None and self._snapshot.taken
            self.origin = locate(
                failure,
                self._model,
                self._layers.parameters,
                self._snapshot.weights() if self._snapshot is not None and usable else None,
                self._led_to(failure),
                device=self._device,
                noticed=noticed,
                why_no_weights=self.why_not or "the weights from before the step were not kept",
            )
        except Exception as fault:  # a model that cannot be copied or run again
            self.origin = OriginFacts(
                failure.step, None, False, noticed, loss=failure.loss,
                num_parameters=len(self._layers.parameters), learning_rate=failure.rate,
                batch_fingerprint=failure.fingerprint or None, batch_size=failure.size or None,
                reason=f"the step could not be run again: {type(fault).__name__}: {fault}",
            )  # fmt: skip
        else:
            if self.origin.kind == "optimizer step":
                self.origin = dataclasses.replace(self.origin, **_known_at(self.origin.step, step_log))
        finally:
            self._snapshot = None  # the first is the one that matters: no more needs to be held
            self._set_aside()
            self.passes.clear()

    def _led_to(self, failure: NonFiniteStep) -> list[CapturedPass]:
        passes = [kept for kept in self.passes if kept.step == failure.step]
        return passes[-PASSES_OF_SKIPPED:] if failure.left_out else passes

    def look_at_weights(self, last: int, step_log: StepLog) -> None:
        """Check, at the end of a run, the weights that no later pass has used."""
        broken = not_finite(self._layers.parameters)
        if broken and last >= 0 and self.origin is None:
            self.origin = OriginFacts(
                last, "optimizer step", True, last, parameters=broken,
                num_parameters=len(self._layers.parameters), **_known_at(last, step_log),
            )  # fmt: skip
            self._set_aside()

    def batch(self) -> FailedBatch | None:
        """Return the batch in which NaN or inf first appeared; None while all is finite."""
        origin, kept = self.origin, self._failed
        if origin is None:
            return None
        if kept is None:
            why = "no forward pass of that step was seen, or it was no longer held"
            return FailedBatch(origin.step, origin.batch_fingerprint, origin.batch_size or 0, why_not=why)
        why = "it was modified after the model had seen it" if kept.changed else kept.why_not
        args, kwargs = kept.inputs if kept.inputs is not None and not why else ((), {})
        number = fingerprints([kept])[0] or None
        return FailedBatch(origin.step, number, kept.size, origin.rows, args, kwargs, why)

    def _set_aside(self) -> None:
        """Keep the pass of the origin, and no other."""
        if self.origin is not None:
            held = [kept for kept in self.passes if kept.step == self.origin.step]
            self._failed = next((kept for kept in held if kept.broke), held[-1] if held else None)

    def copy_now(self) -> None:
        """Copy the weights before an optimizer steps on a non-finite gradient, unless they are copied already."""
        if self.always or self.why_not:
            return
        self.why_not = self._why_not_copied()
        if self.why_not:
            return
        self._snapshot = WeightSnapshot(self._layers.parameters, self._deferred)
        self._snapshot.take(True)


def _known_at(step: int, step_log: StepLog) -> dict[str, Any]:
    """Look up a step in the history."""
    rows = step_log.steps.arrays()
    known: dict[str, Any] = {}
    for place in (rows["steps"] == step).nonzero()[0]:
        known["learning_rate"] = float(rows["learning_rates"][place].max())
        known["loss"] = float(rows["losses"][place]) if rows["loss_known"][place] else None
    return known


def free_memory(device: torch.device) -> float:
    """Return the bytes that may still be allocated on a device; infinity if not known."""
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return float(torch.cuda.mem_get_info(device)[0] + unused)
    if device.type != "cpu":
        return math.inf
    return min((float(left) for _, left in host_memory()), default=math.inf)
