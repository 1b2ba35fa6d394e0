"""See `LossPlateau`."""

from __future__ import annotations

import math
import statistics
from typing import Any

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.course import Verdicts
from diagnostics.facts.data import DatasetFacts
from diagnostics.facts.loss_graph import LossGraph, Node
from diagnostics.facts.pipeline import LossFacts, ModelFacts, OptimizerFacts
from diagnostics.facts.training import LossHistory, NoGradHistory, PredictionFacts, StepHistory, UpdateHistory
from diagnostics.facts.trials import TrialFacts
from diagnostics.rules.shared import loss_curve, lr_trial, update_size
from diagnostics.rules.shared.update_size import warms_up
from diagnostics.rules.shared.whole_run import check_whole, last_third
from diagnostics.text.join import among

AT_FLOOR = 0.05  # of the constant prediction's loss: the largest distance of the median of the last losses
HOVERING = 0.2  # of the same: the largest range of the last losses
STEPS = 400  # in a watched run; many healthy runs take some hundred steps to leave the chance level
REL_TOLERANCE = 1e-4  # of the loss: the range of the last third; losses on different rows differ by percents
FEWEST = 30  # losses in that third
DISTINCT = 0.5  # of the rows read; a few repeated rows may well form equal batches
EXACT, SOON = (
    3e-7,
    20,
)  # of a loss that does not move by more than float32 rounds; steps after which that is certain
REFERENCE, COMPARED = 0.9, 8  # of the steps run the model without gradients, on the same input; steps compared
ONE_BY_DESIGN = ("Exp", "Div")  # exp(log_p - log_p.detach()) and loss / loss.detach() are 1, with a gradient
UNIT = 1e-3  # by which the length of a vector may differ from 1
LITTLE = 0.9  # of the loss of equal scores: the lowest loss of cosines times a small constant
SCORED = ("T", "Transpose", "Permute", "Mul", "Div", "Add", "Sub", "MaskedFill")  # from a product of embeddings
PAIRED_STEPS, FEWEST_PAIRS = 200, 8  # of a run with a contrastive loss; rows of a batch
NEAR, FALLING = 0.02, 0.005  # of the loss of equal scores: distance from it; decrease from a third to the next
TRANSPOSED = ("T", "Transpose", "Permute")
MOVED = 1.0  # of the weights' norm: the sum of all updates, if they all pointed in one direction


class LossPlateau(Rule):
    """The loss stays at chance level, even though the batch can be learned.

    ## What it does
    Trains a copy of the model on one batch at your learning rate. It checks whether the loss of the copy stays at
    the level of a constant prediction in the last third of the steps, while a copy at another rate gets well below
    that level.

    In a watched run, the rule makes four checks:

    - It compares the cross entropy of the predictions at the sampled steps with the entropy of the labels.
    - It checks whether a loss of any kind is constant at the end of the run even though each batch contains
      different rows. The predictions may have collapsed (as with a triplet loss stuck at its margin), or the loss
      compares the model with itself (as with a preference loss whose reference model is not a copy).
    - If each row has to find its partner among the rows of its batch, it compares the cross entropy with its value
      for equal scores.
    - If the logits of a cross entropy are scaled cosine similarities, it computes the lowest possible loss.

    ## Why it is bad
    A loss at chance level means that the model has learned the class frequencies and nothing else.

    ## Example
    ```python
    model.compile(optimizer="adam", loss=loss)  # three classes: stays at ln 3 = 1.10
    model.fit(batches, epochs=10)
    ```

    ## Instead
    ```python
    model.compile(optimizer=keras.optimizers.Adam(5e-5), loss=loss)
    model.fit(batches, epochs=10)
    ```

    ## Thresholds
    Three things must hold for the losses of the copy in the last third of its steps:

    - The median loss is within 5% of the loss of the best constant prediction (for cross entropy, the entropy of
      the batch's labels).
    - The highest and the lowest loss differ by at most 20% of the loss of the best constant prediction.
    - Judging by its trend, the loss would not fall below 0.9 times the loss of the constant prediction in the same
      number of further steps.

    The copy must also meet the thresholds of `learning-rate-too-high` or `learning-rate-too-low`.

    In a watched run of at least 400 steps, three things must hold over the last two thirds of the run:

    - The average cross entropy is at most 5% above the labels' entropy, and it is not more than 5% below the
      labels' entropy in any quarter of these two thirds.
    - From the first half of these two thirds to the second, the cross entropy falls by at most 2% of the labels'
      entropy.
    - Accuracy is at most three standard errors above the share of the most frequent class.

    The cross entropy must never have fallen 10% below the labels' entropy, and the learning rate must have stopped
    rising. Together, the steps must have been large enough to change the weights by 100% of their norm, had they
    all pointed in the same direction. If updates change the weights by more than 1% of their norm,
    `learning-rate-too-high` reports the run instead.

    A loss is constant if the last third of the run has at least 30 losses, all finite, that differ by at most
    0.01% of their median. The magnitude of this median must be more than 0.01% of the run's largest loss. At least
    30 different batches must have been used. The dataset must be large enough for at least two batches, and at
    least half of its rows must be distinct. If the dataset is unknown, the weights must change instead. A constant
    whole number, such as 1, is not reported if the loss may have that value by design. The rule reports that the
    model is its own reference model if, in at least 90% of the steps, it also runs without gradients on the same
    inputs. In that case, 20 losses are enough if all losses in the run are equal up to rounding errors.

    If a cross entropy compares all rows of a batch with each other through a product of two embeddings, the chance
    level is the logarithm of the number of rows, which must be at least 8. The run must have at least 200 steps.
    In the middle third and in the last third, the average loss must be within 2% of the chance level. From the
    middle third to the last, it may fall by at most 0.5% of the chance level.

    If the scores are scaled cosine similarities, the lowest possible loss must be at least 90% of the loss for
    equal scores.

    ## Known problems
    Before training, the plateau is detected only on a few batches, and only if another learning rate gets past it;
    `cannot-overfit-one-batch` covers all other causes. In a watched run, the chance level is known only for an
    unweighted cross entropy on outputs of shape (examples, classes). An inherently hard task, such as the parity
    of many bits, is reported too.

    ## Sources
    Andrej Karpathy, "A Recipe for Training Neural Networks" (2019), "input-independent baseline"; the Hugging Face
    course, chapter 8, "Debugging the training pipeline" (TensorFlow).
    """

    severity = "warning"
    causes = ("constant-predictions", "cannot-overfit-one-batch", "not-learning")

    @check
    def from_cosines(self, graph: LossGraph) -> Finding | None:
        """Compute the lowest cross entropy of scores that cannot be far apart."""
        if (scores := _cosine_scores(graph)) is None:
            raise NotApplicable
        classes, factor = scores
        chance = math.log(classes)
        lowest = math.log1p((classes - 1) * math.exp(-2 * factor))
        if lowest < LITTLE * chance:
            return None
        return self.found(
            f"The scores passed to the cross-entropy loss are cosine similarities times {factor:.3g}, so "
            f"they differ by at most {2 * factor:.3g}. With {classes:,} scores, the loss is {chance:.4g} if all "
            f"scores are equal, and no weights can bring it below {lowest:.4g}. So the softmax "
            "stays almost uniform, and there is almost nothing to learn from.",
            fix=(
                "divide by a temperature of 0.07 to 0.5: scores = similarity / temperature",
                "multiply by a scale of 10 to 64: scores = similarity * scale",
            ),
            evidence={"factor": factor, "classes": classes, "lowest": lowest, "chance": chance},
        )

    @check
    def from_candidates(
        self, graph: LossGraph, steps: StepHistory, losses: LossHistory, verdicts: Verdicts
    ) -> Finding | None:
        """Compare a cross entropy over the pairs of a batch with its value if all pairs score the same."""
        if not (count := _paired_scores(graph)):
            raise NotApplicable
        check_whole(steps, verdicts)
        if steps.total_steps < PAIRED_STEPS or warms_up(steps):
            raise NotApplicable(f"needs {PAIRED_STEPS} steps, and a run that is past its learning-rate warm-up")
        last = last_third(losses, steps.total_steps)
        before = last_third(losses, steps.total_steps, further=1)
        if min(len(last), len(before)) < FEWEST or not np.isfinite([*before, *last]).all():
            raise NotApplicable(f"needs at least {FEWEST} finite losses in each third of the run")
        chance, ended = math.log(count), float(last.mean())
        if verdicts.found or abs(ended - chance) > NEAR * chance:
            return None
        if abs(float(before.mean()) - chance) > NEAR * chance or before.mean() - ended > FALLING * chance:
            return None
        return self.found(
            f"The contrastive loss is stuck at the chance level: it averages {ended:.4g} over the last third of "
            f"{steps.total_steps:,} steps. If all {count} candidates of a row had the same score, it would be "
            f"{chance:.4g}, the logarithm of {count}. So the model cannot tell the right pair from the others.",
            fix=(
                "shuffle both sides in the same order: put them into one dataset, "
                "DataLoader(TensorDataset(a, b), shuffle=True)",
                "print ten pairs exactly as the model receives them, and check that they match",
                "train on one batch for 200 steps: if the loss falls, look at the pairs; if not, at the model",
            ),
            evidence={"ended": ended, "chance": chance, "candidates": count, "steps": steps.total_steps},
            step=steps.total_steps - 1,
        )

    @check
    def from_trial(
        self,
        trial: TrialFacts,
        loss: LossFacts,
        model: ModelFacts | None = None,
        optimizer: OptimizerFacts | None = None,
    ) -> Finding | None:
        """Check the end of the trial at the user's rate."""
        baseline = lr_trial.constant_baseline_loss(trial, loss)
        last = trial.losses[-max(1, len(trial.losses) // 3) :]
        if not trial.better_rate:
            return None
        if not lr_trial.is_too_high(trial, baseline) and not lr_trial.is_too_low(trial, baseline):
            return None  # such a run is only slow at first, like fine-tuning at 2e-5
        if not all(math.isfinite(value) for value in last):
            return None
        if abs(statistics.median(last) - baseline) > AT_FLOOR * baseline:
            return None
        if max(last) - min(last) > HOVERING * baseline:
            return None
        if lr_trial.leads_below(trial.losses, lr_trial.BELOW * baseline):
            return None
        return self.found(
            f"Trained on {lr_trial.on_batches(trial)} at your learning rate of {trial.learning_rate:.3g}, the "
            f"model is stuck at the chance level: in the last {len(last)} of {len(trial.losses)} steps, the loss "
            f"{_hovered(min(last), max(last))}. A constant prediction would have a loss of {baseline:.4g}. But "
            f"the model can learn: at a learning rate of {trial.better_rate:.3g}, the loss fell to "
            f"{lr_trial.final_loss(trial.better_losses, trial.batches):.4g} in {len(trial.better_losses)} steps.",
            fix=lr_trial.fix(trial.better_rate, model, optimizer),
            evidence={
                **lr_trial.evidence(trial, baseline),
                "lowest_of_last": min(last),
                "highest_of_last": max(last),
            },
        )

    @check
    def from_answers(self, steps: StepHistory, updates: UpdateHistory, answers: PredictionFacts) -> Finding | None:
        """Check whether a classifier stays at the chance level even though its weights change."""
        curve = loss_curve.stuck(steps, answers, STEPS)
        moved = update_size.moved(steps, updates)
        if moved is None:
            raise NotApplicable("needs steps with the weights compared before and after")
        if curve is None or update_size.large_updates(updates, curve.since):
            return None
        assert curve.chance is not None  # otherwise it would not be stuck
        if moved < MOVED or curve.ended > loss_curve.AT_CHANCE[1] * curve.chance:
            return None
        total = answers.labels.sum()
        return self.found(
            "The model is stuck at the chance level: its cross-entropy loss averaged "
            f"{curve.ended:.4g} from step {curve.since:,} to {curve.until:,}. A constant prediction would "
            f"have a loss of {curve.chance:.4g}. Over the whole run, {answers.right.sum():,} of the "
            f"{total:,} sampled predictions were correct, and {answers.labels.sum(axis=0).max():,} of "
            f"the {total:,} labels belonged to the most frequent class. The weights are changing (the updates add "
            f"up to {moved:.1f} times their norm).",
            fix=(
                "train on one small batch first: if the model cannot memorise it, check inputs, labels and "
                "activations",
                "if the model can memorise one batch, change the learning rate",
            ),
            evidence={"moved": moved, **vars(curve)},
            step=curve.since,
        )

    @check
    def from_losses(
        self,
        steps: StepHistory,
        losses: LossHistory,
        verdicts: Verdicts,
        dataset: DatasetFacts | None = None,
        updates: UpdateHistory | None = None,
        no_grad: NoGradHistory | None = None,
        graph: LossGraph | None = None,
    ) -> Finding | None:
        """Look for a loss that no longer depends on the batch."""
        check_whole(steps, verdicts)
        if dataset is None:
            if not update_size.moved(steps, updates):
                raise NotApplicable("needs a dataset, or evidence that the steps change the weights")
        elif dataset.size is None or dataset.size < 2 * int(steps.batch_sizes.max(initial=1)):
            raise NotApplicable("needs a dataset with more than one batch")
        elif dataset.distinct_rows is not None and dataset.distinct_rows < DISTINCT * dataset.rows_read:
            raise NotApplicable("needs rows that differ from one another")
        last = last_third(losses, steps.total_steps)
        if len(last) < FEWEST or not np.isfinite(last).all():
            raise NotApplicable(f"needs at least {FEWEST} finite losses in the last third of the run")
        value = float(np.median(last))
        is_flat = np.ptp(last) <= REL_TOLERANCE * abs(value)
        if len(np.unique(steps.batch_fingerprints[-len(last) :])) < FEWEST or not is_flat:
            return None
        if abs(value) <= REL_TOLERANCE * float(np.nanmax(np.abs(losses.values))) or verdicts.found:
            return None
        if _may_be_one_by_design(value, graph, certain=dataset is not None):
            return None
        of_last: dict[str, Any] = {"loss": value, "steps": len(last), "range": float(np.ptp(last))}
        if no_grad is not None and _is_own_reference(no_grad, steps):
            return self._of_own_reference(no_grad, of_last)
        return self.found(
            f"{_stays(of_last)}. Neither inputs nor targets affect the loss: either the model makes the same "
            "prediction for all rows, or the loss compares two values that are always equal.",
            fix=(
                "look for the layer after which all rows are the same: a relu that is 0 for every row, a "
                "saturated sigmoid, or a clip",
                "divide the learning rate by 10, and scale the inputs to about unit variance",
                (
                    "if the outputs are embeddings, normalise them to length 1 before computing distances, and "
                    "start with easy triplets"
                ),
                "if the loss compares the model with an earlier version of itself, make that version a copy: "
                "copy.deepcopy(model)",
            ),
            evidence=of_last,
        )

    @check
    def from_first_loss_on(
        self,
        steps: StepHistory,
        losses: LossHistory,
        no_grad: NoGradHistory,
        verdicts: Verdicts,
        updates: UpdateHistory | None = None,
    ) -> Finding | None:
        """Look for a model that is its own reference from the first step on, also in a run too short for the rest.

        The loss must not move by more than rounding: an adapter that has hardly moved yet is almost its base.
        """
        values = losses.values
        if not verdicts.trained_alone or len(values) < SOON or warms_up(steps) or not np.isfinite(values).all():
            raise NotApplicable(f"needs {SOON} finite losses from a run that is past its learning-rate warm-up")
        value = float(np.median(values))
        if not _is_own_reference(no_grad, steps) or not value or np.ptp(values) > EXACT * abs(value):
            return None
        if len(np.unique(steps.batch_fingerprints)) < SOON or not update_size.moved(steps, updates):
            return None
        if _may_be_one_by_design(value, None, certain=False):
            return None
        return self._of_own_reference(
            no_grad, {"loss": value, "steps": len(values), "range": float(np.ptp(values))}
        )

    def _of_own_reference(self, no_grad: NoGradHistory, of_last: dict[str, Any]) -> Finding:
        return self.found(
            f"{_stays(of_last)}. The model is its own reference: in each step, the model being "
            "trained also runs without gradients on the same inputs, with the same weights (seen in "
            f"{among(no_grad.same, no_grad.compared, 'step')} compared). The difference between model and "
            "reference is always 0, so the loss measures no progress, and nothing keeps the model near its "
            "initial weights.",
            fix=(
                "before training, make the reference a frozen copy: "
                "ref_model = copy.deepcopy(model).eval().requires_grad_(False)",
                "with PEFT adapters, turn the adapters off for the reference: with model.disable_adapter(): ...",
            ),
            evidence={
                **of_last,
                "passes_without_gradients": no_grad.passes,
                "same_input": no_grad.same,
                "compared": no_grad.compared,
            },
        )


def _stays(of_last: dict[str, Any]) -> str:
    return (
        f"In the last {of_last['steps']} recorded steps, the loss stays at {of_last['loss']:.5g}, although the "
        "rows differ from batch to batch"
    )


def _may_be_one_by_design(value: float, graph: LossGraph | None, *, certain: bool) -> bool:
    """Return whether a whole number as a loss may have a gradient; if the graph is not known, unless certain."""
    if abs(value - round(value)) > REL_TOLERANCE * abs(value):
        return False
    if graph is None:
        return not certain
    return any(node.operation in ONE_BY_DESIGN for node in graph.nodes)


def _is_own_reference(no_grad: NoGradHistory, steps: StepHistory) -> bool:
    """Return whether the trained model runs without gradients on the same input in nearly each step."""
    often = no_grad.rounds >= REFERENCE * steps.total_steps
    return often and no_grad.compared >= COMPARED and no_grad.same >= REFERENCE * no_grad.compared


def _cosine_scores(graph: LossGraph) -> tuple[int, float] | None:
    """Return how many scores of a cross entropy are products of unit vectors times a constant, and the constant.

    None for others, and for a factor that is learned, which may grow.
    """
    for loss in graph.nodes:
        softmax = graph.nodes[loss.trained[0][0]] if loss.operation == "NllLoss" else None
        if softmax is None or softmax.operation != "LogSoftmax" or not softmax.shape or not softmax.shape[-1]:
            continue
        product, factor = graph.nodes[graph.source(softmax.trained[0][0], TRANSPOSED)], 1.0
        if product.operation in ("Mul", "Div"):
            factor = _factor(product)
            product = graph.nodes[graph.source(product.trained[0][0], TRANSPOSED)]
        lengths = [length for operand in product.operands for length in operand.lengths or (math.inf,)]
        if factor and product.operation == "Mm" and all(abs(length - 1) <= UNIT for length in lengths):
            return softmax.shape[-1], factor
    return None


def _paired_scores(graph: LossGraph) -> int:
    """Return how many candidates each row of a batch has for its partner; 0 if a cross entropy is of classes."""
    counts = set()
    for loss in graph.nodes:
        if loss.operation not in ("NllLoss", "NllLoss2D"):
            continue
        softmax = graph.nodes[loss.trained[0][0]] if loss.trained else None
        if softmax is None or softmax.operation != "LogSoftmax" or not softmax.trained:
            return 0
        product = graph.nodes[graph.source(softmax.trained[0][0], SCORED, alone=False)]
        square = softmax.shape is not None and len(softmax.shape) == 2 and softmax.shape[0] == softmax.shape[1]
        if not square or product.operation != "Mm" or len(product.trained) < 2:
            return 0
        counts.add(softmax.shape[1] if softmax.shape else 0)
    (count,) = counts if len(counts) == 1 else (0,)
    return count if count is not None and count >= FEWEST_PAIRS else 0


def _factor(product: Node) -> float:
    """Return the size of the constant that a tensor is multiplied by; 0 if it is not one number, or not known."""
    value = product.constants[0].value if len(product.constants) == 1 else None
    if not value or product.operation == "Mul":
        return abs(value or 0.0)
    return 0.0 if product.operands[0].node is None else abs(1 / value)


def _hovered(lowest: float, highest: float) -> str:
    low, high = f"{lowest:.4g}", f"{highest:.4g}"
    return f"stayed at {low}" if low == high else f"was between {low} and {high}"
