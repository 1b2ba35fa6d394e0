"""See `OptimizerMissesParameters`."""

from __future__ import annotations

from collections.abc import Collection

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import NotApplicable, check
from diagnostics.facts.dependence import DependenceFacts
from diagnostics.facts.loss_graph import LeafFacts
from diagnostics.facts.pipeline import ModelFacts, OptimizerFacts
from diagnostics.text.join import count_of, listed
from diagnostics.text.names import describe_parameters

# Of all trainable scalars: the same limit as in unreached-parameters. A forgotten scale or bias does little harm;
# a forgotten layer is larger.
WORTH_A_WARNING = 0.01


class OptimizerMissesParameters(MessageRule):
    """The optimizer does not contain all trainable parameters.

    ## What it does
    Compares the tensors in the optimizer with the model's parameters that require a gradient.

    Under `diagnose run`, the rule also looks for these parameters:

    - Parameters that the first loss depends on but that are in no optimizer. Such parameters may be unregistered
      or re-created in the forward pass, or belong to a second model before or after this one.
    - In Keras, layers that are re-created in each call, and a `tf.Variable` among the attributes of a layer, which
      Keras 3 does not track.
    - New weights that are missing from the checkpoint and stay frozen at their initial values, such as the
      classifier of a LoRA model without `task_type`. They are reported only if shuffling their values changes the
      predictions.
    - In a watched run, parameters that were frozen at the start and have received gradients since.

    ## Why it is bad
    An optimizer updates only the parameters that it was given when it was created. If a layer is added or replaced
    later, its parameters receive gradients but never change. If the optimizer was created for another model, the
    model in the loop keeps its initial weights. No error is raised.

    ## Example
    ```python
    optimizer = torch.optim.AdamW(model.parameters())
    model.fc = nn.Linear(512, 10)     # not in the optimizer
    ```

    ## Instead
    ```python
    model.fc = nn.Linear(512, 10)
    optimizer = torch.optim.AdamW(model.parameters())
    ```

    ## Thresholds
    The finding is an error if the optimizer has none of the model's trainable parameters, or nothing to train
    because the model is frozen. The finding is a warning if the missing parameters make up at least 1% of the
    trainable weights, or if the optimizer contains tensors that the model does not have, as happens after a layer
    is replaced. In all other cases, it is a note. If the optimizer has only part of the model, nothing is reported
    if a later training run changes the rest; if only an earlier training run did, the finding is a note. For
    frozen new weights, the finding is a warning if they are in the last layer that runs, and otherwise a note.

    ## Known problems
    If several optimizers train one model, each of them is reported as missing the others' parameters. Training
    only a head without freezing the rest of the model is also reported: call `requires_grad_(False)` on the other
    parameters, which also saves the memory that their gradients take up.

    A pretrained feature extractor that you forgot to freeze is not reported.

    A new head that replaces a loaded head and stays frozen is not detected.

    ## Sources
    PyTorch's documentation for `torch.optim` ("Constructing it") and `torch.nn.ModuleList`;
    `torch.optim.Optimizer.add_param_group`; PEFT's documentation for `LoraConfig` (`modules_to_save`) and
    `TaskType`.
    """

    severity = "error"
    causes = ("unchanged-parameters", "learning-rate-too-low", *NO_LEARNING)

    @check
    def from_optimizer(self, optimizer: OptimizerFacts, model: ModelFacts) -> Finding | None:
        """Compare the optimizer's parameters with the model's trainable ones."""
        if not optimizer.held and not optimizer.missing:
            return self._of_frozen(optimizer, model)
        if not optimizer.missing:
            return None
        missing, scalars = len(optimizer.missing), sum(optimizer.missing.values())
        foreign = count_of(optimizer.foreign, "tensor")
        evidence = {
            "held": optimizer.held,
            "missing": dict(optimizer.missing),
            "missing_scalars": scalars,
            "num_trainable": model.num_trainable,
            "foreign": optimizer.foreign,
        }
        rebuild = f"optimizer = {optimizer.name}(model.parameters(), ...)  # after the model is complete"
        adapters = (
            f"call get_peft_model(model, config) first, then create {optimizer.name}(p for p in "
            "model.parameters() if p.requires_grad), so that the base model stays frozen",
            "with a Trainer, do not pass an optimizer: the Trainer creates one for the adapters, including those "
            "that TRL adds for peft_config",
        )
        if not optimizer.held:
            return self.found(
                f"The optimizer ({optimizer.name}) {_lacks_all(missing)}. {_held_instead(optimizer)}. The "
                "optimizer cannot change this model.",
                fix={"torch": rebuild, "peft": adapters},
                evidence=evidence | ({"frozen": optimizer.frozen} if optimizer.frozen else {}),
            )
        if optimizer.unfrozen:
            return self.found(
                f"{count_of(optimizer.unfrozen, 'parameter')} that {_were(optimizer.unfrozen)} frozen at the "
                f"start now get{'s' if optimizer.unfrozen == 1 else ''} gradients, but "
                f"{'is' if optimizer.unfrozen == 1 else 'are'} missing from the optimizer ({optimizer.name}): "
                f"{describe_parameters(optimizer.missing)}. No step will change "
                f"{'it' if optimizer.unfrozen == 1 else 'them'}.",
                fix=(
                    'optimizer.add_param_group({"params": backbone.parameters(), "lr": ...})  # when you '
                    "unfreeze the backbone",
                    f"optimizer = {optimizer.name}(model.parameters(), ...)  # frozen parameters are skipped "
                    "until they get gradients",
                ),
                evidence=evidence | {"unfrozen": optimizer.unfrozen},
                severity="warning",
            )
        share = scalars / model.num_trainable
        replaced = (
            f" The optimizer also has {foreign} from outside the model: was a layer replaced after the "
            "optimizer was created?"
            if optimizer.foreign
            else ""
        )
        return self.found(
            f"The optimizer ({optimizer.name}) is missing {missing} of the model's {missing + optimizer.held} "
            f"trainable parameters: {describe_parameters(optimizer.missing)}. "
            f"{'That parameter holds' if missing == 1 else 'They hold'} {scalars:,} of the "
            f"{model.num_trainable:,} trainable weights ({100 * share:.3g}%), and no step will change "
            f"{'it' if missing == 1 else 'them'}.{replaced}",
            fix={
                "torch": (rebuild, "parameter.requires_grad_(False), if these parameters should not be trained"),
                "peft": adapters,
                "keras": (
                    "with fit(), call model.compile(...) again after adding, replacing or unfreezing layers",
                    "in a custom loop, call tape.gradient(loss, model.trainable_variables) once the model is "
                    "complete",
                    "layer.trainable = False, if these layers should not be trained",
                ),
            },
            evidence=evidence,
            severity="warning" if optimizer.foreign or share >= WORTH_A_WARNING else "note",
        )

    def _of_frozen(self, optimizer: OptimizerFacts, model: ModelFacts) -> Finding:
        """Report an optimizer without parameters; the loss may still have a gradient, for embedded inputs."""
        if model.num_trainable or optimizer.foreign or optimizer.frozen or model.library == "keras":
            raise NotApplicable("needs a model with trainable parameters")
        return self.found(
            f"The optimizer ({optimizer.name}) has nothing to train: all parameters of {model.name} are frozen.",
            fix={
                "torch": "layer.requires_grad_(True)  # for the layers to train, before the optimizer is created",
                "peft": (
                    "PeftModel.from_pretrained(model, path, is_trainable=True)  # to train saved adapters",
                    "get_peft_model(model, config)  # to train new ones",
                ),
            },
            evidence={"held": 0, "missing": {}, "num_trainable": 0, "foreign": 0},
        )

    def untrained(self, finding: Finding) -> Collection[str]:
        """Return the missing parameters, of an optimizer that was meant for a part of the model."""
        evidence = finding.evidence
        whole = not evidence.get("held") or evidence["foreign"] or "unfrozen" in evidence
        return () if whole else evidence["missing"]

    @check
    def from_leaves(self, leaves: LeafFacts, optimizer: OptimizerFacts) -> Finding | None:
        """Look for parameters that the loss depends on but no optimizer trains."""
        lost = {
            **leaves.unregistered,
            **leaves.vanished,
            **leaves.other_models,
            **leaves.heads,
            **leaves.untracked,
        }
        scalars = sum(lost.values())
        if not lost or scalars < WORTH_A_WARNING * (scalars + leaves.num_trained):
            return None
        evidence = {"unregistered": dict(leaves.unregistered), "other_models": dict(leaves.other_models)}
        if leaves.vanished:
            evidence["vanished"] = dict(leaves.vanished)
        if leaves.heads:
            evidence["heads"] = dict(leaves.heads)
        share = scalars / (scalars + leaves.num_trained)
        if leaves.unregistered:
            count = len(leaves.unregistered)
            return self.found(
                f"The loss depends on {count_of(count, 'parameter')} that the model keeps in a Python list or "
                f"dict: {describe_parameters(leaves.unregistered)}. `model.parameters()` does not find "
                f"{'it' if count == 1 else 'them'} there, so no optimizer updates "
                f"{'it' if count == 1 else 'them'}: {100 * share:.3g}% of all weights get gradients but keep "
                "their initial values.",
                fix=(
                    "self.layers = nn.ModuleList([...])  # or nn.ModuleDict, nn.ParameterList",
                    "parameter.requires_grad_(False), if these parameters should not be trained",
                ),
                evidence=evidence,
                severity="warning",
            )
        if leaves.untracked:
            count = len(leaves.untracked)
            return self.found(
                f"The predictions depend on {count_of(count, 'TensorFlow variable')} that the layers keep as "
                f"attributes: {describe_parameters(leaves.untracked)}. Keras 3 tracks only its own variables, so "
                f"`trainable_variables` does not include {'it' if count == 1 else 'them'}: {100 * share:.3g}% of "
                "all weights are neither trained nor saved in weights files.",
                fix=(
                    "self.w = self.add_weight(shape=(inputs, units))  # in build, instead of a tf.Variable",
                    "tf.Variable(..., trainable=False), if the variable should not be trained",
                ),
                evidence=evidence | {"untracked": dict(leaves.untracked)},
                severity="warning",
            )
        if leaves.vanished:
            return self.found(
                f"The model creates a layer ({listed(leaves.vanished)}) in its forward pass and discards it "
                f"afterwards. The loss depends on the layer's {sum(leaves.vanished.values()):,} weights "
                f"({100 * share:.3g}% of all weights it depends on). No optimizer updates these weights, and the "
                "next forward pass initialises new ones.",
                fix={
                    "torch": (
                        "self.layer = nn.Linear(...)  # in __init__, and self.layer(x) in forward",
                        "layer.requires_grad_(False), if the layer is meant to be random",
                    ),
                    "keras": (
                        "self.hidden = layers.Dense(...)  # in __init__, and self.hidden(x) in call",
                        "layer.trainable = False, if the layer is meant to be random",
                    ),
                },
                evidence=evidence,
                severity="warning",
            )
        ahead = bool(leaves.other_models)  # of the model; else behind it
        modules = leaves.other_models if ahead else leaves.heads
        names, s = listed(modules), "s" if len(modules) == 1 else ""
        does = f"compute{s} the model's input" if ahead else f"take{s} the model's output"
        its = "its" if s else "their"
        return self.found(
            f"The loss depends on {names}, which {does}. {names} get{s} gradients and {'is' if s else 'are'} in "
            f"training mode, but no optimizer has any of {its} parameters. {its.capitalize()} {scalars:,} "
            f"weights, {100 * share:.3g}% of all weights that the loss depends on, keep their random initial "
            "values.",
            fix={
                "torch": (
                    f"optimizer = {optimizer.name}([*encoder.parameters(), *decoder.parameters()], ...)  # all "
                    "modules",
                    "module.requires_grad_(False), if the module should not be trained",
                ),
                "keras": (
                    "pass encoder.trainable_variables + head.trainable_variables to tape.gradient and "
                    "apply_gradients",
                    "encoder.trainable = False, if the encoder should not be trained",
                ),
            }
            if ahead
            else (
                f"optimizer = {optimizer.name}([*model.parameters(), *criterion.parameters()], ...)",
                "module.requires_grad_(False), if the module should not be trained",
            ),
            evidence=evidence,
            severity="warning",
        )

    @check
    def from_untrained(self, dependence: DependenceFacts) -> Finding | None:
        """Look for the random weights of a new head that was frozen during the whole training."""
        if not dependence.trained:
            raise NotApplicable("needs a trained model")
        found = dependence.untrained
        if found is None:
            return None
        scalars, one = sum(found.weights.values()), len(found.weights) == 1
        was, it = ("was", "it") if one else ("were", "them")
        last = (
            "No later layer was trained: the last layer keeps its random weights, and earlier layers can only "
            "adapt to them."
            if found.last
            else "Later layers were trained: they can adapt to these random weights, but cannot make up for them."
        )
        return self.found(
            f"{count_of(len(found.weights), 'weight matrix', 'weight matrices')} of the model {was} missing from "
            f"the checkpoint, randomly initialised and never trained: {describe_parameters(found.weights)}, with "
            f"{scalars:,} weights. The predictions depend on {it}, but {'it' if one else 'they'} {was} "
            f"frozen and still {'has its' if one else 'have their'} initial values. {last}",
            fix={
                "torch": (
                    "model.classifier.requires_grad_(True)  # the new head, before the optimizer is created",
                    "load these weights from a checkpoint that contains them",
                ),
                "peft": (
                    'LoraConfig(..., task_type="SEQ_CLS")  # also trains and saves the new classifier',
                    'LoraConfig(..., modules_to_save=["classifier"])  # the name of the new head',
                ),
            },
            evidence={"weights": dict(found.weights), "scalars": scalars, "last": found.last},
            severity="warning" if found.last else "note",
        )


def _lacks_all(missing: int) -> str:
    if missing == 1:
        return "does not hold the model's only trainable parameter"
    return f"has none of the model's {missing:,} trainable parameters"


def _held_instead(optimizer: OptimizerFacts) -> str:
    if optimizer.frozen:
        rest = f" and {count_of(optimizer.foreign, 'tensor')} from elsewhere" if optimizer.foreign else ""
        return f"It has only {count_of(optimizer.frozen, 'frozen parameter')} of the model{rest}"
    if optimizer.foreign:
        return (
            f"It has {count_of(optimizer.foreign, 'tensor')} from another model, or from an earlier version of "
            "this model"
        )
    return "It has no parameters at all"


def _were(number: int) -> str:
    return "was" if number == 1 else "were"
