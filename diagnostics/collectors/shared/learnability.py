"""Whether a simple fit learns the targets of a run from its inputs. NumPy only, and deterministic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.course import CopiedTarget, NumberedFit, OrderFit, SimpleFit, TargetHistory
from diagnostics.facts.loss_contracts import LossKind
from diagnostics.facts.training import LossHistory

from .target_recovery import FORMULAS
from .target_rows import blank_rows, copied_target, only_target, steps_of

FEWEST = 100  # distinct rows; half of them are predicted
ROWS = 600  # at most: then a fit takes some 20 ms
FEATURES = 256  # of a row, at most; of wider ones every k-th
BUCKETS = 256  # that the ids of tokens are counted in
PAIRS = 2048  # that tokens at their places, and pairs of neighbours, are counted in
ORDERED = 300  # rows at most whose order is looked at: then the fits take some 0.3 s
RIDGES = (1e-3, 1e-1, 10.0)  # of the number of rows
CLASSES = 4, 50  # different targets; three can be put in only three orders
WHOLE = 0.01  # how far a whole number may be off that comes out of a gradient
RENUMBERED = 50  # random orders of the classes


def simple_fit(inputs: Array, targets: Array, of_classes: bool) -> SimpleFit | None:
    """Fit half of the rows, linearly and by a radial kernel, and predict the other half.

    Args:
        inputs: float (n, features), or integers (n, length) of tokens.
        targets: float64 (n, outputs); of classes, a share each.
        of_classes: whether the share of wrong answers is what counts, and not the squared distance.

    Returns:
        The better of the two; None where there are too few distinct rows.
    """
    return _fit(_features(inputs), targets, of_classes)


def order_fit(tokens: Array, targets: Array, of_classes: bool) -> OrderFit | None:
    """Compare what the tokens of a row tell of its target with what their places tell.

    Args:
        tokens: integers (n, length).
        targets: float64 (n, outputs); of classes, a share each.
        of_classes: see `simple_fit`.

    Returns:
        None where there are too few distinct rows.
    """
    rows = np.unique(tokens, axis=0, return_index=True)[1]
    rows = np.random.default_rng(0).permutation(rows)[:ORDERED]
    if len(rows) < FEWEST:
        return None
    kinds, targets, length = tokens[rows] % BUCKETS, targets[rows], tokens.shape[1]
    first = np.full((len(rows), BUCKETS), length / 2)
    for place in reversed(range(length)):
        first[np.arange(len(rows)), kinds[:, place]] = place
    arranged = (
        first,
        _counted((kinds * length + np.arange(length)) % PAIRS, PAIRS),
        _counted((kinds[:, :-1] * BUCKETS + kinds[:, 1:]) % PAIRS, PAIRS),
    )
    alone = _fit(_counted(kinds, BUCKETS), targets, of_classes)
    errors = [fit.error for part in arranged if (fit := _fit(part, targets, of_classes)) is not None]
    if alone is None or not errors:
        return None
    return OrderFit(alone.predicted, alone.error, min(errors), of_classes)


def numbered_fit(inputs: Array, targets: Array) -> NumberedFit | None:
    """Fit targets that are a few whole numbers as classes, and compare their order with random ones.

    A fit is linear in its targets, so the scores of the classes also give what it predicts of any numbering.

    Args:
        inputs: see `simple_fit`.
        targets: float64 (n, 1); a whole number may be off by `WHOLE`.

    Returns:
        None of other targets, and where there are too few distinct rows.
    """
    values, classes = np.unique(targets.round(), return_inverse=True)
    if targets.shape[1] != 1 or not CLASSES[0] <= len(values) <= CLASSES[1]:
        return None
    if np.abs(targets - targets.round()).max() > WHOLE:
        return None
    parted = _predicted(_features(inputs), np.eye(len(values))[classes.reshape(-1)])
    if parted is None:
        return None
    actual, scores, half = parted
    wrong = [_error(one, actual, of_classes=True) for _, one in scores]

    def error(numbers: Array) -> float:
        wanted = actual @ numbers
        return min(float(np.square(one @ numbers - wanted).mean()) for _, one in scores) / float(wanted.var() or 1)

    generator, own = np.random.default_rng(0), error(values)
    return NumberedFit(
        len(values),
        SimpleFit(
            half,
            len(actual),
            _constant(actual, of_classes=True),
            min(wrong),
            scores[int(np.argmin(wrong))][0] == "linear",
            of_classes=True,
        ),
        min(float(((one @ values).round() != actual @ values).mean()) for _, one in scores),
        RENUMBERED,
        sum(error(generator.permutation(values)) <= own for _ in range(RENUMBERED)),
    )


def _fit(features: Array, targets: Array, of_classes: bool) -> SimpleFit | None:
    """Fit half of the rows of features (n, m), and predict the other half; see `simple_fit`."""
    parted = _predicted(features, targets)
    if parted is None:
        return None
    actual, predicted, half = parted
    errors = [(_error(one, actual, of_classes), name) for name, one in predicted]
    error, best = min(errors, key=lambda one: one[0])
    linear = min(one for one, name in errors if name == "linear")
    constant = _constant(actual, of_classes)
    return SimpleFit(half, len(actual), constant, error, best == "linear", of_classes, linear)


def _predicted(features: Array, targets: Array) -> tuple[Array, list[tuple[str, Array]], int] | None:
    """Fit half of the rows in several ways.

    Returns:
        The targets of the other half, what each fit predicts of them, by its kind, and the size of the first half.
    """
    first = np.unique(features.round(6), axis=0, return_index=True)[1]
    first = np.random.default_rng(0).permutation(first)[:ROWS]  # NumPy's global state stays as it is
    if len(first) < FEWEST:
        return None
    features, targets = features[first], targets[first]
    spread = features.std(axis=0)
    features = (features - features.mean(axis=0))[:, spread > 0] / spread[spread > 0]
    if not features.shape[1] or not np.isfinite(features).all():
        return None
    half = len(features) // 2
    known, asked = features[:half], features[half:]
    centre = targets[:half].mean(axis=0)
    predicted = []
    for name, (own, other) in _kernels(known, asked).items():
        values, vectors = np.linalg.eigh(own)
        turned = vectors.T @ (targets[:half] - centre)
        for ridge in RIDGES:
            weights = vectors @ (turned / (np.maximum(values, 0) + ridge * half)[:, None])
            predicted.append((name, other @ weights + centre))
    return targets[half:], predicted, half


@dataclass(frozen=True)
class KeptRows:
    """Rows of the training data, kept until the run is over, where a watcher sees no gradient of the output.

    Attributes:
        kind: of loss, which is that of these targets and nothing else.
        inputs: (n, ...).
        targets: float64 (n, outputs); of classes, a share each.
    """

    kind: LossKind
    inputs: Array
    targets: Array

    def history(self, losses: LossHistory | None) -> TargetHistory | None:
        """Return the targets of a run with these losses, each step with the constant prediction's mean loss."""
        if losses is None or len(self.targets) < FEWEST:
            return None
        mean = self.targets.mean(axis=0)
        if self.kind == "mean_absolute_error":
            constant = float(np.abs(self.targets - np.median(self.targets, axis=0)).mean())
        else:
            formula = next((one for one in FORMULAS.values() if one.kind == self.kind), None)
            if formula is None:
                return None
            constant = formula.constant(mean, mean, float(np.square(self.targets).mean()))
        of_classes = self.kind == "cross_entropy" or (self.kind == "binary_cross_entropy" and len(mean) == 1)
        measured = self._measured()
        return TargetHistory(
            kind=self.kind,
            steps=losses.steps,
            losses=losses.values,
            constant_losses=np.full(len(losses.steps), constant),
            examples=len(self.targets),
            outputs=len(mean),
            fit=simple_fit(self.inputs, self.targets, of_classes),
            only_target=only_target(self.targets),
            blank=None if measured is None else blank_rows(measured, self.targets),
            copied=None if measured is None else self._copied(measured),
            numbered=None if of_classes else numbered_fit(self.inputs, self.targets),
        )

    def _copied(self, measured: Array) -> CopiedTarget | None:
        last_step = steps_of(self.inputs.shape[1:], measured.shape[1])
        return copied_target(measured, self._single(), self.kind, last_step)

    def _single(self) -> Array:
        """Return the targets, of yes and no as one number a row."""
        pair = self.kind == "binary_cross_entropy" and self.targets.shape[1] == 2
        return self.targets[:, 1:] if pair and bool((self.targets.sum(axis=1) == 1).all()) else self.targets

    def _measured(self) -> Array | None:
        """Return the inputs (n, features) that the fits are given, if they are floating-point numbers."""
        return _features(self.inputs) if self.inputs.dtype.kind == "f" and self.inputs.ndim > 1 else None


def _features(inputs: Array) -> Array:
    rows = inputs.reshape(len(inputs), -1)
    if rows.dtype.kind in "iu" and rows.dtype.itemsize > 1:  # ids; single bytes are pixels
        return _counted(rows % BUCKETS, BUCKETS)
    return np.asarray(rows[:, :: max(1, -(-rows.shape[1] // FEATURES))], np.float64)


def _counted(names: Array, number: int) -> Array:
    """Count how often each of so many names is in a row of names (n, length)."""
    counts = np.zeros((len(names), number))
    np.add.at(counts, (np.arange(len(names)).repeat(names.shape[1]), names.reshape(-1)), 1)
    return counts


def _kernels(known: Array, asked: Array) -> dict[str, tuple[Array, Array]]:
    width = known.shape[1]
    linear = known @ known.T / width, asked @ known.T / width
    squares = np.square(known).sum(axis=1)
    near = squares[:, None] + squares - 2 * (known @ known.T)
    far = np.square(asked).sum(axis=1)[:, None] + squares - 2 * (asked @ known.T)
    scale = float(np.median(near)) or 1.0
    return {"linear": linear, "radial": (np.exp(-near / scale), np.exp(-far / scale))}


def _constant(targets: Array, of_classes: bool) -> float:
    if not of_classes:
        return float(targets.var(axis=0).mean())
    if targets.shape[1] == 1:
        share = float((targets > 0.5).mean())
        return min(share, 1 - share)
    return 1 - float(np.bincount(targets.argmax(axis=1)).max()) / len(targets)


def _error(answers: Array, targets: Array, of_classes: bool) -> float:
    if of_classes:
        if targets.shape[1] == 1:
            return float(((answers > 0.5) != (targets > 0.5)).mean())
        return float((answers.argmax(axis=1) != targets.argmax(axis=1)).mean())
    return float(np.square(answers - targets).mean())
