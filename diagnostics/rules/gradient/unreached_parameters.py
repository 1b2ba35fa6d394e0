"""See `UnreachedParameters`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.pipeline import Array, GradientFacts
from diagnostics.facts.training import GradientHistory, StepHistory, UpdateHistory
from diagnostics.text.names import describe_parameters

# Of all trainable scalars. BERT's pooler, idle in many healthy models, is 0.5 % of BERT-base; a mask embedding
# is less; a forgotten encoder or one of two heads is far more.
WORTH_A_WARNING = 0.01
STEPS = 50  # with a gradient: a head or an expert that only some batches use has had its turn by then
LOOKS = 3  # steps whose weights were compared
MANY_LAYERS = 0.1  # of the layers that an optimizer holds; an idle pooler is 1 of BERT-base's 76
NAMED = 5  # layers named in the message; the evidence holds them all


class UnreachedParameters(Rule):
    """Some parameters that should learn get no gradient.

    ## What it does
    Before training: computes the gradient of the loss on one batch and lists the trainable parameters that got
    none at all. A gradient of zero counts as one.

    While a model is watched: lists the layers that an optimizer holds and that never had a gradient other than
    exactly 0, in any step known, and whose weights are what they were, while other layers learned.

    ## Why it is bad
    They stay at their initial values while the rest learns around them. Often a `.detach()`, a layer left out
    of `forward()`, or a result that is computed and never used cuts off a whole part of the model, and the
    loss still falls. Under `DistributedDataParallel` such parameters raise an error.

    ## Example
    ```python
    def forward(self, images):
        features = self.encoder(images).detach()   # meant for a plot, left in
        return self.head(features)
    ```

    ## Instead
    ```python
    def forward(self, images):
        return self.head(self.encoder(images))
    ```

    ## Thresholds
    Before training, a warning where the parameters without a gradient hold at least 1 % of the trainable scalars,
    else a note. While training, at least 50 steps with a gradient and 3 whose weights were compared, and a warning
    where these layers are at least a tenth of those that an optimizer holds, else a note. The limits are ours: the
    pooler of BERT-base, which many healthy models leave idle, is 0.5 % of the scalars and 1 of 76 layers.

    ## Known problems
    Before training, one batch is looked at. Parts that some batches use and others do not (experts, the heads of a
    model with several tasks, a mask embedding) are reported when this batch did not use them. In a very small
    model, an idle layer of a few scalars can pass the limit; freeze it with `requires_grad_(False)` to say that it
    is meant. While training, no gradient and a gradient of exactly 0, as behind units that are all dead, look the
    same. Layers frozen only after `watch` was called are reported.

    ## Sources
    Andrej Karpathy, "A Recipe for Training Neural Networks" (2019), "use backprop to chart dependencies";
    PyTorch's documentation of `DistributedDataParallel` (`find_unused_parameters`).
    """

    severity = "warning"
    causes = ("unchanged-parameters", *NO_LEARNING)

    @check
    def from_gradients(self, gradients: GradientFacts) -> Finding | None:
        """Look for trainable parameters that got no gradient."""
        if not gradients.connected:
            raise NotApplicable("needs a loss that reaches at least one parameter")
        unreached = gradients.unreached
        if not unreached:
            return None
        scalars = sum(unreached.values())
        share = scalars / gradients.num_trainable
        one = len(unreached) == 1
        return self.found(
            f"{len(unreached)} of the {len(unreached) + len(gradients.norms)} trainable parameters "
            f"{'gets' if one else 'get'} no gradient from this batch: "
            f"{describe_parameters(unreached, gradients.norms)}. {'It holds' if one else 'They hold'} "
            f"{scalars:,} of the {gradients.num_trainable:,} trainable scalars ({100 * share:.3g} %) and "
            f"{'stays' if one else 'stay'} as initialised: the loss does not depend on {'it' if one else 'them'}.",
            fix="use their result in the loss, without .detach() or torch.no_grad() on the way; if they are "
            "idle on purpose, freeze them: parameter.requires_grad_(False)",
            evidence={
                "unreached": dict(unreached),
                "unreached_scalars": scalars,
                "num_trainable": gradients.num_trainable,
            },
            severity="warning" if share >= WORTH_A_WARNING else "note",
        )

    @check
    def from_history(
        self, steps: StepHistory, gradients: GradientHistory, updates: UpdateHistory
    ) -> Finding | None:
        """Look for layers that never had a gradient while others learned."""
        if (gradients.norms > 0).sum() < STEPS:
            raise NotApplicable(f"needs {STEPS} steps with a gradient")
        ratios, weights = updates.ratios, updates.weight_norms
        if len(ratios) < LOOKS:
            raise NotApplicable(f"needs {LOOKS} steps before and after which the weights were compared")
        held = ~np.isnan(ratios).all(axis=0)
        silent = held & (gradients.layer_norms == 0).all(axis=0) & _kept(ratios, weights)
        if not silent.any():
            return None
        names = [name for name, is_silent in zip(gradients.layers, silent, strict=True) if is_silent]
        count, known, one = int(held.sum()), len(gradients.steps), len(names) == 1
        return self.found(
            f"{len(names)} of the {count} layers that the optimizer holds {'has' if one else 'have'} had no "
            f"gradient in any of the {known:,} steps known: {_listed(names)}. {'Its' if one else 'Their'} weights "
            "have not changed since they were first looked at, while the other layers learned: the loss does not "
            f"depend on {'it' if one else 'them'}.",
            fix="use their result in the loss, without .detach(), .data, NumPy or torch.no_grad() on the way; if "
            "they are idle on purpose, freeze them: parameter.requires_grad_(False)",
            evidence={"layers": names, "num_layers": count, "steps": known},
            severity="warning" if len(names) >= MANY_LAYERS * count else "note",
            step=int(steps.steps[-1]),
        )


def _kept(ratios: Array, weights: Array) -> Array:
    """Return bool (layers,): whether neither a step nor anything between the steps ever changed the weights.

    A target network that is copied now and then has no gradient, and is as it should be.
    """
    return np.asarray((np.nan_to_num(ratios, nan=0.0) == 0).all(axis=0) & (weights == weights[0]).all(axis=0))


def _listed(names: list[str]) -> str:
    shown = names if len(names) <= NAMED else [*names[:NAMED], f"{len(names) - NAMED} more"]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
