"""See `UnreachedParameters`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.array import Array
from diagnostics.facts.layers import ForgottenLayers
from diagnostics.facts.loss_call import LossTerms
from diagnostics.facts.pipeline import GradientFacts
from diagnostics.facts.training import OF_RECURRENT, GradientHistory, StepHistory, UpdateHistory
from diagnostics.text.join import count_of, listed
from diagnostics.text.names import describe_parameters

# Of all trainable scalars. BERT's pooler, unused in many healthy models, is 0.5% of BERT-base; a mask embedding
# is less; a forgotten encoder or one of two heads is far more.
WORTH_A_WARNING = 0.01
STEPS = 50  # with a gradient: a head or an expert that only some batches use has been used by then
COMPARED = 3  # steps in which weights were compared
DECAY = 0.05  # of a weight decay: how far it may seem to vary, by rounding of small updates
MANY_LAYERS = 0.1  # of the layers that an optimizer holds; an unused pooler is 1 of BERT-base's 76
POOLER = "pooler"
NAMED = 5  # layers named in the message; the evidence holds them all
ADAPTERS = (
    "with gradient checkpointing, call model.enable_input_require_grads(); otherwise the frozen embedding "
    "breaks the graph",
    "if these layers are unused on purpose, remove them from LoraConfig(target_modules=..., modules_to_save=...)",
)

NO_PATH: Final = (
    "No gradient path from the loss reaches this part of the model: its output is not used, or something such as "
    "detach(), no_grad or argmax breaks the path."
)


class UnreachedParameters(Rule):
    """Some trainable parameters get no gradient.

    ## What it does
    Before training, the rule computes the gradient of the loss on one batch, and lists the trainable parameters
    without a gradient. A gradient of zero does not count as missing.

    In a watched run, it lists the layers in the optimizer whose gradient was exactly 0 at every recorded step and
    whose weights changed only through weight decay, if at all, while other layers learned.

    In Keras, under `diagnose run`, it lists the layers that are called on a tensor of a functional model but are
    not part of any model.

    ## Why it is bad
    Parameters without a gradient keep their initial values while the rest of the model learns. Often a
    `.detach()`, a layer missing from `forward()`, or an unused result cuts off a whole part of the model, yet the
    loss still falls. Under `DistributedDataParallel`, such parameters cause an error.

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
    Before training, the finding is a warning if the parameters without a gradient make up at least 1% of all
    trainable weights. A watched run must have at least 50 steps with a gradient, and the weights must have been
    compared before and after at least 3 steps. The finding is then a warning if the layers without a gradient make
    up at least 10% of the layers in the optimizer. Otherwise it is a note.

    The finding is also a note if all parameters without a gradient belong to a `pooler`, or if an earlier training
    run of the model changed them. If a later training run changes them, nothing is reported.

    ## Known problems
    Before training, only one batch is used. Parts of the model that this batch does not need, such as experts,
    other task heads or a mask embedding, are reported. In a very small model, an unused layer with only a few
    weights can exceed the threshold; freeze it with `requires_grad_(False)`. Layers that are frozen only after the
    call to `watch` are wrongly reported.

    ## Sources
    Andrej Karpathy, "A Recipe for Training Neural Networks" (2019), "use backprop to chart dependencies";
    PyTorch's documentation for `DistributedDataParallel` (`find_unused_parameters`).
    """

    severity = "warning"
    causes = ("unchanged-parameters", *NO_LEARNING)

    @check
    def from_gradients(self, gradients: GradientFacts) -> Finding | None:
        """Find trainable parameters that got no gradient."""
        if not gradients.connected:
            raise NotApplicable("needs a loss that depends on at least one parameter")
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
            f"{scalars:,} of the {gradients.num_trainable:,} trainable weights ({100 * share:.3g}%) and "
            f"{'keeps its' if one else 'keep their'} initial values. {NO_PATH}",
            fix={
                "torch": (
                    "make the loss depend on these parameters, with no .detach() or torch.no_grad() in between",
                    "parameter.requires_grad_(False)  # if it is unused on purpose",
                ),
                "peft": ADAPTERS,
                "keras": (
                    "make the loss depend on these weights, without operations that have no gradient: .numpy(), "
                    "NumPy, tf.stop_gradient, argmax, round, a cast to integers",
                    "layer.trainable = False  # if it is unused on purpose",
                ),
            },
            evidence={
                "unreached": dict(unreached),
                "unreached_scalars": scalars,
                "num_trainable": gradients.num_trainable,
            },
            severity="warning" if share >= WORTH_A_WARNING and not _are_poolers(unreached) else "note",
        )

    @check
    def from_history(
        self,
        steps: StepHistory,
        gradients: GradientHistory,
        updates: UpdateHistory,
        terms: LossTerms | None = None,
    ) -> Finding | None:
        """Find layers that never had a gradient while others learned."""
        if (gradients.norms > 0).sum() < STEPS:
            raise NotApplicable(f"needs at least {STEPS} steps with a gradient")
        ratios, weights = updates.ratios, updates.weight_norms
        if len(ratios) < COMPARED:
            raise NotApplicable(f"needs weights compared before and after at least {COMPARED} steps")
        held = ~np.isnan(ratios).all(axis=0)
        zero = held & (gradients.layer_norms == 0).all(axis=0)
        silent = zero & _unchanged(ratios, weights)
        decayed = np.zeros_like(silent) if gradients.reached is None else zero & gradients.reached
        decayed &= _only_decays(steps, updates)
        silent |= decayed
        if not silent.any():
            return None
        if gradients.reached is not None and (silent & gradients.reached).any():
            return self._of_zeros(gradients, silent, bool(decayed.any()), int(held.sum()), int(steps.steps[-1]))
        names = [name for name, is_silent in zip(gradients.layers, silent, strict=True) if is_silent]
        count, known, one = int(held.sum()), len(gradients.steps), len(names) == 1
        return self.found(
            f"{len(names)} of the {count} layers with parameters in the optimizer had no gradient at any of the "
            f"{known:,} recorded steps: {_listed(names)}. {'Its' if one else 'Their'} weights have not changed "
            f"since they were first sampled, while the other {_layers(count - len(names))} learned. "
            f"{NO_PATH}{_left_out(terms)}",
            fix={
                "torch": (
                    "use the output of these layers in the loss, with no .detach(), .data, NumPy or "
                    "torch.no_grad() in between",
                    "parameter.requires_grad_(False)  # if it is unused on purpose",
                ),
                "peft": ADAPTERS,
            },
            evidence={"layers": names, "num_layers": count, "steps": known},
            severity="warning" if len(names) >= MANY_LAYERS * count and not _are_poolers(names) else "note",
            step=int(steps.steps[-1]),
        )

    @check
    def from_forgotten(self, forgotten: ForgottenLayers) -> Finding:
        """Report layers that are part of no model."""
        layers = forgotten.layers
        one = len(layers) == 1
        named = _listed([f"{layer.name} ({layer.kind}, called on {layer.called_on})" for layer in layers])
        return self.found(
            f"{len(layers)} layer{'' if one else 's'} with weights {'is' if one else 'are'} called on a tensor "
            f"of the model, but {'is' if one else 'are'} not part of any model: {named}. "
            f"{'Its output is' if one else 'Their outputs are'} not used, because a later line calls the next "
            "layer on a different tensor. So the model is smaller than the code suggests.",
            fix=(
                "call each layer on the result of the previous one: x = Dense(64)(inputs); x = Dense(32)(x)",
                "remove the layer if you do not need it",
            ),
            evidence={"layers": [layer.name for layer in layers], "scalars": sum(one.scalars for one in layers)},
            severity="note" if all(layer.like_an_output for layer in layers) else None,
        )

    def _of_zeros(self, gradients: GradientHistory, silent: Array, decays: bool, count: int, step: int) -> Finding:
        """Describe layers that are in the graph of the loss but get only gradients of 0."""
        assert gradients.reached is not None
        zero = [name for name, of in zip(gradients.layers, silent & gradients.reached, strict=True) if of]
        none = [name for name, of in zip(gradients.layers, silent & ~gradients.reached, strict=True) if of]
        one = len(zero) == 1
        but = ", except by weight decay" if decays else ""
        also = f" There is no gradient path at all from the loss to {_listed(none)}." if none else ""
        recurrent = all(OF_RECURRENT in name for name in zero)
        why = (
            f"The model does not use {'its' if one else 'their'} output: it continues with the output or state of "
            "another layer or direction"
            if recurrent
            else (
                f"A gradient path leads from the loss to {'this layer' if one else 'these layers'}, but something "
                "along it multiplies the gradient by 0: dead or saturated units, weights that are all 0, a "
                "softmax over a single value, or a factor of 0"
            )
        )
        return self.found(
            f"{len(zero)} of the {count} layers with parameters in the optimizer got gradients of exactly 0 at "
            f"all {len(gradients.steps):,} recorded steps: {_listed(zero)}. {'Its' if one else 'Their'} weights "
            f"have not changed since they were first sampled{but}, while the other "
            f"{_layers(count - len(zero) - len(none))} learned. {why}.{also}",
            fix=(
                "if the RNN has several layers, use the state of the last layer: h_n[-1]",
                "if the RNN is bidirectional, use both final states: torch.cat([h_n[-2], h_n[-1]], dim=1)",
            )
            if recurrent
            else (
                "look for a ReLU whose inputs are all negative, a layer of zeros or a mask between "
                f"{'this layer' if one else 'these layers'} and the loss",
                "if units died during training, lower the learning rate, and replace ReLU with LeakyReLU or GELU",
            ),
            evidence={
                "layers": zero,
                "without_a_path": none,
                "num_layers": count,
                "steps": len(gradients.steps),
            },
            severity="warning" if len(zero) + len(none) >= MANY_LAYERS * count else "note",
            step=step,
        )

    def untrained(self, finding: Finding) -> set[str]:
        """Return the parameters or layers without a gradient."""
        return {
            name for key in ("unreached", "layers", "without_a_path") for name in finding.evidence.get(key, ())
        }

    def explains(self, cause: Finding, finding: Finding) -> bool | None:
        """Dead or saturated units make a gradient 0; they cut no path."""
        if cause.rule not in ("dead-units", "saturated-activations"):
            return None
        return "without_a_path" in finding.evidence and not finding.evidence["without_a_path"]


def _left_out(terms: LossTerms | None) -> str:
    """Say which losses are computed at each step and not differentiated."""
    if terms is None or not any(term.summed for term in terms.terms):
        return ""
    left = [term for term in terms.terms if term.has_gradient and not term.summed]
    if not left:
        return ""
    lines = listed(
        sorted({f"{term.function} in line {term.where.line}" for term in left if term.where is not None})
    )
    return (
        f" Each step computes {count_of(len(left), 'loss', 'losses')} ({lines or left[0].function}) that the "
        "differentiated loss does not include. Was a loss assigned instead of added?"
    )


def _are_poolers(names: Iterable[str]) -> bool:
    """Return whether all are in the pooler of a transformers model that is part of another model.

    A custom head that averages the states of all tokens does not use it.
    """
    return all(POOLER in name.split(".")[1:] for name in names)


def _unchanged(ratios: Array, weights: Array) -> Array:
    """Return bool (layers,): whether the weights never changed, neither in a step nor between steps.

    A target network that is copied from time to time has no gradient, and that is correct.
    """
    return np.asarray((np.nan_to_num(ratios, nan=0.0) == 0).all(axis=0) & (weights == weights[0]).all(axis=0))


def _only_decays(steps: StepHistory, updates: UpdateHistory) -> Array:
    """Return bool (layers,): whether each update is the same share of the weights, times the learning rate.

    A gradient gives no such updates, nor does a copy of other weights.
    """
    ratios, place = updates.ratios, np.searchsorted(steps.steps, updates.steps).clip(max=len(steps.steps) - 1)
    known = steps.steps[place] == updates.steps
    rates = steps.learning_rates[place[known]]
    if len(rates) < COMPARED or not rates.size or not (rates > 0).all():
        return np.zeros(ratios.shape[1], bool)
    decays = ratios[known][:, None] / rates[:, :, None]
    same = decays.max(axis=0) - decays.min(axis=0) <= DECAY * decays.min(axis=0)
    shrinks = (np.diff(updates.weight_norms, axis=0) < 0).all(axis=0)
    return np.asarray(same.any(axis=0) & (ratios > 0).all(axis=0) & shrinks)


def _layers(count: int) -> str:
    return "layer" if count == 1 else "layers"


def _listed(names: list[str]) -> str:
    shown = names if len(names) <= NAMED else [*names[:NAMED], f"{len(names) - NAMED} more"]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
