"""See `MixedPrecisionMisuse`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Fix, Rule, check
from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.usage import MixedPrecisionMisused

SEEN: dict[str, tuple[str, Fix]] = {
    "half parameters": (
        "The gradient scaler got gradients of float16, because the model's parameters are "
        "float16. Mixed precision "
        "keeps float32 parameters and lets autocast choose float16 for single operations.",
        (
            "load and keep the model in float32: no .half(), no dtype=torch.float16",
            "bf16=True in place of fp16=True, which needs no scaler",
            "with PEFT: only the adapters are trained, and they must be float32",
        ),
    ),
    "nothing scaled": (
        "The gradient scaler stepped without gradients of a scaled loss: no parameter of this optimizer got a "
        "gradient from scaler.scale(loss).backward().",
        (
            "scaler.scale(loss).backward(), before scaler.step(optimizer)",
            "check that the optimizer holds the parameters of the model that the loss comes from",
        ),
    ),
    "twice": (
        "The gradient scaler unscaled or stepped one optimizer twice without scaler.update() in between.",
        (
            "in each step, in this order: scaler.unscale_(optimizer), clip, "
            "scaler.step(optimizer), scaler.update()",
            "under accelerate: accelerator.clip_grad_norm_ alone, which unscales by itself",
        ),
    ),
    "unsafe loss": (
        "binary_cross_entropy takes probabilities, and under autocast they would be float16, where the logarithm "
        "of a small probability overflows.",
        "torch.nn.BCEWithLogitsLoss() on the logits, without the sigmoid",
    ),
}


class MixedPrecisionMisuse(Rule):
    """The gradient scaler or autocast is used in a way that PyTorch refuses.

    ## What it does
    Recognises the errors of `GradScaler` and of autocast, and says which rule of mixed precision is broken.

    ## Why it is bad
    float16 holds no number below 6e-8, so gradients are scaled up before the backward pass and divided again
    before the step. That works only if the parameters, and with them the gradients, are float32, if the loss was
    scaled, and if each step is unscaled once.

    ## Example
    ```python
    model = AutoModelForCausalLM.from_pretrained(name, dtype=torch.float16)
    trainer = Trainer(model, TrainingArguments(..., fp16=True))
    ```

    ## Instead
    ```python
    model = AutoModelForCausalLM.from_pretrained(name)
    trainer = Trainer(model, TrainingArguments(..., fp16=True))
    ```

    ## Thresholds
    None: it is found only after PyTorch has refused.

    ## Known problems
    None known.

    ## Sources
    PyTorch's "Automatic mixed precision package" and "Automatic mixed precision examples" (gradient clipping,
    several optimizers).
    """

    severity = "error"

    @check
    def from_crash(self, crash: CrashFacts, symptom: MixedPrecisionMisused) -> Finding | None:
        """Say which rule of mixed precision is broken."""
        message, fix = SEEN[symptom.kind]
        return self.found(message, fix=fix, evidence={"kind": symptom.kind}, where=crash.where)
