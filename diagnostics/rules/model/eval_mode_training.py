"""See `EvalModeTraining`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.pipeline import ModelFacts
from diagnostics.facts.training import TrainModeFacts

STEPS = 8  # looked at in a watched run, all in evaluation mode
NAMED = 3  # layers named in the message; which ones matters less than that there are some


class EvalModeTraining(Rule):
    """The model trains in evaluation mode.

    ## What it does
    Looks at whether the model is in evaluation mode although it has layers that behave differently in
    training: dropout, batch norm. In a run that is watched it looks at these layers themselves, during the
    backward passes.

    ## Why it is bad
    In evaluation mode dropout drops nothing, so the model overfits sooner, and batch norm uses and keeps its
    old statistics, which for a new model are a mean of 0 and a variance of 1 whatever the data look like.
    Nothing fails.

    ## Example
    ```python
    model = AutoModelForSequenceClassification.from_pretrained(name)   # comes in evaluation mode
    for batch in loader:
        model(**batch).loss.backward()
    ```

    ## Instead
    ```python
    model = AutoModelForSequenceClassification.from_pretrained(name)
    model.train()
    for batch in loader:
        model(**batch).loss.backward()
    ```

    ## Thresholds
    None: the model as a whole is in evaluation mode, and one layer that minds is enough. In a watched run: none of
    these layers was in training mode in the last 8 steps looked at, or more. Layers of frozen parts do not count,
    and neither does dropout that drops nothing.

    ## Known problems
    Before training this is only a note, because the training loop usually calls `model.train()` itself and
    `examine` does not see the loop. Where the loop is known to decide, as in Hugging Face's Trainer and in
    Keras, the rule is not applicable. A backbone kept in evaluation mode on purpose, while the model around it
    is in training mode, is not reported. To fine-tune a whole model in evaluation mode, so that batch norm
    keeps the statistics it came with, is a choice that some make; a watched run that does so is reported.

    ## Sources
    PyTorch's documentation of `torch.nn.Module.eval`; Hugging Face's documentation of
    `PreTrainedModel.from_pretrained` ("the model is set in evaluation mode by default").
    """

    severity = "warning"
    no_exhibit = "it costs some accuracy, and how much varies with the seed: too little to fail on every run"

    @check
    def from_model(self, model: ModelFacts) -> Finding | None:
        """Look at the mode that the model was handed over in."""
        if model.training is None:
            raise NotApplicable("needs a model whose mode is set before the training loop starts")
        layers = model.mode_dependent_layers
        if model.training or not layers:
            return None
        named = _named(layers)
        return self.found(
            f"{model.name} is in evaluation mode, but {len(layers)} of its layers "
            f"{'behaves' if len(layers) == 1 else 'behave'} differently in training ({named}). Unless the "
            "training loop switches the mode, dropout drops nothing and batch norm learns no statistics.",
            fix="model.train()  # at the start of each epoch, after any evaluation",
            evidence={"training": False, "mode_dependent_layers": list(layers)},
            severity="note",
        )

    @check
    def from_modes(self, modes: TrainModeFacts) -> Finding | None:
        """Look at the mode of the layers that mind while the model learns."""
        layers = modes.layers
        if not layers:
            return None
        if len(modes.steps) < STEPS:
            raise NotApplicable(f"needs {STEPS} steps whose backward pass was looked at")
        training = np.flatnonzero(modes.in_training > 0)
        last = int(training[-1]) if training.size else None
        since = modes.steps if last is None else modes.steps[last + 1 :]
        if len(since) < STEPS:
            return None
        before = ""
        if last is not None:
            before = (
                f" At step {modes.steps[last]:,} they still were: an evaluation seems to have left the model "
                "in its own mode."
            )
        return self.found(
            f"The model trains in evaluation mode: in all {len(since)} steps looked at from step {since[0]:,} on, "
            f"no layer that behaves differently in training was in training mode ({_named(layers)}).{before} "
            "Dropout drops nothing, and batch norm learns no statistics.",
            fix="model.train()  # at the start of each epoch, after any evaluation",
            evidence={
                "mode_dependent_layers": list(layers),
                "steps_looked_at": len(since),
                "last_step_in_training_mode": None if last is None else int(modes.steps[last]),
            },
            step=int(since[0]),
        )


def _named(layers: tuple[str, ...]) -> str:
    others = len(layers) - NAMED
    return ", ".join(layers[:NAMED]) + (f" and {others} more" if others > 0 else "")
