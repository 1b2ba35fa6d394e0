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

# Keras keeps rates in float32, where 0.001 is 0.0010000000475: 5e-8 off. Two rates that people choose differ by
# far more.
SAME = 1e-6


class DefaultLearningRate(Rule):
    """The optimizer runs at the learning rate it has when none is given, and that rate does not suit the model.

    ## What it does
    Compares the learning rate with the optimizer's default. Where they agree, it asks whether a trial on one
    batch showed the rate to be too high or too low, as the rules of these names do. In a run that is watched it
    asks whether the run showed the rate to be too high.

    ## Why it is bad
    An optimizer named by a string, `optimizer="adam"`, hides a learning rate, and it is the one setting that
    matters most. Adam's default, 0.001, was chosen for networks that were small by today's measure. A wide
    transformer stalls at the level of guessing with it, and nothing in the script says why.

    ## Example
    ```python
    model.compile(optimizer="adam", loss=loss)
    ```

    ## Instead
    ```python
    model.compile(optimizer=keras.optimizers.Adam(5e-5), loss=loss)
    ```

    ## Thresholds
    Those of `learning-rate-too-high` and `learning-rate-too-low`. No rate is forbidden: a default that works
    is silent. Two rates are the same if they differ by less than a millionth, which is more than float32
    rounds.

    ## Known problems
    A rate that was written down and happens to be the default cannot be told from one that was left out; it is
    reported all the same, for it is as unfit.

    ## Sources
    The Hugging Face course, chapter 8, "Debugging the training pipeline" (TensorFlow), "Check your
    hyperparameters"; the documentation of `keras.optimizers.Adam` (`learning_rate=0.001`) and
    `torch.optim.Adam` (`lr=1e-3`).
    """

    severity = "warning"
    causes = ("learning-rate-too-high", "learning-rate-too-low")

    @check
    def from_trial(
        self, optimizer: OptimizerFacts, trial: TrialFacts, loss: LossFacts, model: ModelFacts | None = None
    ) -> Finding | None:
        """Ask of a default rate whether the trial showed that it is unfit."""
        default = optimizer.default_rate
        if default is None:
            raise NotApplicable("needs an optimizer that has a learning rate by default")
        if not all(math.isclose(rate, default, rel_tol=SAME) for rate in optimizer.learning_rates):
            return None
        floor = lr_trial.floor_of(trial, loss)
        if lr_trial.is_too_high(trial, floor):
            unfit = "too high"
        elif lr_trial.is_too_low(trial, floor):
            unfit = "too low"
        else:
            return None
        assert trial.better_rate is not None  # or the trial would show nothing
        return self.found(
            f"{_origin(optimizer, default, model)} That is {unfit} for this model: on "
            f"{lr_trial.on_batches(trial)} it took the loss {_from_to(trial.losses, trial.batches)}, "
            f"where {trial.better_rate:.3g}, with all else as it was, took it "
            f"{_from_to(trial.better_losses, trial.batches)}.",
            fix=lr_trial.fix(trial.better_rate, model, optimizer),
            evidence={
                **lr_trial.evidence(trial, floor),
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
        """Ask of a default rate whether the run showed that it is too high."""
        default = optimizer.default_rate
        if default is None:
            raise NotApplicable("needs an optimizer that has a learning rate by default")
        update_size.check_measured(updates)
        seen = loss_curve.worst_course(steps, losses, updates, answers, learning_rate_too_high.STEPS)
        if seen is None or not update_size.large_updates(updates, seen[1].since):
            return None
        what, course = seen
        if not math.isclose(update_size.rate_until(steps, course.until), default, rel_tol=SAME):
            return None
        return self.found(
            f"{_origin(optimizer, default, model)} That is too high for this model. "
            f"{loss_curve.in_words(what, course)}",
            fix=f"{lr_trial.fix(default / 10, model, optimizer)}, and a tenth of that if it is not enough",
            evidence={"default_rate": default, "unfit": "too high", "course": what, **vars(course)},
            step=course.since,
        )


def _origin(optimizer: OptimizerFacts, default: float, model: ModelFacts | None) -> str:
    in_keras = model is not None and model.library == "keras"
    word = "learning_rate" if in_keras else "lr"
    origin = f"{optimizer.name} runs at {word}={default:g}, which is what it takes when none is given"
    if in_keras:
        origin += f', as in optimizer="{optimizer.name.lower()}"'
    return f"{origin}."


def _from_to(losses: tuple[float, ...], batches: int) -> str:
    return f"from {losses[0]:.4g} to {lr_trial.ended(losses, batches):.4g} in {len(losses)} steps"
