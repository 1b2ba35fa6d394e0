"""See `VanishingGradients`."""

from __future__ import annotations

import math

import numpy as np

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.array import Array
from diagnostics.facts.course import Verdicts
from diagnostics.facts.layers import PARTS, RecurrenceFacts, RecurrentLayer
from diagnostics.facts.pipeline import GradientFacts
from diagnostics.facts.training import GradientHistory, LossHistory, UpdateHistory
from diagnostics.rules.shared.loss_curve import has_fallen

VANISHED_IN_TIME = 1e-5  # of the largest: RNNs at this ratio learned nothing in our measurements
SAMPLES = 4  # sampled steps, of which the later half counts
STEPS = 20  # with a gradient; the later half counts, as the first may be warm-up or zero initialisation
SPIKE = 100.0  # times the median gradient: then it explodes, which explains the loss
MIN_LAYERS = 6
VANISHED = 1e-5  # of the late layers' gradient; residual nets, transformers and batch norm stay above 1e-2
UNMOVED = 1e-5  # |update| / |weight| in one step; 1e-3 is usual
RISING = 0.8  # rank correlation of depth and gradient
DEEP = (
    "use ReLU or GELU instead of sigmoid or tanh, with kaiming_normal_ initialisation",
    "add batch norm or layer norm between the layers",
    "add residual connections",
)


class VanishingGradients(Rule):
    """The gradient vanishes across layers or time steps, so early layers or positions learn nothing.

    ## What it does
    Detects two kinds of vanishing gradients in a watched run.

    Across layers: in the second half of the run, the gradient shrinks steadily from the last layer to the first,
    and the first layers hardly change or the loss does not fall. In Keras, the rule compares the gradients of one
    batch before training.

    Across time steps: at a few training steps, the rule measures the gradient of the loss with respect to the
    input of an RNN, LSTM or GRU, position by position. It fires if the gradient at the first positions is
    negligible compared with the gradient at the last positions, and the loss has not fallen.

    ## Why it is bad
    Layers without a gradient keep their initial weights. A deep network then trains its last layers on random
    features; a recurrent network uses only the end of each sequence. The loss stays at chance level, and no error
    is raised.

    ## Example
    ```python
    self.memory = torch.nn.RNN(64, 64, batch_first=True)  # 40 events, the first is decisive
    ```

    ## Instead
    ```python
    # its gates pass on a state and its gradient
    self.memory = torch.nn.GRU(64, 64, batch_first=True)
    ```

    ## Thresholds
    Across time steps: the gradient at the first positions must be at most 1e-5 times the gradient at the end of
    the sequence (the median over the second half of the sampled steps, of which there must be at least 4). The
    median loss in the last quarter of the run must be above 90% of the median loss in the first quarter.

    Across layers: there must be at least 6 layers and 20 steps. The gradient in the first third of the layers must
    be at most 1e-5 times the gradient in the last third. The rank correlation between depth and gradient must be
    at least 0.8. In addition, either the loss must not have fallen (as above), or the updates in the first third
    must be tiny: relative to the weight norm, at most 1e-5, and at most 1/1000 of the updates in the last third.
    For comparison, this ratio of the gradients is 1e-7 or less in plain networks of 10 sigmoid layers, and above
    1e-2 in residual networks, transformers and networks with batch norm.

    ## Known problems
    Adam divides by the gradient's own magnitude, so it updates even layers with a vanishing gradient. If the loss
    then still falls, nothing is reported. The rule cannot distinguish labels that cannot be learned at all from
    labels that depend on positions too far back. Gradients also vanish in an untrained LSTM or GRU, so wait for
    the report at the end of the run. The rule covers only sequences of at least 16 positions, and only recurrent
    layers from `torch.nn`.

    ## Sources
    Yoshua Bengio et al., "Learning long-term dependencies with gradient descent is difficult" (1994); Sepp
    Hochreiter and Jürgen Schmidhuber, "Long short-term memory" (1997); Razvan Pascanu et al., "On the difficulty
    of training recurrent neural networks" (2013); for layers, Xavier Glorot and Yoshua Bengio (2010).
    """

    severity = "warning"
    causes = ("ignores-input", "learning-rate-too-low", "unchanged-parameters", *NO_LEARNING)

    @check
    def from_recurrence(
        self,
        recurrence: RecurrenceFacts,
        losses: LossHistory | None = None,
        gradients: GradientHistory | None = None,
    ) -> Finding | None:
        """Compare the gradient at the beginning of the sequences with that at the end."""
        layers = [layer for layer in recurrence.layers if len(layer.steps) >= SAMPLES]
        if not layers:
            raise NotApplicable(f"needs at least {SAMPLES} sampled steps of a recurrent layer")
        vanished = [(layer, _share(layer)) for layer in layers if _share(layer) <= VANISHED_IN_TIME]
        if not vanished:
            return None
        fallen = has_fallen(losses)
        if losses is None or fallen is None:
            raise NotApplicable("needs the losses of 40 steps")
        if fallen or _exploded(gradients):
            return None
        layer, share = min(vanished, key=lambda pair: pair[1])
        profile = _profile(layer)
        length = int(layer.lengths[-1])
        return self.found(
            f"The gradient vanishes over the {length} positions of the sequences in '{layer.module}' "
            f"({layer.kind}). The gradient with respect to the layer's input is {profile.max():.2g} at the end of "
            f"the sequences and {_words(profile[0])} at the beginning, a ratio of {_of(share)} (medians over "
            f"{_later(layer.steps).size} sampled steps).{_decay(profile, length)} The layer cannot learn from the "
            f"beginning of a sequence, and the loss has not fallen: {losses.values[0]:.4g} at the first step, "
            f"{losses.values[-1]:.4g} at the last.",
            fix=(
                "use torch.nn.LSTM with a forget gate bias above 0, or torch.nn.GRU, instead of a plain RNN",
                "instead of the last state, use the mean, the maximum or attention over all positions",
                "shorten the sequences",
            ),
            evidence={
                "module": layer.module,
                "kind": layer.kind,
                "length": length,
                "steps": layer.steps.tolist(),
                "share_at_beginning": share,
                "gradient_by_position": [float(value) for value in profile],
                "all": {one.module: part for one, part in vanished},
            },
            step=int(layer.steps[-1]),
        )

    @check
    def from_history(
        self, gradients: GradientHistory, updates: UpdateHistory, losses: LossHistory | None = None
    ) -> Finding | None:
        """Compare the gradients of the first layers with those of the last."""
        known = np.isfinite(gradients.norms)
        if known.sum() < STEPS or len(updates.ratios) < SAMPLES:
            raise NotApplicable(
                f"needs {STEPS} steps with a gradient, and weights compared before and after {SAMPLES} of them"
            )
        norms = _median(_later(gradients.layer_norms[known]))
        moved = _median(_later(updates.ratios))
        used = np.flatnonzero((norms > 0) & np.isfinite(moved))
        if len(used) < MIN_LAYERS:
            raise NotApplicable(f"needs at least {MIN_LAYERS} layers that get a gradient")
        norms, moved = norms[used], moved[used]
        third = len(used) // 3
        share = float(np.median(norms[:third]) / np.median(norms[-third:]))
        still = moved[:third].max() <= UNMOVED and moved[:third].max() <= 1e-3 * np.median(moved[-third:])
        if share > VANISHED or _rank_correlation(norms) < RISING:
            return None
        first, last = gradients.layers[used[0]], gradients.layers[used[-1]]
        if still:
            effect = (
                f"A step changes the weights of '{first}' by {moved[0]:.2g} of their norm; 0.001 is typical. The "
                f"first {third} of {len(used)} layers keep their initial weights."
            )
        elif losses is None or has_fallen(losses) is not False:
            return None
        else:
            effect = _not_fallen(losses)
        return self.found(
            f"The gradient vanishes from the last layer to the first: its norm is {norms[-1]:.2g} in '{last}' and "
            f"{norms[0]:.2g} in '{first}', a ratio of {_of(norms[0] / norms[-1])} (medians over "
            f"{known.sum() // 2} steps). {effect}",
            fix=DEEP,
            evidence={
                "layers": [gradients.layers[number] for number in used],
                "gradient_norms": [float(value) for value in norms],
                "update_ratios": [float(value) for value in moved],
            },
            step=int(gradients.steps[known][-1]),
        )

    @check
    def from_first_batch(
        self, gradients: GradientFacts, losses: LossHistory, verdicts: Verdicts
    ) -> Finding | None:
        """Compare the gradients of the first parameters with those of the last, where steps do not show them."""
        norms = np.array([norm for norm in gradients.norms.values() if norm > 0])
        if len(norms) < 2 * MIN_LAYERS:
            raise NotApplicable(f"needs at least {2 * MIN_LAYERS} parameters that get a gradient")
        third = len(norms) // 3
        share = float(np.median(norms[:third]) / np.median(norms[-third:]))
        if share > VANISHED or _rank_correlation(norms) < RISING or self.name in verdicts.found:
            return None
        if has_fallen(losses) is not False:
            return None
        first, last = next(iter(gradients.norms)), list(gradients.norms)[-1]
        return self.found(
            "The gradient vanishes from the last layer to the first: on one batch before training, its norm is "
            f"{norms[-1]:.2g} in '{last}' and {norms[0]:.2g} in '{first}', a ratio of "
            f"{_of(norms[0] / norms[-1])}. {_not_fallen(losses)}",
            fix=DEEP,
            evidence={"gradient_norms": dict(gradients.norms)},
        )


def _not_fallen(losses: LossHistory) -> str:
    """Say that the first layers learn nothing although they may move."""
    return (
        "Adam updates even layers with gradients this small, but the loss has not fallen: "
        f"{losses.values[0]:.4g} at the first step, {losses.values[-1]:.4g} at the last."
    )


def _exploded(gradients: GradientHistory | None) -> bool:
    """Return whether a gradient was so large that it may be why the loss has not fallen."""
    return gradients is not None and not gradients.norms.max() < SPIKE * np.median(gradients.norms)


def _later(values: Array) -> Array:
    return values[len(values) // 2 :]


def _median(values: Array) -> Array:
    """Return each layer's median over steps (steps, layers), in float64; NaN if it was not seen."""
    wide = values.astype(np.float64)
    columns = [column[np.isfinite(column)] for column in wide.T]
    return np.array([np.median(column) if column.size else np.nan for column in columns])


def _profile(layer: RecurrentLayer) -> Array:
    """Return float64 (PARTS,): the gradient by position, the median over the later half of the steps."""
    return np.median(_later(layer.profiles).astype(np.float64), axis=0)


def _share(layer: RecurrentLayer) -> float:
    """Return the gradient at the beginning as a share of the largest; 1 if the largest is not at the end."""
    profile = _profile(layer)
    at_the_end = int(profile.argmax()) >= PARTS * 3 // 4
    return float(profile[0] / profile.max()) if at_the_end and profile.max() > 0 else 1.0


def _decay(profile: Array, length: int) -> str:
    """Describe how fast the gradient decreases, if that is known."""
    there = np.flatnonzero(profile > 0)
    decades = math.log10(profile[there[-1]] / profile[there[0]]) if len(there) > 1 else 0.0
    if decades <= 0:
        return ""
    return f" It shrinks tenfold every {(there[-1] - there[0]) * length / PARTS / decades:.2g} positions."


def _words(value: float) -> str:
    return f"{value:.2g}" if value > 0 else "0 (it underflows float32)"


def _of(share: float) -> str:
    return f"{share:.1g}" if share > 0 else "0"


def _rank_correlation(values: Array) -> float:
    """Return Spearman's rank correlation of values (n,) with their order."""
    ranks = values.argsort().argsort()
    return float(np.corrcoef(ranks, np.arange(len(values)))[0, 1])
