"""See `NoGradient`."""

from __future__ import annotations

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import Fix, NotApplicable, check
from diagnostics.facts.array import Array
from diagnostics.facts.calls import StepOrderFacts
from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.data import NoPathToParameters
from diagnostics.facts.data import SampleWeights
from diagnostics.facts.loss_call import LossTerms
from diagnostics.facts.pipeline import GradientFacts, ModelFacts
from diagnostics.facts.training import GradientHistory, StepHistory
from diagnostics.text.join import among

RECONNECT = (
    "compute the loss from the model's own output, without .detach(), .item(), .numpy() or argmax in between, and "
    "outside torch.no_grad() and torch.inference_mode()"
)
UNFREEZE = "for p in model.parameters(): p.requires_grad_(True)  # or only for the layers you want to train"
UNFREEZE_ADAPTERS = (
    "make the adapters trainable: get_peft_model(model, config), with a new head listed in modules_to_save, and "
    "keep the base model frozen",
    "check which parameters are trainable: model.print_trainable_parameters()",
    "continue with saved adapters: PeftModel.from_pretrained(model, path, is_trainable=True)",
)
RECONNECT_ADAPTERS = (
    "with gradient checkpointing, call model.enable_input_require_grads(); otherwise the frozen embedding "
    "breaks the graph",
    "check that the adapters are trainable and the base model is frozen: model.print_trainable_parameters()",
)
RECONNECT_KERAS = (
    "compute the loss from the model's own output with keras.ops, without .numpy(), argmax or stop_gradient in "
    "between"
)
UNFREEZE_KERAS = "model.trainable = True  # or only the layers you want to train; then recompile"
STEPS = 3  # in a watched run
NEARLY_ALL = 0.9  # of its steps have no gradient: the last batch of each epoch may still have one
PASSES = 8  # first steps that compute the same losses
ZERO = 1e-6  # of a loss: the rounding of a divergence between equal distributions
ROUNDING, VARIES = 1e-5, 1e-3  # of the largest loss: that a sum may be off, and that a term must contribute
WEIGHED = 8  # batches with sample weights; fewer may all be unusual ones
ORDER = "call optimizer.zero_grad(), loss.backward() and optimizer.step(), in that order"
REQUIRE = "keep requires_grad=True on the parameters you want to train"


class NoGradient(MessageRule):
    """The loss does not depend on any trainable parameter.

    ## What it does
    Follows the graph of one batch's loss backwards, and checks whether it reaches a trainable parameter. After a
    crash, it recognises the error raised by a `backward()` call that has nothing to differentiate. In a watched
    run, the rule checks

    - whether the optimizer found gradients at its steps,
    - whether `zero_grad()` was called between `backward()` and the step,
    - whether `backward()` was called at all,
    - whether a loss without a gradient is added to the loss that is differentiated, and
    - whether entire batches have sample weights of 0.

    ## Why it is bad
    No parameter gets a gradient, so no step can change anything. PyTorch raises
    `element 0 of tensors does not require grad and does not have a grad_fn`. Calling `requires_grad_(True)` on the
    loss only hides the error: nothing is trained.

    ## Example
    ```python
    predicted = model(inputs).argmax(dim=-1).float()   # argmax has no gradient
    loss = F.mse_loss(predicted, labels.float())
    loss.backward()
    ```

    ## Instead
    ```python
    loss = F.cross_entropy(model(inputs), labels)
    loss.backward()
    ```

    ## Thresholds
    Before training, there is no threshold: if the loss depends on even one trainable parameter, nothing is
    reported. In a watched run, there must be at least 3 steps, and the reported reason must apply to at least 90%
    of them. For sample weights, there must be at least 8 batches, and at least 90% of them must have only weights
    of 0.

    A term without a gradient is reported if three conditions hold:

    - At least 8 of the first steps call the same loss functions.
    - The differentiated loss is a sum of their results with constant factors (to within 1e-5), but only if this
      term is included.
    - The term makes up more than 0.1% of the differentiated loss.

    A term that is 0 (to within 1e-6) at each of these steps is also reported. The finding is a warning, or a note
    if parts of the model are frozen, because a term may then train nothing on purpose.

    ## Known problems
    A frozen model is reported even if the loss has trainable parameters of its own, because only the model's
    parameters are checked. A traceback does not show where the graph was cut. Terms without a gradient are found
    only if each term comes from one of PyTorch's loss functions and the weights of the terms do not change during
    the first steps.

    ## Sources
    PyTorch's notes, "Autograd mechanics" ("Locally disabling gradient computation"); Andrej Karpathy, "A Recipe
    for Training Neural Networks" (2019), "use backprop to chart dependencies".
    """

    severity = "error"
    causes = ("unreached-parameters", "unchanged-parameters", *NO_LEARNING)

    @check
    def from_gradients(self, gradients: GradientFacts) -> Finding | None:
        """Check whether the loss depends on any trainable parameter."""
        if gradients.connected:
            return None
        if not gradients.num_trainable:
            return self.found(
                "None of the model's parameters requires a gradient: all of them are frozen, so training would "
                "not change the model.",
                fix={"torch": UNFREEZE, "peft": UNFREEZE_ADAPTERS, "keras": UNFREEZE_KERAS},
                evidence={"connected": False, "num_trainable": 0},
            )
        return self.found(
            f"The model has {gradients.num_trainable:,} trainable parameters, but the loss does not depend on any "
            "of them: the graph is broken between the model's output and the loss. No parameter gets a gradient, "
            "so training would not change the model.",
            fix={"torch": RECONNECT, "peft": RECONNECT_ADAPTERS, "keras": RECONNECT_KERAS},
            evidence={"connected": False, "num_trainable": gradients.num_trainable},
        )

    @check
    def from_calls(
        self, order: StepOrderFacts, steps: StepHistory, gradients: GradientHistory | None = None
    ) -> Finding | None:
        """Check whether the calls in the loop leave gradients for the optimizer."""
        if order.steps < STEPS:
            raise NotApplicable(f"needs at least {STEPS} optimizer steps")
        without = order.cleared + order.without_backward
        seen = 0 if gradients is None else int((gradients.norms != 0).sum())
        if without < NEARLY_ALL * order.steps or seen > (1 - NEARLY_ALL) * len(steps.steps):
            return None
        evidence = {"steps": order.steps, "cleared": order.cleared, "without_backward": order.without_backward}
        if order.cleared >= order.without_backward:
            return self.found(
                f"`zero_grad()` was called between `backward()` and `step()` in "
                f"{among(order.cleared, order.steps, 'step')}: the optimizer found no gradients, so it could not "
                "change any weight.",
                fix=ORDER,
                evidence=evidence,
            )
        return self.found(
            f"In {among(order.without_backward, order.steps, 'step')}, `backward()` had not been called since the "
            "previous step: the optimizer found no gradients, so it could not change any weight.",
            fix=("call loss.backward() before each optimizer.step(), inside the loop over the batches", ORDER),
            evidence=evidence,
        )

    @check
    def from_terms(self, terms: LossTerms, model: ModelFacts | None = None) -> Finding | None:
        """Look for a term of the loss that no gradient goes through."""
        if len(terms.totals) < max(PASSES, len(terms.terms) + PASSES // 2):
            raise NotApplicable(f"needs at least {PASSES} steps that compute the same losses")
        if (found := _without_gradient(terms)) is None:
            return None
        place, share = found
        term, values = terms.terms[place], terms.values[:, place]
        line = "" if term.where is None else f" in line {term.where.line}"
        partly = model is not None and model.num_trainable < model.num_parameters
        compared = f"at the {len(values)} steps compared, it"
        seen = (
            f"{compared} varies from {values.min():.3g} to {values.max():.3g} and makes up as much as "
            f"{100 * share:.2g}% of the differentiated loss, but no gradient lowers it."
            if share
            else f"{compared} is 0, because the two tensors in it are equal. Was another prediction meant?"
        )
        return self.found(
            f"One term of the loss, {term.function}{line}, does not depend on any parameter that requires a "
            f"gradient, so it trains nothing: {seen}",
            fix=(
                "compute the term from the model's output, without .detach(), .data, argmax or NumPy in between",
                "torch.autograd.grad(..., create_graph=True)  # if the term contains a derivative",
                "leave the term out of the loss, if it is only to be reported",
            ),
            evidence={"function": term.function, "share": share, "steps": len(values)},
            where=term.where,
            severity="note" if partly and share else "warning",
        )

    @check
    def from_weights(self, weights: SampleWeights) -> Finding | None:
        """Check whether the sample weights leave anything to learn from."""
        if weights.batches < WEIGHED:
            raise NotApplicable(f"needs at least {WEIGHED} batches with sample weights")
        if weights.blank < NEARLY_ALL * weights.batches:
            return None
        weightless = among(weights.zero_rows, weights.rows, "example")
        return self.found(
            f"In {among(weights.blank, weights.batches, 'batch', 'batches')} checked, every sample weight is 0 "
            f"({weightless} have weight 0). The losses of these examples "
            "are multiplied by 0, so both the loss and the gradient are 0 whatever the model predicts.",
            fix=(
                "print the weights before training: weights.min(), weights.mean(), (weights > 0).mean()",
                "compute the weights with /, not //: integer division gives 0",
                "check the class names that the weights are based on: a misspelt name matches no label",
            ),
            evidence={"batches": weights.batches, "blank": weights.blank, "zero_rows": weights.zero_rows},
        )

    @check
    def from_crash(self, crash: CrashFacts, symptom: NoPathToParameters) -> Finding | None:
        """Explain a backward pass that has nothing to differentiate."""
        seen = (
            "No variable got a gradient: the loss does not depend on any trainable variable. The graph is broken "
            "between the model's output and the loss."
            if crash.in_keras
            else "No parameter got a gradient: the loss does not depend on any parameter with requires_grad=True. "
            "The graph is broken between the model's output and the loss, or all parameters are frozen."
        )
        reconnect: Fix = RECONNECT_ADAPTERS if symptom.adapters else (RECONNECT, REQUIRE)
        return self.found(seen, fix={"torch": reconnect, "keras": RECONNECT_KERAS}, where=crash.where)


def _without_gradient(terms: LossTerms) -> tuple[int, float] | None:
    """Return the number of a term without a gradient, and its largest share of the loss.

    It is known to be a term of the loss if, up to rounding, the loss is the same sum of these losses at each step,
    but no sum of those with a gradient alone.
    """
    import numpy as np  # explaining a crash needs none of it

    summed = [place for place, term in enumerate(terms.terms) if term.summed]
    constant = [place for place, term in enumerate(terms.terms) if not term.has_gradient and term.beside_constant]
    if not summed or not constant or not np.isfinite(terms.values).all() or not np.isfinite(terms.totals).all():
        return None
    for place in constant:
        if (abs(terms.values[:, place]) < ZERO).all():
            return place, 0.0
    _, rest = _fitted(terms.values[:, summed], terms.totals)
    factors, exact = _fitted(terms.values[:, summed + constant], terms.totals)
    largest = np.abs(terms.totals).max()
    if exact > ROUNDING * largest or rest <= VARIES * largest:
        return None
    shares = (factors[len(summed) :] * terms.values[:, constant] / largest).max(axis=0)
    best = int(shares.argmax())
    return (constant[best], float(shares[best])) if shares[best] > VARIES else None


def _fitted(values: Array, totals: Array) -> tuple[Array, float]:
    """Return the factors of a sum, and how far it is from the totals at most."""
    import numpy as np

    factors = np.linalg.lstsq(values, totals, rcond=None)[0]
    return factors, float(np.abs(values @ factors - totals).max())
