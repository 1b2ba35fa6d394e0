"""See `DefaultLearningRate`."""

from __future__ import annotations

import math

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.pipeline import LossFacts, ModelFacts, OptimizerFacts
from diagnostics.facts.training import LossHistory, PredictionFacts, StepHistory, UpdateHistory
from diagnostics.facts.trials import TrialFacts
from diagnostics.rules.shared import loss_curve, lr_trial, update_size

from . import learning_rate_too_high

# Keras stores rates in float32, where 0.001 is 0.0010000000475: 5e-8 off. Two deliberate rates differ by far
# more.
REL_TOLERANCE = 1e-6


class DefaultLearningRate(Rule):
    """The optimizer runs at its default learning rate, which does not suit the model.

    ## What it does
    Compares the learning rate with the optimizer's default. If the learning rate equals the default, the rule
    checks whether a trial on one batch, or a watched run, showed the rate to be too high or too low. See
    `learning-rate-too-high` and `learning-rate-too-low`.

    ## Why it is bad
    Passing the optimizer as a string, `optimizer="adam"`, hides the learning rate, which is the most important
    hyperparameter. Adam's default of 0.001 was chosen for networks that are small by today's standards. At a rate
    of 0.001, a wide transformer stays at chance level, and nothing in the script shows why.

    ## Example
    ```python
    model.compile(optimizer="adam", loss=loss)
    ```

    ## Instead
    ```python
    model.compile(optimizer=keras.optimizers.Adam(5e-5), loss=loss)
    ```

    ## Thresholds
    The rule uses the thresholds of `learning-rate-too-high` and `learning-rate-too-low`.

    ## Known problems
    A rate that was explicitly set to the default value is reported too.

    ## Sources
    The Hugging Face course, chapter 8, "Debugging the training pipeline" (TensorFlow), "Check your
    hyperparameters"; the documentation for `keras.optimizers.Adam` (`learning_rate=0.001`) and `torch.optim.Adam`
    (`lr=1e-3`).
    """

    severity = "warning"
    causes = ("learning-rate-too-high", "learning-rate-too-low")

    @check
    def from_trial(
        self, optimizer: OptimizerFacts, trial: TrialFacts, loss: LossFacts, model: ModelFacts | None = None
    ) -> Finding | None:
        """Check whether the trial showed that the default rate is unsuitable."""
        default = optimizer.default_rate
        if default is None:
            raise NotApplicable("needs an optimizer with a default learning rate")
        if not all(math.isclose(rate, default, rel_tol=REL_TOLERANCE) for rate in optimizer.learning_rates):
            return None
        baseline = lr_trial.constant_baseline_loss(trial, loss)
        if lr_trial.is_too_high(trial, baseline):
            unfit = "too high"
        elif lr_trial.is_too_low(trial, baseline):
            unfit = "too low"
        else:
            return None
        assert trial.better_rate is not None  # otherwise the trial would show nothing
        return self.found(
            f"{_origin(optimizer, default, model)} That is {unfit} for this model: on "
            f"{lr_trial.on_batches(trial)} the loss {_from_to(trial.losses, trial.batches)}; at "
            f"{trial.better_rate:.3g}, with everything else unchanged, it "
            f"{_from_to(trial.better_losses, trial.batches)}.",
            fix=lr_trial.fix(trial.better_rate, model, optimizer),
            evidence={
                **lr_trial.evidence(trial, baseline),
                "default_rate": default,
                "unfit": unfit,
            },
        )

    @check
    def from_history(
        self,
        optimizer: OptimizerFacts,
        steps: StepHistory,
        updates: UpdateHistory,
        losses: LossHistory | None = None,
        answers: PredictionFacts | None = None,
        model: ModelFacts | None = None,
    ) -> Finding | None:
        """Check whether the run showed that the default rate is too high."""
        default = optimizer.default_rate
        if default is None:
            raise NotApplicable("needs an optimizer with a default learning rate")
        update_size.check_measured(updates)
        seen = loss_curve.worst_curve(steps, losses, updates, answers, learning_rate_too_high.STEPS)
        if seen is None or not update_size.large_updates(updates, seen[1].since):
            return None
        what, curve = seen
        if not math.isclose(update_size.rate_until(steps, curve.until), default, rel_tol=REL_TOLERANCE):
            return None
        return self.found(
            f"{_origin(optimizer, default, model)} That is too high for this model. "
            f"{loss_curve.describe(what, curve)}",
            fix=(
                lr_trial.fix(default / 10, model, optimizer),
                f"lower the learning rate further, to {default / 100:.3g}",
            ),
            evidence={"default_rate": default, "unfit": "too high", "course": what, **vars(curve)},
            step=curve.since,
        )


def _origin(optimizer: OptimizerFacts, default: float, model: ModelFacts | None) -> str:
    in_keras = model is not None and model.library == "keras"
    word = "learning_rate" if in_keras else "lr"
    origin = f"{optimizer.name} uses its default learning rate ({word}={default:g}"
    if in_keras:
        origin += f', as in optimizer="{optimizer.name.lower()}"'
    return f"{origin})."


def _from_to(losses: tuple[float, ...], batches: int) -> str:
    first, last = f"{losses[0]:.4g}", f"{lr_trial.final_loss(losses, batches):.4g}"
    return (
        f"stayed at {last} for" if first == last else f"went from {first} to {last} in"
    ) + f" {len(losses)} steps"
