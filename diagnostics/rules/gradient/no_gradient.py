"""See `NoGradient`."""

from __future__ import annotations

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.crash import CrashFacts, NoPathToParameters
from diagnostics.facts.pipeline import GradientFacts, ModelFacts

RECONNECT = (
    "compute the loss from the model's own output: no .detach(), .item(), .numpy() or argmax on the way, and no "
    "torch.no_grad() or torch.inference_mode() around it"
)
UNFREEZE = "for p in model.parameters(): p.requires_grad_(True)  # or only those that should learn"
UNFREEZE_ADAPTERS = (
    "make the adapters trainable and leave the base model frozen: get_peft_model(model, config), or "
    "PeftModel.from_pretrained(model, path, is_trainable=True) to go on with saved ones; a new head goes into "
    "modules_to_save; model.print_trainable_parameters() then shows what learns"
)
RECONNECT_ADAPTERS = (
    "with gradient checkpointing call model.enable_input_require_grads(), or the frozen embedding cuts the path; "
    "model.print_trainable_parameters() shows what learns; the base model stays frozen"
)
RECONNECT_KERAS = (
    "compute the loss from the model's own output with keras.ops: no .numpy(), argmax or stop_gradient on the way"
)
UNFREEZE_KERAS = "model.trainable = True  # or only the layers that should learn; then compile again"


class NoGradient(Rule):
    """The loss has no path back to any parameter that should learn.

    ## What it does
    Follows the loss of one batch backwards and looks whether it meets a trainable parameter at all. After a
    crash, recognises the message of a `backward()` that found nothing to differentiate.

    ## Why it is bad
    No parameter gets a gradient, so no step can change anything. PyTorch raises `element 0 of tensors does not
    require grad and does not have a grad_fn`, Keras raises or warns; a loss that was made a leaf again with
    `requires_grad_(True)` only to quiet the error trains nothing in silence.

    ## Example
    ```python
    predicted = model(inputs).argmax(dim=-1).float()   # a choice has no derivative
    loss = F.mse_loss(predicted, labels.float())
    loss.backward()
    ```

    ## Instead
    ```python
    loss = F.cross_entropy(model(inputs), labels)
    loss.backward()
    ```

    ## Thresholds
    None: one trainable parameter within reach is enough.

    ## Known problems
    A model frozen as a whole under a loss that has parameters of its own to learn is reported, because only
    the model's parameters are looked for. From the text of a traceback alone it cannot be told where the path
    breaks.

    ## Sources
    PyTorch's notes "Autograd mechanics" ("Locally disabling gradient computation"); Andrej Karpathy, "A
    Recipe for Training Neural Networks" (2019), "use backprop to chart dependencies".
    """

    severity = "error"
    causes = ("unreached-parameters", "unchanged-parameters", *NO_LEARNING)
    no_exhibit = "the framework names this bug itself, at the line where it strikes; there is little to find out"

    @check
    def from_gradients(self, gradients: GradientFacts, model: ModelFacts | None = None) -> Finding | None:
        """Look whether the loss reached any trainable parameter."""
        if gradients.connected:
            return None
        keras = model is not None and model.library == "keras"
        adapters = model is not None and model.adapters
        if not gradients.num_trainable:
            return self.found(
                "None of the model's parameters asks for a gradient: all of them are frozen. The loss has nothing "
                "to change, so training would leave the model exactly as it is.",
                fix=UNFREEZE_KERAS if keras else UNFREEZE_ADAPTERS if adapters else UNFREEZE,
                evidence={"connected": False, "num_trainable": 0},
            )
        return self.found(
            f"The model has {gradients.num_trainable:,} trainable scalars, and the loss depends on none of them: "
            "somewhere between the model's output and the loss the path is cut. So no parameter gets a gradient, "
            "and training would leave the model exactly as it is.",
            fix=RECONNECT_KERAS if keras else RECONNECT_ADAPTERS if adapters else RECONNECT,
            evidence={"connected": False, "num_trainable": gradients.num_trainable},
        )

    @check
    def from_crash(self, crash: CrashFacts, symptom: NoPathToParameters) -> Finding | None:
        """Say what a backward pass without anything to differentiate means."""
        if crash.in_keras:
            return self.found(
                "No variable got a gradient: the loss was computed without a path to any variable that should "
                "learn. Somewhere between the model's output and the loss the path is cut.",
                fix=RECONNECT_KERAS,
                where=crash.where,
            )
        return self.found(
            "backward() found nothing to differentiate: the loss was computed without a path to any parameter "
            "that asks for a gradient. The path is cut, or all is frozen.",
            fix=RECONNECT_ADAPTERS
            if symptom.adapters
            else f"{RECONNECT}; and leave requires_grad=True on what should learn",
            where=crash.where,
        )
