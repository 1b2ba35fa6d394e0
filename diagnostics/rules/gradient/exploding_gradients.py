"""See `ExplodingGradients`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.causality import NAN
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.pipeline import Array
from diagnostics.facts.training import GradientHistory, LossHistory, StepHistory
from diagnostics.rules.shared.loss_curve import FIRST, has_fallen

GROWN = 1e3  # times the largest of the first steps
ENOUGH = 20  # steps with a finite gradient
ENOUGH_BEFORE_NAN = 4  # the same where the run broke, which may be soon
LATEST = 5  # of them, at the end, whose median counts: one spike is not for good
WAS_STEADY = 20  # steps before a spike, and after it
THROWN_BACK = 0.5  # of what the loss had gained


class ExplodingGradients(Rule):
    """The norm of the gradient grows out of bounds.

    ## What it does
    While a model is watched: compares the norm of the gradient at the end of the run, or just before it became NaN
    or infinite, with that of the first steps. Also looks for single steps whose gradient is a thousand times that
    of the steps before, and whose update threw the loss back.

    ## Why it is bad
    A step as large as its gradient leaves the region for which the gradient was computed. The loss jumps, the next
    gradient is larger still, and at the end of it is NaN. In recurrent nets the gradient is a product over all
    positions and does this by nature.

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
    The median of the last 5 norms, or where the run then broke the largest of them, is 1,000 times the largest of
    the first 10 (of the first half, where there are fewer than 20), and the loss, where it is known, has not
    fallen. Or: a norm 1,000 times the largest of the 20 steps before it, and the loss of the 20 steps after
    has lost at least half of what it had gained since the beginning, and is above that of the step itself, which
    is computed before its update: otherwise other data has come. At least 20 steps. All are ours: the spikes
    of a warm-up reach 10 to 100 times, and come back.

    ## Known problems
    Norms are those that the optimizer steps on: what the loop clips is not seen to explode. Where the gradients
    are never zeroed they grow for that reason, and only `gradients-not-zeroed` says so. Before training, on one
    batch, no size of a gradient is too large by itself; a loss summed over a batch makes it as large as it likes.

    ## Sources
    Razvan Pascanu et al., "On the difficulty of training recurrent neural networks" (2013), which proposes
    clipping the norm.
    """

    severity = "warning"
    causes = ("loss-divergence", "loss-oscillation", *NAN)
    no_exhibit = "a rate too high and a recurrent net do it at once; the exhibits of both stop short of it"

    @check
    def from_history(
        self, gradients: GradientHistory, steps: StepHistory, losses: LossHistory | None = None
    ) -> Finding | None:
        """Compare the gradients of the end, and of each spike, with those before."""
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
        if broken.size:  # the step after the one that broke it is never seen: one is enough
            if norms[-LATEST:].max() >= GROWN * first:
                return self._grown(gradients, used, norms, beginning, float(norms[-LATEST:].max()), True)
            return None
        last = float(np.median(norms[-LATEST:]))
        if last >= GROWN * first and not has_fallen(losses):
            return self._grown(gradients, used, norms, beginning, last, False)
        return self._spike(gradients, used, norms, losses)

    def _grown(
        self, gradients: GradientHistory, used: Array, norms: Array, beginning: int, last: float, broke: bool
    ) -> Finding:
        first = float(norms[:beginning].max())
        place = int(np.flatnonzero(norms >= GROWN * first)[0])
        step = int(gradients.steps[used[place]])
        end = f"{last:.3g} shortly before it was NaN or infinite" if broke else f"{last:.3g} at the end"
        return self.found(
            f"The norm of the gradient grew out of bounds: at most {first:.3g} in the first {beginning} steps, "
            f"{norms[place]:.3g} in step {step}, and {end}.{_largest(gradients, used[place])} A step on such a "
            "gradient leaves the region that it was computed for, and the next gradient is larger still.",
            fix="torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # before optimizer.step(); and a lower "
            "learning rate",
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
        for place in range(WAS_STEADY, len(norms) - WAS_STEADY):
            before = float(norms[place - WAS_STEADY : place].max())
            if norms[place] < GROWN * before:
                continue
            best = float(np.median(losses[place - WAS_STEADY : place]))
            after = float(np.median(losses[place + 1 : place + 1 + WAS_STEADY]))
            if losses[place] >= after:
                continue  # it was as high before the step: other data has come, as where one task follows another
            if best < start and after - best >= THROWN_BACK * (start - best):
                step = int(gradients.steps[used[place]])
                return self.found(
                    f"The gradient of step {step} has a norm of {norms[place]:.3g}; in the {WAS_STEADY} steps "
                    f"before it was at most {before:.3g}.{_largest(gradients, used[place])} The step on it threw "
                    f"the loss back: {start:.3g} at the beginning, {best:.3g} before it and {after:.3g} after it "
                    "(medians).",
                    fix="torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # before optimizer.step()",
                    evidence={"norm": float(norms[place]), "before": before, "loss_before": best, "loss": after},
                    step=step,
                )
        return None


def _largest(gradients: GradientHistory, place: int) -> str:
    """Name the layer that has most of it."""
    layers = gradients.layer_norms[place]
    if len(gradients.layers) < 2 or not np.isfinite(layers).all():
        return ""
    return f" It is largest in '{gradients.layers[int(layers.argmax())]}'."
