"""See `ClipAfterStep`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.calls import ClipFacts
from diagnostics.facts.training import GradientHistory, StepHistory

ENOUGH = 3  # calls: a single one may be a test, or the end of an epoch


class ClipAfterStep(Rule):
    """Gradients are clipped too late or too early: after the step, or before the backward pass.

    ## What it does
    In a watched run, the rule observes `clip_grad_norm_` and `clip_grad_value_`, and checks whether each call
    happens between a backward pass and the step that uses its gradients.

    ## Why it is bad
    `optimizer.step()` uses the gradients as they are when it is called. Gradients that are clipped later are
    cleared before they are ever used, and before `backward()` there is nothing to clip. Either way, a batch with a
    huge gradient still wrecks the weights.

    ## Example
    ```python
    loss.backward()
    optimizer.step()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    ```

    ## Instead
    ```python
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    ```

    ## Thresholds
    There must be at least 3 clipping calls, none of which has any effect. The finding is a note if no gradient in
    the run exceeded the limit, and otherwise a warning.

    ## Known problems
    Gradients clipped by hand, as with `p.grad.clamp_()`, are not detected. If gradients are never zeroed, only
    `gradients-not-zeroed` reports the run.

    ## Sources
    PyTorch's documentation for `torch.nn.utils.clip_grad_norm_` ("Gradients are modified in-place") and its
    examples of gradient clipping in "Automatic Mixed Precision examples".
    """

    severity = "warning"
    causes = ("exploding-gradients",)

    @check
    def from_calls(
        self, clips: ClipFacts, steps: StepHistory, gradients: GradientHistory | None = None
    ) -> Finding | None:
        """Check whether any call clipped gradients that a step used."""
        if clips.in_time:
            return None
        if clips.useless < ENOUGH:
            raise NotApplicable(f"needs at least {ENOUGH} calls that clip gradients")
        if (steps.gradients_zeroed == 0).any():
            return None
        largest = _largest(clips, gradients)
        calls = f"`{clips.function}` was called {clips.useless:,} times, with a limit of {clips.limit:g}"
        seen = (
            f"{calls}, each time before `backward()`, when there were no gradients yet."
            if clips.cleared
            else f"{calls}, each time after the optimizer step, when the gradients had already been used. The "
            "clipped gradients were cleared before the next step."
        )
        if largest is None:
            told = " No step used clipped gradients."
        elif largest > clips.limit:
            told = f" The steps used unclipped gradients, with norms of up to {largest:.3g}."
        else:
            told = f" So far, there has been nothing to clip: the largest norm was {largest:.3g}."
        order = "loss.backward(), then {}(...), then optimizer.step()"
        return self.found(
            f"{seen}{told}",
            fix=order.format(clips.function),
            evidence={
                "function": clips.function,
                "limit": clips.limit,
                "useless_calls": clips.useless,
                "largest_norm": largest,
            },
            where=clips.where,
            severity="note" if largest is not None and largest <= clips.limit else "warning",
        )


def _largest(clips: ClipFacts, gradients: GradientHistory | None) -> float | None:
    """Return the largest finite gradient norm; None if unknown, or if values are clipped instead."""
    if clips.function != "clip_grad_norm_":
        return None
    norms = np.concatenate([clips.norms, np.zeros(0) if gradients is None else gradients.norms.astype(np.float64)])
    norms = norms[np.isfinite(norms) & (norms > 0)]
    return float(norms.max()) if len(norms) else None
