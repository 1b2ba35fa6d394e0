"""See `ExplodingGradients`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.causality import NAN
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.array import Array
from diagnostics.facts.training import GradientHistory, LossHistory, StepHistory
from diagnostics.rules.shared.loss_curve import FIRST, has_fallen

GROWTH = 1e3  # times the largest of the first steps
ENOUGH = 20  # steps with a finite gradient
ENOUGH_BEFORE_NAN = 4  # the same if the gradient became NaN, which may happen early
LATEST = 5  # of these steps, at the end, whose median counts: a single spike recovers
WINDOW = 20  # steps before and after a spike
LOST = 0.5  # of the improvement of the loss


class ExplodingGradients(Rule):
    """The gradient norm grows without bound.

    ## What it does
    In a watched run, the rule compares the gradient norm at the end of the run, or just before it became NaN or
    infinite, with the norm in the first steps. It also detects a single step whose gradient is a thousand times as
    large as the gradients before it, if the loss then rises.

    ## Why it is bad
    A huge update takes the weights out of the region where the gradient's linear approximation holds. The loss
    jumps, the next gradient is larger still, and eventually it is NaN. In recurrent networks, the gradient is a
    product over all time steps, so it explodes easily.

    ## Example
    ```python
    loss = loss_fn(recurrent(sequence), target)
    loss.backward()
    optimizer.step()
    ```

    ## Instead
    ```python
    loss = loss_fn(recurrent(sequence), target)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(recurrent.parameters(), 1.0)
    optimizer.step()
    ```

    ## Thresholds
    The run must have at least 20 steps with a finite gradient, and one of these conditions must hold:

    - The median of the last 5 norms is at least 1,000 times the largest of the first 10 norms, and the loss, if
      known, has not fallen.
    - One norm is at least 1,000 times the largest norm in the 20 steps before it. The median loss over the next 20
      steps is higher than the loss at that step, and at least half of the decrease so far is lost.

    If the gradient becomes NaN or infinite, 4 steps are enough, and one of the last 5 norms before that must be at
    least 1,000 times the largest of the first 10. Healthy spikes during warm-up are 10 to 100 times as large as
    the norms before them.

    ## Known problems
    The norms are measured at the optimizer step, so the rule does not see an explosion that clipping removes. If
    gradients are never zeroed, only `gradients-not-zeroed` reports the run.

    ## Sources
    Razvan Pascanu et al., "On the difficulty of training recurrent neural networks" (2013), which proposes
    clipping the norm.
    """

    severity = "warning"
    causes = ("loss-divergence", "loss-oscillation", *NAN)

    @check
    def from_history(
        self, gradients: GradientHistory, steps: StepHistory, losses: LossHistory | None = None
    ) -> Finding | None:
        """Compare the gradients at the end, and of each spike, with those before."""
        broken = np.flatnonzero(~np.isfinite(gradients.norms))
        end = int(broken[0]) if broken.size else len(gradients.norms)
        used = np.flatnonzero(gradients.norms[:end] > 0)
        if len(used) < (ENOUGH_BEFORE_NAN if broken.size else ENOUGH):
            raise NotApplicable(f"needs {ENOUGH} steps with a finite gradient")
        if (steps.gradients_zeroed == 0).sum() > (steps.gradients_zeroed == 1).sum():
            return None
        norms = gradients.norms[used].astype(np.float64)
        beginning = min(FIRST, len(norms) // 2)
        first = float(norms[:beginning].max())
        if broken.size:  # the step after the explosion is never seen: one large norm is enough
            if norms[-LATEST:].max() >= GROWTH * first:
                return self._grown(gradients, used, norms, beginning, float(norms[-LATEST:].max()), True)
            return None
        last = float(np.median(norms[-LATEST:]))
        if last >= GROWTH * first and not has_fallen(losses):
            return self._grown(gradients, used, norms, beginning, last, False)
        return self._spike(gradients, used, norms, losses)

    def _grown(
        self, gradients: GradientHistory, used: Array, norms: Array, beginning: int, last: float, broke: bool
    ) -> Finding:
        first = float(norms[:beginning].max())
        place = int(np.flatnonzero(norms >= GROWTH * first)[0])
        step = int(gradients.steps[used[place]])
        end = f"{last:.3g} just before it became NaN or infinite" if broke else f"{last:.3g} at the end"
        return self.found(
            f"The gradient norm exploded: it was at most {first:.3g} in the first {beginning} steps, "
            f"{norms[place]:.3g} at step {step}, and {end}.{_largest(gradients, used[place])} With "
            "gradients this large, each update overshoots, and the next gradient is even larger.",
            fix=(
                "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # before optimizer.step()",
                "lower the learning rate",
            ),
            evidence={"first": first, "last": last, "largest": float(norms.max()), "became_infinite": broke},
            step=step,
        )

    def _spike(
        self, gradients: GradientHistory, used: Array, norms: Array, known: LossHistory | None
    ) -> Finding | None:
        steps = gradients.steps[used]
        if known is None or not np.isin(steps, known.steps).all():
            return None
        losses = known.values[np.isin(known.steps, steps)]
        start = float(np.median(losses[:FIRST]))
        for place in range(WINDOW, len(norms) - WINDOW):
            before = float(norms[place - WINDOW : place].max())
            if norms[place] < GROWTH * before:
                continue
            best = float(np.median(losses[place - WINDOW : place]))
            after = float(np.median(losses[place + 1 : place + 1 + WINDOW]))
            if losses[place] >= after:
                continue  # it was as high before the update: the data has changed, as in continual learning
            if best < start and after - best >= LOST * (start - best):
                step = int(gradients.steps[used[place]])
                return self.found(
                    f"The gradient norm at step {step} is {norms[place]:.3g}, but was at most {before:.3g} in "
                    f"the previous {WINDOW} steps.{_largest(gradients, used[place])} The update raised the "
                    f"loss, whose median was {start:.3g} at the start, {best:.3g} before the spike and "
                    f"{after:.3g} after it.",
                    fix="torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # before optimizer.step()",
                    evidence={"norm": float(norms[place]), "before": before, "loss_before": best, "loss": after},
                    step=step,
                )
        return None


def _largest(gradients: GradientHistory, place: int) -> str:
    """Name the layer with the largest norm."""
    layers = gradients.layer_norms[place]
    if len(gradients.layers) < 2 or not np.isfinite(layers).all():
        return ""
    return f" The gradient is largest in '{gradients.layers[int(layers.argmax())]}'."
