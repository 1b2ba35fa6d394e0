"""See `TargetsOutOfReach`."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.array import Array
from diagnostics.facts.loss_call import LossCall, LossCalls
from diagnostics.facts.loss_contracts import contract_of
from diagnostics.facts.loss_graph import LossGraph, Node
from diagnostics.facts.pipeline import BatchFacts, LossFacts, OutputFacts, SeveralOutputs
from diagnostics.rules.shared.first_found import first_found, first_output_found
from diagnostics.text.join import among, capitalized

RANGES: Final = {
    "sigmoid": (0.0, 1.0),
    "hard_sigmoid": (0.0, 1.0),
    "softmax": (0.0, 1.0),
    "tanh": (-1.0, 1.0),
    "cosine_similarity": (-1.0, 1.0),
    "relu": (0.0, math.inf),
    "softplus": (0.0, math.inf),
}
"""What the last function of a model can give, by its name."""

_OF_ZEROS: Final = {
    "cosine_embedding_loss": "A pair with target 0 adds nothing to the loss, which therefore only pulls similar "
    "pairs together and falls to 0 once all predictions are the same.",
    "hinge_embedding_loss": "A target of 0 has both effects: it pulls the pair together and pushes it apart.",
    "margin_ranking_loss": "With a target of 0, the loss is the margin for any prediction, so it has no gradient.",
    "soft_margin_loss": "With a target of 0, the loss is log(2) for any prediction, so it has no gradient.",
}

MARGIN = 0.1  # of the range, or of the largest target if it has no end; labels may be noisy or smoothed
SHARE = 0.1  # of the targets of a batch
CLASSES = 100  # whole numbers below this count as class indices; above, as counts or pixels
TOO_SHORT = 0.5  # of the examples under CTC; a few are dropped on purpose
MANY = 50  # classes; with more, rows with several ones may be the items of a recommender
ROUNDING = 1e-3  # rounding error of half precision near 1
BOXES, CORNERS = 4, 16  # boxes of a batch: some with a negative size; all with numbers that rise like corners
SEVERAL = ("Unbind", "Split", "SplitWithSizes")  # operations with several results
OUTSIDE = 0.25  # of these boxes begin before 0: centres of boxes within an image do not


class TargetsOutOfReach(Rule):
    """The targets are outside the range that the last activation or the loss allows.

    ## What it does
    Compares the targets of one batch with the range of the model's last activation (for a squared or absolute
    error), and with the targets that the loss is designed for:

    - binary cross entropy: 0 to 1
    - categorical cross entropy: class indices, or one-hot rows for several outputs
    - embedding and ranking losses: 1 and -1
    - CTC: labels other than the blank, and no more labels than frames
    - `PoissonNLLLoss`: counts, with exp(output) as their rate
    - IoU losses in PyTorch: boxes in the format (corners, or centre and size) that the loss expects

    If the model ends in a softmax over several outputs, the targets of each row must also add up to 1. PyTorch's
    cross entropy applies a softmax over the second axis, so target probabilities must add up to 1 along that axis.

    ## Why it is bad
    A sigmoid returns values from 0 to 1. If the targets are prices from 3 to 103, every prediction saturates at 1,
    and the loss stays at the mean squared distance from 1. Binary cross entropy requires targets from 0 to 1. With
    labels of -1 and 1, or pixels from 0 to 255, the loss becomes negative and has no lower bound.

    ## Example
    ```python
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1), nn.Sigmoid())
    loss = nn.functional.mse_loss(model(features), prices)     # prices run from 3 to 103
    ```

    ## Instead
    ```python
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
    loss = nn.functional.mse_loss(model(features), (prices - prices.mean()) / prices.std())
    ```

    ## Thresholds
    At least 10% of the batch's targets must be out of range by at least 10% of the width of the range (or of the
    largest target if the range is unbounded). Other thresholds apply to these losses:

    - Binary cross entropy: the targets need only be out of range by more than 0.001.
    - Categorical cross entropy: at least 10% of the rows must have several nonzero numbers whose sum differs from
      1 by more than 0.1. At least one metric must be an accuracy, because models of word counts use the same
      formula. In PyTorch, these rows must contain only 0 and 1, and there must be at most 50 classes.
    - CTC: at least one target must contain the blank, or at least half of the examples must have too few frames.
    - Boxes as corners: there must be at least 4 boxes, and at least 10% of them must have x2 < x1 or y2 < y1.
    - Boxes as centre and size: there must be at least 16 boxes with numbers from 0 to 1. All of them must have a
      width greater than the centre's x and a height greater than its y, as corners do, and at least 25% of them
      must begin before 0.

    ## Known problems
    Only one batch is checked, and only if the last activation is known. Targets that a loss may ignore, such as
    -1, are checked only if the value of the loss shows that it did not ignore them. Boxes are checked only if the
    loss takes the larger and the smaller of two edges. Corners in pixels that are mistaken for centres are not
    detected.

    ## Sources
    The documentation for `torch.nn.BCEWithLogitsLoss` ("targets t[i] should be numbers between 0 and 1") and
    `torch.nn.Sigmoid`; public reports of regression models that end in a sigmoid, collected in benchmarks of Keras
    bugs.
    """

    severity = "error"
    causes = (
        "initial-loss-off",
        "loss-out-of-range",
        "saturated-activations",
        "unchanged-parameters",
        "unscaled-inputs",
        "vanishing-gradients",
        *NO_LEARNING,
    )

    @check
    def from_batch(self, batch: BatchFacts, outputs: OutputFacts, loss: LossFacts) -> Finding | None:
        """Compare the targets with the reachable range."""
        targets = _numbers(batch.labels)
        if targets is None:
            raise NotApplicable("needs numeric targets")
        if loss.kind == "cross_entropy":
            found = self._single_class(targets, outputs, loss) or self._fractions(targets, outputs, loss)
            return found or self._no_distribution(batch, outputs, loss)
        if loss.kind == "binary_cross_entropy":
            found = self._beyond_probabilities(targets, outputs, loss)
            return found or self._several_labels(batch, outputs, loss)
        contract = contract_of(loss.name or "")
        distance = contract.targets == "numbers" and contract.kind == "other"  # known by its name alone
        if loss.kind not in ("mean_squared_error", "mean_absolute_error") and not distance:
            raise NotApplicable("needs a squared-error, absolute-error or cross-entropy loss")
        if outputs.last_activation is None:
            raise NotApplicable("needs a model whose last activation is known")
        found = self._beyond_activation(targets, outputs.last_activation)
        return found or self._several_labels(batch, outputs, loss)

    @check
    def from_calls(self, calls: LossCalls) -> Finding | None:
        """Compare the targets with those that the loss is made for."""
        return first_found(calls.calls, self._from_call)

    def _from_call(self, call: LossCall) -> Finding | None:
        match call.contract.targets:
            case "signs":
                return self._signed(call)
            case "labels":
                return self._aligned(call)
            case "counts":
                return self._log_rates(call)
            case "classes" if call.function == "cross_entropy":
                return self._shares(call)
        raise NotApplicable

    def _signed(self, call: LossCall) -> Finding | None:
        """Look for targets of 0 and 1 where the loss reads -1 and 1."""
        targets = _complete(call, "target")
        zeros = int((targets == 0).sum())
        if zeros < SHARE * targets.size or zeros + int((targets == 1).sum()) < targets.size:
            return None
        seen = f"{zeros:,} of the {targets.size:,} targets are 0, and the others are 1"
        if zeros == targets.size:
            seen = f"All {zeros:,} targets are 0"
        return self.found(
            f"{seen}, but {call.function} expects 1 and -1. {_OF_ZEROS[call.function]}",
            fix="targets = 2 * targets - 1  # 0 and 1 become -1 and 1",
            evidence={"function": call.function, "targets": targets.size, "zeros": zeros},
        )

    def _aligned(self, call: LossCall) -> Finding | None:
        """Look for blanks in the targets of CTC, and for examples with fewer frames than labels."""
        rows, frames = _labels_and_frames(call)
        blank = call.options.get("blank", 0)
        needed = np.array([len(row) + int((row[1:] == row[:-1]).sum()) for row in rows])
        with_blank = sum(bool((row == blank).any()) for row in rows)
        too_short, shortest, longest = int((frames < needed).sum()), int(frames.min()), max(map(len, rows))
        evidence = {
            "examples": len(rows),
            "blank": blank,
            "with_blank": with_blank,
            "too_short": too_short,
            "frames": shortest,
            "labels": longest,
        }
        if with_blank:
            return self.found(
                f"The targets of {among(with_blank, len(rows), 'example')} contain the index {blank}, which "
                "ctc_loss treats as the blank between labels. Decoding removes blanks, so this label can never "
                "be predicted.",
                fix=(
                    "number the labels from 1, and give the last layer one more output",
                    f"CTCLoss(blank=num_labels)  # an index that no label uses, unlike {blank}",
                    f"if {blank} is padding, exclude it from target_lengths",
                ),
                evidence=evidence,
            )
        if too_short < TOO_SHORT * len(rows):
            return None
        counted = capitalized(among(too_short, len(rows), "example"))
        has = "has fewer frames than its target needs"
        if too_short > 1:
            has = "have fewer frames than their targets need"
        return self.found(
            f"{counted} {has}: the smallest number of frames is {shortest}, and the longest target has "
            f"{longest} labels. No alignment exists, so the loss is infinite; with zero_infinity=True, the "
            "loss and its gradient are 0.",
            fix="keep more frames per label: downsample less (smaller strides) before the loss",
            evidence=evidence,
        )

    def _log_rates(self, call: LossCall) -> Finding | None:
        """Look for a rate where a Poisson loss reads the logarithm of the rate."""
        mean, made_by = float(_complete(call, "target").mean()), call.made_by
        if call.options.get("log_input", True) is not True:
            raise NotApplicable
        twice = made_by == "exp"
        if not twice and (made_by not in ("softplus", "relu", "sigmoid") or mean >= 1):
            return None
        low = f"The exponential of that output is at least 1, but the mean target is {mean:.3g}"
        effect = (
            "So the exponential is applied twice" if twice else f"{low}: the predictions go to 0 and stay there"
        )
        return self.found(
            "poisson_nll_loss expects the logarithm of the rate (log_input=True) but got the rate itself, the "
            f"output of {made_by}. {effect}.",
            fix=("torch.nn.PoissonNLLLoss(log_input=False)", f"remove the final {made_by}"),
            evidence={"made_by": made_by, "mean_target": mean},
        )

    def _shares(self, call: LossCall) -> Finding | None:
        """Look for cross-entropy targets that are not shares of the classes on the second axis."""
        targets, shape = _complete(call, "target"), () if call.prediction is None else call.prediction.shape
        if targets.dtype.kind == "f" and targets.shape == shape and len(shape) == 2 and shape[1] == 1:
            return self._one_class(call.function, call.function, int(np.unique(targets).size))
        if (
            targets.dtype.kind != "f"
            or targets.shape != shape
            or len(shape) < 2
            or shape[1] < 2
            or targets.min() < 0
        ):
            raise NotApplicable
        width, by_class, by_last = shape[-1], targets.sum(axis=1), targets.sum(axis=-1)
        one_by_class = float((np.abs(by_class - 1) <= ROUNDING).mean())
        one_by_last = float((np.abs(by_last - 1) <= ROUNDING).mean())
        binary = bool(((targets == 0) | (targets == 1)).all())
        several = float((by_class > 1 + ROUNDING).mean()) if binary else 0.0
        symmetric = len(shape) == 2 and shape[0] == width and bool((targets == targets.T).all())
        evidence = {
            "shape": shape,
            "one_by_class": one_by_class,
            "one_by_last": one_by_last,
            "several": several,
            "symmetric": symmetric,
        }
        if len(shape) > 2 and one_by_last > 1 - SHARE and one_by_class < 1 / 2:
            return self.found(
                f"Scores and targets have shape {shape}, and the targets add up to 1 over the last axis, as the "
                f"probabilities of {width} classes do. But cross_entropy applies its softmax over the second "
                f"axis (of size {shape[1]}), so it normalises over positions instead of classes.",
                fix=(
                    f"loss_fn(scores.flatten(0, -2), targets.flatten(0, -2))  # (n, {width})",
                    "loss_fn(scores.movedim(-1, 1), targets.movedim(-1, 1))",
                ),
                evidence=evidence,
            )
        if len(shape) > 2 or width > MANY or symmetric or several < SHARE:
            return None
        return self.found(
            f"{several:.0%} of the examples have more than one target of 1: several of the {width} labels "
            "apply at once. cross_entropy makes the outputs of an example compete: the loss is lowest "
            "when these labels share a total probability of 1, so no output shows whether its own label is "
            "present.",
            fix=("torch.nn.BCEWithLogitsLoss()", "for one class per example, use the class index as the target"),
            evidence=evidence,
            severity="warning",
        )

    @check
    def from_overlap(self, graph: LossGraph) -> Finding | None:
        """Look for boxes in another format than the one in which a loss measures their overlap."""
        boxes = [edges for node in graph.nodes if (edges := _target_edges(graph, node)) is not None]
        if not boxes:
            raise NotApplicable
        low, high = max(boxes, key=lambda edges: (edges[0] > edges[1]).any(axis=1).mean())
        rows, inverted = len(low), int((low > high).any(axis=1).sum())
        evidence = {"boxes": rows, "inverted": inverted}
        if inverted >= SHARE * rows and rows >= BOXES:
            return self.found(
                "The loss measures the overlap of predictions and targets as corners (x1, y1, x2, y2), but in the "
                f"targets of {among(inverted, rows, 'box', 'boxes')}, x2 < x1 or y2 < y1. These targets are not "
                "corners, so the overlap is wrong even for perfect predictions.",
                fix=(
                    'boxes = torchvision.ops.box_convert(boxes, "cxcywh", "xyxy")  # predictions and targets',
                    "after a flip, swap x1 and x2",
                ),
                evidence=evidence,
            )
        centre, size = (low + high) / 2, high - low
        outside = int((low < -ROUNDING).any(axis=1).sum())
        if rows < CORNERS or outside < OUTSIDE * rows or centre.min() < 0 or size.max() > 1 + ROUNDING:
            return None
        if low.shape[1] < len("xy") or not (size > centre).all():
            return None
        return self.found(
            "The loss measures the overlap of predictions and targets as boxes (centre x, centre y, width, "
            f"height), but the targets look like corners (x1, y1, x2, y2): for all {rows} boxes, the third number "
            "is larger than the first, and the fourth larger than the second. Read as centre and size, "
            f"{among(outside, rows, 'box', 'boxes')} begin before 0, outside the image.",
            fix='boxes = torchvision.ops.box_convert(boxes, "xyxy", "cxcywh")  # the targets',
            evidence={**evidence, "outside": outside},
        )

    @check
    def from_outputs(self, several: SeveralOutputs) -> Finding | None:
        """Compare the targets of each output with its reachable range."""
        return first_output_found(several, lambda part: self.from_batch(part.batch, part.outputs, part.loss))

    def _single_class(self, targets: Array, outputs: OutputFacts, loss: LossFacts) -> Finding | None:
        """Look for categorical cross entropy on a single output, where it does not depend on the weights."""
        if outputs.num_classes != 1 or outputs.indexed_labels:
            return None
        return self._one_class(_named(loss), loss.name, int(np.unique(targets).size))

    def _one_class(self, named: str, loss: str | None, distinct: int) -> Finding:
        return self.found(
            f"The model has one output, but {named} normalises over an example's outputs: the "
            "probability of a single class is always 1. The loss does not depend on the model's prediction, so "
            "its gradient is zero and the model learns nothing.",
            fix={
                "keras": (
                    'for two classes, use a final sigmoid and loss="binary_crossentropy"',
                    "for more than two classes, use one output per class and one-hot targets",
                    'for regression, use no final activation and loss="mse"',
                ),
                "torch": (
                    "for two classes, use torch.nn.BCEWithLogitsLoss() with targets of 0. and 1.",
                    "for more than two classes, use one output per class, and class indices of shape (N,) as "
                    "targets",
                    "for regression, use torch.nn.MSELoss()",
                ),
            },
            evidence={"units": 1, "loss": loss, "distinct_targets": distinct},
        )

    def _fractions(self, targets: Array, outputs: OutputFacts, loss: LossFacts) -> Finding | None:
        """Look for class indices with fractions, which the loss cuts off, as in labels divided by 255."""
        if outputs.num_classes is None or not outputs.indexed_labels:
            return None
        if targets.size != math.prod(outputs.shape[:-1]):
            return None
        share = float((targets != np.trunc(targets)).mean())
        if share < SHARE:
            return None
        lowest, highest = float(targets.min()), float(targets.max())
        classes = [int(one) for one in np.unique(np.trunc(targets))]
        left = f"all become class {classes[0]}" if len(classes) == 1 else f"become {len(classes)} classes"
        return self.found(
            f"{share:.0%} of the targets are not integers: the targets range from {lowest:.4g} to {highest:.4g}, "
            f"but {_named(loss)} expects class indices. It drops the fractional part, so the "
            f"{np.unique(targets).size} different targets in this batch {left}.",
            fix=(
                "use unscaled integer labels that start at 0: divide the images by 255, not the labels",
                'for regression, use one output and loss="mse"',
            ),
            evidence={
                "lowest_target": lowest,
                "highest_target": highest,
                "share_of_fractions": share,
                "classes_left": len(classes),
                "loss": loss.name,
            },
        )

    def _no_distribution(self, batch: BatchFacts, outputs: OutputFacts, loss: LossFacts) -> Finding | None:
        """Look for rows that are neither one-hot nor probabilities, if a metric is an accuracy."""
        labels, width = batch.labels, outputs.shape[-1] if outputs.shape else 0
        if not loss.accuracy or outputs.indexed_labels or width < 2 or labels is None:
            return None
        if labels.shape != outputs.shape or labels.dtype.kind not in "fiu" or not np.isfinite(labels).all():
            return None
        rows = labels.reshape(-1, width).astype(np.float64)
        several = (rows != 0).sum(1) > 1  # a single number other than 1 is a weight or a reward
        share = float((several & (np.abs(rows.sum(1) - 1) > MARGIN)).mean())
        if share < SHARE:
            return None
        lowest, highest = float(rows.min()), float(rows.max())
        numbers = highest > 1 and bool((rows == np.trunc(rows)).all())
        what = "class indices" if numbers else "multi-label targets" if highest == 1 else "quantities"
        named = _named(loss)
        return self.found(
            f"In {'all' if share == 1 else f'{share:.0%} of the'} examples, the target is not a distribution over "
            f"the {width} classes. It has several values, from {lowest:.4g} to {highest:.4g}, which look like "
            f"{what}; the median of their sums is {np.median(rows.sum(1)):.4g} instead of 1. "
            f"{named[0].upper()}{named[1:]} is lowest "
            "when the outputs are proportional to these values, and accuracy compares only the positions of "
            "the largest values.",
            fix={
                "torch": (
                    "for one class per example, use the class index as the target",
                    "for multi-label targets, use torch.nn.BCEWithLogitsLoss()",
                ),
                "keras": (
                    "for one class per example, use keras.utils.to_categorical(labels)",
                    "for class indices at several positions, use a softmax at each position and "
                    'loss="sparse_categorical_crossentropy"',
                    'for multi-label targets, use activation="sigmoid" and loss="binary_crossentropy"',
                ),
            },
            evidence={
                "share_of_rows": share,
                "lowest_target": lowest,
                "highest_target": highest,
                "median_sum": float(np.median(rows.sum(1))),
                "loss": loss.name,
            },
            severity="warning",
        )

    def _several_labels(self, batch: BatchFacts, outputs: OutputFacts, loss: LossFacts) -> Finding | None:
        """Compare a softmax, whose outputs add up to 1, with rows of targets that do not."""
        labels, width = batch.labels, outputs.shape[-1] if outputs.shape else 0
        if outputs.last_activation != "softmax" or labels is None or labels.shape != outputs.shape or width < 2:
            return None
        sums = labels.astype(np.float64).sum(-1).reshape(-1)
        share = float((sums > 1 + MARGIN).mean())
        if share < SHARE or labels.min() < -ROUNDING or labels.max() > 1 + ROUNDING:
            return None
        return self.found(
            f"The model ends in a softmax, so the {width} outputs of an example add up to 1. But in {share:.0%} "
            f"of the examples, several labels apply at once: the targets add up to more than 1 (up to "
            f"{sums.max():.4g}). With two labels, the two outputs cannot both exceed 0.5.",
            fix={
                "torch": "use a sigmoid for each label: torch.nn.BCEWithLogitsLoss() on outputs without softmax",
                "keras": f'use keras.layers.Dense({width}, activation="sigmoid") with loss="binary_crossentropy"',
            },
            evidence={
                "last_activation": "softmax",
                "share_of_rows": share,
                "highest_sum": float(sums.max()),
                "loss": loss.name,
            },
        )

    def _beyond_probabilities(self, targets: Array, outputs: OutputFacts, loss: LossFacts) -> Finding | None:
        share = float(((targets < -ROUNDING) | (targets > 1 + ROUNDING)).mean())
        if share < SHARE:
            return None
        lowest, highest = float(targets.min()), float(targets.max())
        signs = set(np.unique(targets)) <= {-1.0, 1.0}
        indices = outputs.is_single and lowest >= 0 and bool((targets == np.trunc(targets)).all())
        if indices and 2 <= highest < CLASSES:
            return self._classes(targets, loss)
        return self.found(
            f"{share:.0%} of the targets are outside the range 0 to 1: the targets range from {lowest:.4g} to "
            f"{highest:.4g}. For such targets, the binary cross-entropy loss has no minimum: it is unbounded "
            "below as the logits grow.",
            fix="labels = (labels + 1) / 2  # -1 and 1 become 0 and 1"
            if signs
            else (
                "scale the targets to 0..1, for example pixels / 255",
                "use a mean squared error loss if the targets are continuous values",
            ),
            evidence={
                "lowest_target": lowest,
                "highest_target": highest,
                "share_outside": share,
                "loss": loss.name,
            },
        )

    def _classes(self, targets: Array, loss: LossFacts) -> Finding:
        classes = int(targets.max()) + 1
        return self.found(
            f"The targets are integers from {targets.min():.4g} to {targets.max():.4g}, which look like indices "
            f"of {classes} classes, but the model has one output, and {_named(loss)} accepts only 0 and 1. For a "
            "target of 2 or more, the loss has no minimum: it is unbounded below.",
            fix={
                "torch": f"use {classes} outputs and torch.nn.CrossEntropyLoss()",
                "keras": f'use keras.layers.Dense({classes}, activation="softmax") with '
                'loss="sparse_categorical_crossentropy"',
            },
            evidence={
                "lowest_target": float(targets.min()),
                "highest_target": float(targets.max()),
                "share_outside": float((targets > 1).mean()),
                "loss": loss.name,
            },
        )

    def _beyond_activation(self, targets: Array, activation: str) -> Finding | None:
        least, most = RANGES.get(activation, (-math.inf, math.inf))
        step = 1 if activation == "cosine_similarity" else -1  # a cosine stays, because it is the value compared
        slack = MARGIN * (most - least if math.isfinite(most) else float(np.abs(targets).max()))
        share = float(((targets < least - slack) | (targets > most + slack)).mean())
        if share < SHARE:
            return None
        lowest, highest = float(targets.min()), float(targets.max())
        spread = f"the targets range from {lowest:.4g} to {highest:.4g}"
        if lowest == highest:
            spread = f"every target is {lowest:.4g}"
        reach = f"values from {least:g} to {most:g}" if math.isfinite(most) else f"values of {least:g} or more"
        return self.found(
            f"The model ends with {activation}, which returns {reach}, but {spread}. "
            f"{'All' if share == 1 else f'{share:.0%} of the'} targets are out of reach: the predictions saturate "
            "at the bound, where they get no gradient.",
            fix={
                "torch": (
                    f"scale the targets to the output range of {activation}",
                    "remove the final " + activation,
                )[::step],
                "keras": (
                    "keras.layers.Dense(units)  # no activation",
                    f"scale the targets to the output range of {activation}",
                ),
            },
            evidence={
                "last_activation": activation,
                "lowest_target": lowest,
                "highest_target": highest,
                "share_out_of_reach": share,
            },
        )


def _target_edges(graph: LossGraph, node: Node) -> tuple[Array, Array] | None:
    """Return the lower and upper edges (boxes, 1 or 2) of the targets of which a node computes a shared size.

    The size of an overlap is the smaller of two upper edges minus the larger of two lower ones; that of the
    smallest box around both is the larger of two upper edges minus the smaller of two lower ones.
    """
    if node.operation != "Sub" or len(node.trained) != len(("upper", "lower")):
        return None
    compared = [graph.nodes[index] for index, _ in node.trained if index < len(graph.nodes)]
    constants = [one for each in compared for one in each.constants if one.beginning]
    sources = {index for each in compared for index, _ in each.trained}
    if len(sources) == 1 and graph.nodes[min(sources)].operation not in SEVERAL:
        return None  # one number that is kept within a band
    if sorted(each.operation for each in compared) != ["Maximum", "Minimum"] or len(constants) != len(compared):
        return None
    upper, lower = (np.frombuffer(one.beginning, np.float32) for one in constants)
    axes = 2 if constants[0].shape and constants[0].shape[-1] == 2 else 1
    if constants[0].shape != constants[1].shape or upper.size % axes:
        return None
    return lower.reshape(-1, axes), upper.reshape(-1, axes)


def _named(loss: LossFacts) -> str:
    return f"the loss ({loss.name})" if loss.name else "the loss"


def _complete(call: LossCall, name: str) -> Array:
    """Return an argument of a loss.

    Raises:
        NotApplicable: it is too large, or no numbers.
    """
    values = call.complete(name)
    if values is None:
        raise NotApplicable
    return values


def _labels_and_frames(call: LossCall) -> tuple[list[Array], Array]:
    """Return the target of each example under CTC (labels,), and the numbers of their frames (examples,)."""
    targets = _complete(call, "targets")
    frames, lengths = (
        _complete(call, name).reshape(-1).astype(np.int64) for name in ("input_lengths", "target_lengths")
    )
    if lengths.shape != frames.shape or lengths.min() < 0:
        raise NotApplicable
    if targets.ndim == 1:
        return np.split(targets, np.cumsum(lengths)[:-1]), frames
    if len(targets) != len(lengths):
        raise NotApplicable
    return [row[:length] for row, length in zip(targets, lengths, strict=True)], frames


def _numbers(labels: Array | None) -> Array | None:
    """Return the finite targets as float64 (n,); None if there are none."""
    if labels is None or labels.dtype.kind not in "fiu":
        return None
    flat = labels.reshape(-1).astype(np.float64)
    flat = flat[np.isfinite(flat)]
    return flat if flat.size else None
