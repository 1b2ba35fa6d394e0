"""See `DeadUnits`."""

from __future__ import annotations

from typing import Final

import numpy as np

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.course import TargetHistory, Verdicts
from diagnostics.facts.layers import INPUT_OF, ActivationFacts, ActivityFacts, LayerActivity, LayerFacts
from diagnostics.facts.pipeline import BatchFacts, LossFacts, ModelFacts, OutputFacts
from diagnostics.facts.training import LossHistory, PredictionFacts, StepHistory
from diagnostics.rules.shared.learnable import is_learnable
from diagnostics.rules.shared.loss_curve import has_fallen
from diagnostics.text.join import among, capitalized, listed

RELU_LIKE = ("relu", "relu6")  # exactly zero on one side; leaky relu, gelu and silu are not
DEAD_SHARE = 0.9  # healthy initialisation: 0.78 at most in our measurements
MIN_UNITS = 32  # of 16 units, 15 are dead by chance in one of 4,000 layers, and we measured such a layer
MIN_EXAMPLES_IN_ALL = 64  # in the sampled batches of a run, for a layer that is entirely zero
MIN_EXAMPLES = 8  # a unit that is zero for fewer examples may respond to others
LAYERS_NAMED = 5
MISSED = 20  # examples of a class that is never predicted, in the second half of the run
LASTING = 3  # sampled batches, the latest; the units must be dead in all of them

DIED: Final = (
    "lower the learning rate: one large update can push units below zero permanently",
    "clip the gradients",
)
ROWS: Final = "print ten inputs with their targets just before the loss is computed, and check that they match"
UNLEARNABLE: Final = (
    " A simple model fitted to some training rows cannot predict the targets of the other rows. If the targets "
    "are unrelated to the inputs, units die at any learning rate."
)


class DeadUnits(Rule):
    """Nearly all units of a layer output zero for every example in the batch.

    ## What it does
    Checks, on one batch, the output of each layer that ends in a ReLU or ReLU6. A unit (in a convolution, a
    channel) is dead if its output is zero for every example and every position. In a watched PyTorch run, the unit
    must be dead in each of the last 3 sampled batches. If a ReLU produces the logits of a cross-entropy loss, the
    rule also looks for classes whose unit is dead.

    ## Why it is bad
    The gradient of a ReLU is zero wherever its output is zero. A unit that is zero for every example gets no
    gradient, so training does not revive it. Typical causes are strongly negative initial biases, a single step
    with a learning rate that is far too high, and missing normalisation before the layer.

    ## Example
    ```python
    hidden = torch.nn.Linear(64, 64)
    # inputs of unit scale lift no unit above zero
    torch.nn.init.constant_(hidden.bias, -5.0)
    model = torch.nn.Sequential(hidden, torch.nn.ReLU(), torch.nn.Linear(64, 3))
    ```

    ## Instead
    ```python
    hidden = torch.nn.Linear(64, 64)
    torch.nn.init.kaiming_normal_(hidden.weight)
    torch.nn.init.zeros_(hidden.bias)
    model = torch.nn.Sequential(hidden, torch.nn.ReLU(), torch.nn.Linear(64, 3))
    ```

    ## Thresholds
    The layer must have at least 32 units and the batch at least 8 examples. At least 90% of the units must be
    dead. These thresholds are based on PyTorch models, untrained unless noted otherwise, with 10 to 200 seeds
    each:

    | model | largest share of dead units in a layer |
    |---|---|
    | MLP, 6 or 20 layers of 32, PyTorch's own initialisation | 78% |
    | MLP, 6 layers of 16, PyTorch's own initialisation | 94% |
    | MLP or CNN with batch norm | 0% |
    | MLP, 3 layers of 64, all biases -2 | 100% |
    | MLP, 3 layers of 64, after 5 SGD steps at a rate of 10 | 100% |

    In a watched run, a layer of any size is also reported if the run ends with at least 3 sampled batches, of at
    least 64 examples in total, in which all its units were zero. The finding is only a note if the loss has
    fallen, or if the units died during the run and a simple model fitted to the data learns nothing either. A
    class is reported if it has at least 20 sampled examples in the second half of the run but is never predicted
    in that half.

    ## Known problems
    A trained transformer with ReLU is naturally sparse: a few short texts leave most of its units unused. For
    models from the transformers library, the finding is therefore only a note. Sparse autoencoders are reported;
    ignore this rule for such models.

    ## Sources
    Lu Lu et al., "Dying ReLU and Initialization: Theory and Numerical Examples" (2019); Kaiming He et al.,
    "Delving Deep into Rectifiers" (2015); Zonglin Li et al., "The Lazy Neuron Phenomenon" (2022), on trained
    transformers.
    """

    severity = "warning"
    causes = (
        "ignores-input",
        "vanishing-gradients",
        "unchanged-parameters",
        "unreached-parameters",
        *NO_LEARNING,
    )

    @check
    def from_layers(
        self, layers: LayerFacts, batch: BatchFacts, model: ModelFacts | None = None
    ) -> Finding | None:
        """Count the units that are zero for the whole batch."""
        judged = [
            layer
            for layer in layers.activations
            if layer.function.lower().replace("_", "") in RELU_LIKE and layer.units >= MIN_UNITS
        ]
        if not judged:
            raise NotApplicable(f"needs a layer of at least {MIN_UNITS} units followed by a ReLU")
        if batch.size < MIN_EXAMPLES:
            raise NotApplicable(f"needs a batch of at least {MIN_EXAMPLES} examples")
        dead = [layer for layer in judged if layer.dead >= DEAD_SHARE * layer.units]
        if not dead:
            return None
        pretrained = model is not None and model.library == "transformers"
        first = dead[0]
        return self.found(
            f"{_listed(dead)} zero for all {batch.size} examples in this batch. A ReLU at zero passes no "
            "gradient, so these units cannot learn, and no gradient passes through them to earlier layers.",
            fix={
                library: (
                    f"in the layer before '{first.layer}', initialise the biases to 0 and the weights with "
                    f"{initialiser}",
                    f"add a normalisation layer before '{first.layer}'",
                    "lower the learning rate, if the units died during training",
                )
                for library, initialiser in (("torch", "kaiming_normal_"), ("keras", "he_normal"))
            },
            evidence={
                "layers": {layer.layer: {"dead": layer.dead, "units": layer.units} for layer in dead},
                "examples": batch.size,
            },
            severity="note" if pretrained else None,
        )

    @check
    def from_activity(
        self,
        activity: ActivityFacts,
        losses: LossHistory | None = None,
        model: ModelFacts | None = None,
        targets: TargetHistory | None = None,
    ) -> Finding | None:
        """Count the units that stay zero while the model trains."""
        judged = [
            layer
            for layer in activity.layers
            if layer.function.lower() in RELU_LIKE
            and len(layer.steps) >= LASTING
            and (_is_large(layer) or _is_dead_as_a_whole(layer))
        ]
        if not judged:
            raise NotApplicable(
                f"needs a layer of at least {MIN_UNITS} units followed by a ReLU, and {LASTING} sampled batches "
                f"of at least {MIN_EXAMPLES} examples"
            )
        dead = [layer for layer in judged if (layer.dead[-LASTING:] >= DEAD_SHARE * layer.units[-LASTING:]).all()]
        if not dead:
            return None
        first = dead[0]
        since = _first_dead(first)
        began = (
            f"They were already dead in the first sampled batch (step {first.steps[0]})"
            if not since
            else f"They died between step {first.steps[since - 1]} and step {first.steps[since]}"
        )
        pretrained = model is not None and model.library == "transformers"
        before = first.layer.removeprefix(INPUT_OF)
        fit = None if targets is None else targets.fit
        unlearnable = bool(since) and fit is not None and not is_learnable(fit)
        return self.found(
            f"{_listed([_latest(layer) for layer in dead])} zero for every example in the last {LASTING} sampled "
            f"batches. {began}. A ReLU at zero passes no gradient, so these units cannot learn, and no "
            f"gradient passes through them to earlier layers.{UNLEARNABLE if unlearnable else ''}",
            fix=(
                f"in the layer before '{before}', initialise the biases to 0 and the weights with kaiming_normal_",
                f"add a normalisation layer before '{before}'",
            )
            if not since
            else (*([ROWS] if unlearnable else []), *DIED),
            evidence={
                "layers": {
                    layer.layer: {"dead": layer.dead.tolist(), "units": int(layer.units[-1])} for layer in dead
                },
                "steps": first.steps.tolist(),
                "died": bool(since),
                "unlearnable": unlearnable,
            },
            severity="note" if pretrained or unlearnable or has_fallen(losses) else None,
            step=int(first.steps[since]),
        )

    @check
    def from_answers(
        self,
        answers: PredictionFacts,
        steps: StepHistory,
        outputs: OutputFacts,
        loss: LossFacts,
        verdicts: Verdicts,
    ) -> Finding | None:
        """Look for classes that a ReLU before the loss has cut off, after the run."""
        if not verdicts.complete:
            raise NotApplicable("needs a run that was not interrupted")
        if outputs.last_activation != "relu" or loss.kind != "cross_entropy" or loss.reads != "logits":
            raise NotApplicable("needs a cross-entropy loss on the output of a ReLU")
        late = answers.steps >= steps.total_steps / 2
        given, labels = answers.answers[late].sum(axis=0), answers.labels[late].sum(axis=0)
        missed = np.flatnonzero((given == 0) & (labels >= MISSED))
        if not missed.size:
            return None
        classes = listed([str(number) for number in missed], most=LAYERS_NAMED)
        one = missed.size == 1
        return self.found(
            "cross_entropy expects logits but got the output of a ReLU. In the second half of the run, "
            f"class{'' if one else 'es'} {classes} {'was' if one else 'were'} never predicted, although "
            f"{int(labels[missed].sum()):,} of the examples sampled in that half belong to "
            f"{'this class' if one else 'these classes'}. A ReLU never returns a negative score, so no class "
            "can be ruled out. At 0 it passes no gradient, so a class that scores 0 for every example can no "
            "longer be learned.",
            fix="remove the ReLU after the last layer: cross_entropy accepts negative logits",
            evidence={"classes": missed.tolist(), "examples": int(labels[missed].sum())},
            step=int(answers.steps[late][0]),
        )

    def explains(self, cause: Finding, finding: Finding) -> bool | None:
        """Units that died follow from unrelated labels; targets that cannot be learned need no dead units."""
        if cause.rule == "labels-unrelated":
            return bool(finding.evidence.get("died"))
        return False if finding.rule in NO_LEARNING and cause.evidence.get("unlearnable") else None


def _is_large(layer: LayerActivity) -> bool:
    """Return whether each of the latest batches has enough units and examples to judge a share."""
    enough = (layer.units >= MIN_UNITS) & (layer.examples >= MIN_EXAMPLES)
    return bool(enough[-LASTING:].all())


def _is_dead_as_a_whole(layer: LayerActivity) -> bool:
    """Return whether no unit was active in the latest batches, over so many examples that size does not matter."""
    alive = (layer.dead < layer.units).nonzero()[0]
    examples = layer.examples[int(alive[-1]) + 1 :] if alive.size else layer.examples
    return len(examples) >= LASTING and bool(examples.sum() >= MIN_EXAMPLES_IN_ALL)


def _latest(layer: LayerActivity) -> ActivationFacts:
    """Describe the batch with the fewest dead units among the latest ones."""
    dead = layer.dead[-LASTING:]
    place = int(dead.argmin()) - LASTING
    return ActivationFacts(layer.layer, layer.function, int(layer.units[place]), int(dead.min()), 0)


def _first_dead(layer: LayerActivity) -> int:
    """Return the index of the first sample after which the units stayed dead."""
    alive = (layer.dead < DEAD_SHARE * layer.units).nonzero()[0]
    return int(alive[-1]) + 1 if alive.size else 0


def _listed(layers: list[ActivationFacts]) -> str:
    """Name the layers: ``62 of the 64 units of layer "1" and all 32 units of layers "3" and "5" are``."""
    named: dict[str, list[str]] = {}
    for layer in layers[:LAYERS_NAMED]:
        units = (
            f"{among(layer.dead, layer.units, 'unit')} {'that feed' if layer.layer.startswith(INPUT_OF) else 'of'}"
        )
        named.setdefault(units, []).append(f'"{layer.layer.removeprefix(INPUT_OF)}"')
    parts = [f"{units} layer{'s' if len(ones) > 1 else ''} {listed(ones)}" for units, ones in named.items()]
    more = len(layers) - LAYERS_NAMED
    if more > 0:
        parts.append(f"nearly all units of {more} more {'layer' if more == 1 else 'layers'}")
    return f"{capitalized(listed(parts))} are"
