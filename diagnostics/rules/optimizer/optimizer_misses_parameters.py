"""See `OptimizerMissesParameters`."""

from __future__ import annotations

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.pipeline import ModelFacts, OptimizerFacts
from diagnostics.text.names import describe_parameters

# Of all trainable scalars: the limit of unreached-parameters, for the same reason. A forgotten scale or bias
# harms little; a forgotten layer holds more.
WORTH_A_WARNING = 0.01


class OptimizerMissesParameters(Rule):
    """The optimizer does not hold what should learn.

    ## What it does
    Compares the tensors that the optimizer holds with the parameters of the model that ask for a gradient.

    ## Why it is bad
    An optimizer changes only what it was given when it was built. Parameters of a layer that was added or
    replaced later get gradients and never move; an optimizer built for another model changes that one, and
    the model in the loop stays as it was initialised. Nothing fails.

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
    An error where the optimizer holds none of the model's trainable parameters. A warning where those it
    lacks make up at least 1 % of the trainable scalars (our choice: a forgotten layer, not a forgotten
    scale), or where the optimizer also holds tensors that the model does not have, as after a layer was
    replaced; else a note.

    ## Known problems
    A model trained by several optimizers, each with its share of the parameters, is reported for the share of
    the others. So is training only a head without freezing the rest: call `requires_grad_(False)` on what
    should not learn, which saves its gradients too. Foreign tensors alone are no alarm, because several
    models, or a loss that learns, may share an optimizer.

    ## Sources
    PyTorch's documentation of `torch.optim`, "Constructing it"; `torch.optim.Optimizer.add_param_group`.
    """

    severity = "error"
    causes = ("unchanged-parameters", "learning-rate-too-low", *NO_LEARNING)

    @check
    def from_optimizer(self, optimizer: OptimizerFacts, model: ModelFacts) -> Finding | None:
        """Compare what the optimizer holds with what should learn."""
        if not optimizer.held and not optimizer.missing:
            raise NotApplicable("needs a model with trainable parameters")
        if not optimizer.missing:
            return None
        missing, scalars = len(optimizer.missing), sum(optimizer.missing.values())
        foreign = f"{optimizer.foreign} {'tensor' if optimizer.foreign == 1 else 'tensors'}"
        evidence = {
            "held": optimizer.held,
            "missing": dict(optimizer.missing),
            "missing_scalars": scalars,
            "num_trainable": model.num_trainable,
            "foreign": optimizer.foreign,
        }
        rebuild = f"optimizer = {optimizer.name}(model.parameters(), ...)  # after the model is complete"
        if not optimizer.held:
            holds = (
                f"It holds {foreign} of something else: another model, or this one before it was replaced"
                if optimizer.foreign
                else "It holds nothing at all"
            )
            return self.found(
                f"The optimizer ({optimizer.name}) holds none of the model's {missing} trainable "
                f"{'parameter' if missing == 1 else 'parameters'}. {holds}. Its steps cannot change this model.",
                fix=rebuild,
                evidence=evidence,
            )
        share = scalars / model.num_trainable
        replaced = (
            f" It also holds {foreign} that the model does not have: was a layer replaced after the optimizer "
            "was built?"
            if optimizer.foreign
            else ""
        )
        return self.found(
            f"The optimizer ({optimizer.name}) lacks {missing} of the model's {missing + optimizer.held} "
            f"trainable parameters: {describe_parameters(optimizer.missing)}. "
            f"{'It is' if missing == 1 else 'They are'} {scalars:,} of {model.num_trainable:,} trainable scalars "
            f"({100 * share:.3g} %), and no step will change {'it' if missing == 1 else 'them'}.{replaced}",
            fix=f"{rebuild}; if they should not learn: parameter.requires_grad_(False)",
            evidence=evidence,
            severity="warning" if optimizer.foreign or share >= WORTH_A_WARNING else "note",
        )
