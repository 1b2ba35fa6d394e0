"""See `UnreachedParameters`."""

from __future__ import annotations

from diagnostics.facts import GradientFacts
from diagnostics.finding import Finding
from diagnostics.parameter_names import describe_parameters
from diagnostics.rule import NotApplicable, Rule

# Of all trainable scalars. BERT's pooler, idle in many healthy models, is 0.5 % of BERT-base; a mask embedding
# is less; a forgotten encoder or one of two heads is far more.
WORTH_A_WARNING = 0.01


class UnreachedParameters(Rule):
    """Some parameters that should learn get no gradient.

    ## What it does
    Computes the gradient of the loss on one batch and lists the trainable parameters that got none at all. A
    gradient of zero counts as one.

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
    A warning where the parameters without a gradient hold at least 1 % of the trainable scalars, else a note.
    The limit is ours: the pooler of BERT-base, which many healthy models leave idle, is 0.5 %.

    ## Known problems
    One batch is looked at. Parts that some batches use and others do not (experts, the heads of a model with
    several tasks, a mask embedding) are reported when this batch did not use them. In a very small model, an
    idle layer of a few scalars can pass the limit; freeze it with `requires_grad_(False)` to say that it is
    meant.

    ## Sources
    Andrej Karpathy, "A Recipe for Training Neural Networks" (2019), "use backprop to chart dependencies";
    PyTorch's documentation of `DistributedDataParallel` (`find_unused_parameters`).
    """

    severity = "warning"
    no_exhibit = "its exhibit, an encoder cut off by a detach, comes with the rules that watch a training run"

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
