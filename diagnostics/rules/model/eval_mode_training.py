"""See `EvalModeTraining`."""

from __future__ import annotations

from diagnostics.facts import ModelFacts
from diagnostics.finding import Finding
from diagnostics.rule import NotApplicable, Rule

NAMED = 3  # layers named in the message; which ones matters less than that there are some


class EvalModeTraining(Rule):
    """The model trains in evaluation mode.

    ## What it does
    Looks at whether the model is in evaluation mode although it has layers that behave differently in
    training: dropout, batch norm.

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
    None: the model as a whole is in evaluation mode, and one layer that minds is enough.

    ## Known problems
    Before training this is only a note, because the training loop usually calls `model.train()` itself and
    `examine` does not see the loop. Where the loop is known to decide, as in Hugging Face's Trainer and in
    Keras, the rule is not applicable. A backbone kept in evaluation mode on purpose, while the model around
    it is in training mode, is not reported.

    ## Sources
    PyTorch's documentation of `torch.nn.Module.eval`; Hugging Face's documentation of
    `PreTrainedModel.from_pretrained` ("the model is set in evaluation mode by default").
    """

    severity = "warning"
    no_exhibit = "it costs some accuracy, and how much varies with the seed: too little to fail on every run"

    def from_model(self, model: ModelFacts) -> Finding | None:
        """Look at the mode that the model was handed over in."""
        if model.training is None:
            raise NotApplicable("needs a model whose mode is set before the training loop starts")
        layers = model.mode_dependent_layers
        if model.training or not layers:
            return None
        others = len(layers) - NAMED
        named = ", ".join(layers[:NAMED]) + (f" and {others} more" if others > 0 else "")
        return self.found(
            f"{model.name} is in evaluation mode, but {len(layers)} of its layers "
            f"{'behaves' if len(layers) == 1 else 'behave'} differently in training ({named}). Unless the "
            "training loop switches the mode, dropout drops nothing and batch norm learns no statistics.",
            fix="model.train()  # at the start of each epoch, after any evaluation",
            evidence={"training": False, "mode_dependent_layers": list(layers)},
            severity="note",
        )
