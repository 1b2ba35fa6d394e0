"""See `WrongBatchNormMomentum`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.course import Verdicts
from diagnostics.facts.dependence import DependenceFacts
from diagnostics.facts.layers import BatchNormFacts, StillStatistics
from diagnostics.facts.training import NoGradHistory, PredictionFacts, StepHistory
from diagnostics.rules.shared.statistics_lag import is_lagging
from diagnostics.rules.shared.whole_run import check_whole
from diagnostics.text.join import count_of, layers_named

STEPS = 20  # of a run; in a shorter one, the statistics are far from those of the data in any case
LATEST = 0.9  # momentum at which one batch outweighs all before it; PyTorch's default is 0.1
EXAMPLES = 100  # in an evaluation, and in sampled training batches
GAP = 0.15  # between training and evaluation accuracy, in addition to two standard errors
OTHERWISE = 0.4  # of the predictions: other classes than late in training; chance and different rows cause less
MEMORIES = 5  # a run of so many holds less than 1% of the first statistics; what lags then has another reason
SHOWN = 3  # layers named in the message


class WrongBatchNormMomentum(Rule):
    """Batch norm's running statistics do not represent the data, because its momentum is wrong.

    ## What it does
    Reads the momentum of each batch norm layer, checks whether its running statistics have ever changed, and
    compares the predictions in training with those in evaluation. After the run, a copy of the model classifies
    training rows twice in evaluation mode: with the running statistics, and with the statistics of the rows
    themselves.

    ## Why it is bad
    Batch norm uses the mean and variance of the batch in training, but the running mean and variance in
    evaluation. PyTorch's momentum is the weight of the new batch:
    `running = (1 - momentum) * running + momentum * batch`. In TensorFlow, Keras and Caffe, momentum is the weight
    of the old value. If `momentum=0.99` is copied from one of these to PyTorch, the running statistics reflect
    little more than the latest batch. With `momentum=0`, or 1 in Keras, the running statistics keep their initial
    values: a mean of 0 and a variance of 1. The training loss falls, but the evaluation effectively runs a
    different network.

    With Keras' default momentum of 0.99, the running statistics average over about 100 steps, so in a short run
    they still reflect earlier weights.

    ## Example
    ```python
    nn.BatchNorm2d(64, momentum=0.99)     # TensorFlow's default
    ```

    ## Instead
    ```python
    nn.BatchNorm2d(64, momentum=0.01)     # PyTorch's momentum is 1 - TensorFlow's
    ```

    ## Thresholds
    The run must have at least 20 steps. A momentum of 0 (1 in Keras) is reported if the statistics still have
    their initial values. In PyTorch, a momentum of 0.9 or more is always reported.

    In Keras, the finding is always a warning. In PyTorch, it is a warning only if, in the second half of the run,
    one of two conditions holds over at least 100 training examples and at least 100 evaluation examples:

    - Accuracy is lower in evaluation than in training by at least 15 percentage points plus two standard errors.
    - The class frequencies of the predictions differ between evaluation and training: at least 40% of the
      predictions would have to change to make the frequencies equal.

    With a momentum of 0, a warning also requires that the model was evaluated in evaluation mode.

    Running statistics average over 1 / (1 - momentum) steps in Keras, and 1 / momentum steps in PyTorch. Running
    statistics that lag behind the weights are reported as a warning if the run is complete and has at least 100
    steps, but fewer than five times as many as the statistics average over. With the statistics of the rows
    themselves, accuracy must exceed the share of the most frequent class by more than two standard errors. With
    the running statistics, it may exceed that share by at most half as much.

    ## Known problems
    Overfitting causes a similar gap between training and evaluation. For models that are not classifiers, the
    finding is a note in PyTorch, and lagging statistics are not detected.

    ## Sources
    The documentation for `torch.nn.BatchNorm2d` (the note on momentum) and `keras.layers.BatchNormalization`;
    pytorch/vision, issue 8250; Cadene/pretrained-models.pytorch, issue 5.
    """

    severity = "warning"
    causes = ("evaluation-at-chance", "evaluation-mismatch", "overfitting")

    @check
    def from_layers(
        self,
        norms: BatchNormFacts,
        steps: StepHistory,
        no_grad: NoGradHistory | None = None,
        answers: PredictionFacts | None = None,
    ) -> Finding | None:
        """Look for statistics that never moved or that reflect a single batch."""
        if steps.total_steps < STEPS:
            raise NotApplicable(f"needs {STEPS} steps")
        still = norms.untouched & (norms.momentums == 0)
        if still.any():
            return self._still(_of(norms, still), no_grad, answers)
        latest = norms.momentums >= LATEST
        return self._latest(_of(norms, latest), norms, answers) if latest.any() else None

    @check
    def from_state(self, state: StillStatistics) -> Finding | None:
        """Report Keras layers, whose momentum is the fraction of the statistics kept."""
        if state.steps < STEPS:
            raise NotApplicable(f"needs {STEPS} steps")
        one = len(state.layers) == 1
        their = "its" if one else "their"
        return self.found(
            f"{count_of(len(state.layers), 'batch norm layer')} ({layers_named(state.layers, most=SHOWN)}) "
            f"{'has' if one else 'have'} momentum 1. In Keras, momentum is the fraction of the moving statistics "
            f"kept at each step, so after {state.steps:,} steps {their} moving mean is still 0 and {their} moving "
            "variance is still 1. Training normalises with batch statistics, but evaluation uses these "
            "initial values, so the evaluated network differs from the trained one.",
            fix={"keras": "keras.layers.BatchNormalization()  # momentum 0.99: each step keeps 99%"},
            evidence={"layers": list(state.layers), "momentum": 1.0, "steps": state.steps},
        )

    @check
    def from_lag(self, steps: StepHistory, dependence: DependenceFacts, verdicts: Verdicts) -> Finding | None:
        """Compare the running statistics with those of a batch, for the weights at the end of the run."""
        seen = dependence.statistics
        if seen is None or not dependence.trained:
            raise NotApplicable(dependence.why_not.get("statistics", "needs a trained classifier with batch norm"))
        check_whole(steps, verdicts)
        if steps.total_steps >= MEMORIES * seen.memory or not np.isfinite(seen.memory) or not is_lagging(seen):
            return None
        enough = round(MEMORIES * seen.memory)
        running, own = seen.right_with_running / seen.rows, seen.right_with_own / seen.rows
        return self.found(
            "The running mean and variance that batch norm uses in evaluation lag behind the weights: they "
            f"are averages over about {seen.memory:,.0f} steps, and the run had only {steps.total_steps:,}. For "
            f"{seen.rows} rows of the first training batch, evaluated with the same weights, "
            f"{running:.0%} of the predictions are correct with the running statistics, but {own:.0%} with "
            "the batch's own statistics.",
            fix={
                "torch": (
                    "nn.BatchNorm2d(channels, momentum=0.1)  # averages over about 10 steps",
                    f"train for at least {enough:,} steps",
                ),
                "keras": (
                    "keras.layers.BatchNormalization(momentum=0.9)  # averages over about 10 steps",
                    f"train for at least {enough:,} steps",
                ),
            },
            evidence={
                "averaged_over": seen.memory,
                "steps": steps.total_steps,
                "rows": seen.rows,
                "right_with_running": seen.right_with_running,
                "right_with_own": seen.right_with_own,
            },
        )

    def _still(self, layers: list[str], no_grad: NoGradHistory | None, answers: PredictionFacts | None) -> Finding:
        evaluated = no_grad is not None and no_grad.passes_in_training_mode < no_grad.passes
        shares = None if answers is None else _shares(answers)
        proved = evaluated and answers is not None and (_is_worse(shares) or _answers_differ(answers))
        return self.found(
            f"Momentum is 0 in {count_of(len(layers), 'batch norm layer')} ({layers_named(layers, most=SHOWN)}), "
            "so the running statistics stay at mean 0 and variance 1. Training normalises with batch statistics, "
            "but evaluation uses these initial values, so the evaluated network differs from the trained "
            f"one.{_told(shares)}",
            fix=(
                "nn.BatchNorm2d(channels)  # momentum 0.1: the weight of the new batch",
                "to normalise with batch statistics in eval mode too, set track_running_stats=False",
            ),
            evidence={"layers": layers, "momentum": 0.0},
            severity=None if proved else "note",
        )

    def _latest(self, layers: list[str], norms: BatchNormFacts, answers: PredictionFacts | None) -> Finding:
        momentum = float(np.nanmax(norms.momentums))
        shares = None if answers is None else _shares(answers)
        proved = answers is not None and (_is_worse(shares) or _answers_differ(answers))
        return self.found(
            f"Momentum is {momentum:.4g} in {count_of(len(layers), 'batch norm layer')} "
            f"({layers_named(layers, most=SHOWN)}). In PyTorch, momentum is the weight of the new batch, which is "
            f"1 minus the momentum in TensorFlow and Keras. So the last training batch makes up {momentum:.0%} of "
            f"the statistics used in evaluation.{_told(shares)}",
            fix=(
                f"nn.BatchNorm2d(channels, momentum={1 - momentum:.4g})",
                "nn.BatchNorm2d(channels)  # momentum 0.1",
            ),
            evidence={
                "layers": layers,
                "momentum": momentum,
                "training_accuracy": None if shares is None else shares[0],
                "evaluation_accuracy": None if shares is None else shares[1],
            },
            severity=None if proved else "note",
        )


def _of(norms: BatchNormFacts, chosen: np.ndarray) -> list[str]:
    return [name or "the model" for name, it in zip(norms.layers, chosen, strict=True) if it]


def _shares(answers: PredictionFacts) -> tuple[float, float, float] | None:
    """Return training and evaluation accuracy in the second half of the run, and two standard errors."""
    right = answers.evaluation_right
    if right is None or not len(right) or not len(answers.steps):
        return None
    late = answers.steps >= answers.steps[-1] / 2
    lately = answers.evaluation_steps >= answers.steps[-1] / 2
    seen, asked = int(answers.labels[late].sum()), int(answers.evaluation_labels[lately].sum())
    if seen < EXAMPLES or asked < EXAMPLES:
        return None
    training, evaluation = float(answers.right[late].sum()) / seen, float(right[lately].sum()) / asked
    error = np.sqrt(training * (1 - training) / seen + evaluation * (1 - evaluation) / asked)
    return training, evaluation, 2 * float(error)


def _is_worse(shares: tuple[float, float, float] | None) -> bool:
    return shares is not None and shares[0] - shares[1] >= GAP + shares[2]


def _told(shares: tuple[float, float, float] | None) -> str:
    if shares is None:
        return ""
    return (
        f" In training, {shares[0]:.0%} of the predictions are correct; in evaluation, only {shares[1]:.0%} are."
    )


def _answers_differ(answers: PredictionFacts) -> bool:
    """Return whether the shares of predicted classes differ from those late in training."""
    if not len(answers.steps) or not len(answers.evaluation_steps):
        return False
    late = answers.answers[answers.steps >= answers.steps[-1] / 2].sum(axis=0)
    asked = answers.evaluation_answers[answers.evaluation_steps >= answers.steps[-1] / 2].sum(axis=0)
    if min(late.sum(), asked.sum()) < EXAMPLES:
        return False
    return bool(np.abs(late / late.sum() - asked / asked.sum()).sum() / 2 >= OTHERWISE)
