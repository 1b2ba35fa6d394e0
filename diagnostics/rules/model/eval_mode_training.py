"""See `EvalModeTraining`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import NotApplicable, check
from diagnostics.facts.layers import NeverInTraining, TrainModeFacts
from diagnostics.facts.pipeline import ModelFacts
from diagnostics.text.join import layers_named

KERAS_STEPS = 16  # taken without ever reaching a layer in training mode; fewer may be a trial
STEPS = 8  # checked in a watched run, all in evaluation mode
BLOCKS = 2  # blocks of steps in evaluation mode; a single one may be a separate phase
NAMED = 3  # layers named in the message
VALIDATION = (
    "compute the evaluation loss under torch.no_grad(), without calling backward() or step()",
    "if training: loss.backward(); optimizer.step()  # in a function used for both training and evaluation",
)
FIX = "model.train()  # at the start of each epoch, after any evaluation"


class EvalModeTraining(MessageRule):
    """The model trains in evaluation mode.

    ## What it does
    Checks whether the model is in evaluation mode even though it has layers that behave differently in training,
    such as dropout and batch norm. In a watched run, it checks the mode of these layers during the backward
    passes. In Keras, it checks after the run whether a call in training mode has ever changed the state of these
    layers, such as the dropout seed or the batch norm statistics.

    ## Why it is bad
    In evaluation mode, dropout is off, so the model overfits sooner. Batch norm uses its running statistics
    without updating them. In a new model, these statistics are a mean of 0 and a variance of 1, whatever the data.
    No error is raised.

    ## Example
    ```python
    # returned in evaluation mode
    model = AutoModelForSequenceClassification.from_pretrained(name)
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
    Before training, the model as a whole must be in evaluation mode, and a single mode-dependent layer is enough.
    Frozen layers and dropout with p = 0 are ignored.

    A watched run is reported if it ends with at least 8 sampled steps in which none of the mode-dependent layers
    was in training mode. It is also reported if the validation code trains the model: all steps in evaluation mode
    used batches from one dataset, no other steps used that dataset, and the model switched to evaluation mode at
    least twice. In Keras, there must have been at least 16 optimizer steps, none of which changed the state of
    these layers.

    ## Known problems
    Before training, the finding is only a note, because the training loop usually calls `model.train()`. Here the
    rule does not check Keras models or models trained with the Hugging Face Trainer, which set the mode
    themselves. If you fine-tune a whole model in evaluation mode to keep the pretrained batch norm statistics,
    ignore this rule.

    ## Sources
    PyTorch's documentation for `torch.nn.Module.eval`; Hugging Face's documentation for
    `PreTrainedModel.from_pretrained` ("the model is set in evaluation mode by default").
    """

    severity = "warning"

    @check
    def from_model(self, model: ModelFacts) -> Finding | None:
        """Check the mode of the model that was passed to `examine`."""
        if model.training is None:
            raise NotApplicable("needs a model whose mode is set before the training loop starts")
        layers = model.mode_dependent_layers
        if model.training or not layers:
            return None
        named = _named(layers)
        return self.found(
            f"{model.name} is in evaluation mode, but {len(layers)} of its layers ({named}) "
            f"{'behaves' if len(layers) == 1 else 'behave'} differently in training mode. Unless the "
            "training loop calls model.train(), dropout is off and batch norm does not update its statistics.",
            fix=FIX,
            evidence={"training": False, "mode_dependent_layers": list(layers)},
            severity="note",
        )

    @check
    def from_modes(self, modes: TrainModeFacts) -> Finding | None:
        """Check the mode of mode-dependent layers during the backward passes."""
        import numpy as np

        layers = modes.layers
        if not layers:
            return None
        if len(modes.steps) < STEPS:
            raise NotApplicable(f"needs at least {STEPS} steps with a sampled backward pass")
        training = np.flatnonzero(modes.in_training > 0)
        last = int(training[-1]) if training.size else None
        since = modes.steps if last is None else modes.steps[last + 1 :]
        if last is not None and (blocks := _in_turn(modes)):
            return self._validation(modes, blocks)
        if len(since) < STEPS:
            return None
        before = ""
        if last is not None:
            before = (
                f" At step {modes.steps[last]:,} these layers were still in training mode. After that, the "
                "evaluation code probably called model.eval() and never switched back to training mode."
            )
        return self.found(
            f"The model trains in evaluation mode: in all {len(since)} sampled steps from step {since[0]:,} on, "
            f"none of the mode-dependent layers ({_named(layers)}) was in training mode.{before} "
            "Dropout is off, and batch norm does not update its statistics.",
            fix=FIX,
            evidence={
                "mode_dependent_layers": list(layers),
                "steps_looked_at": len(since),
                "last_step_in_training_mode": None if last is None else int(modes.steps[last]),
            },
            step=int(since[0]),
        )

    @check
    def from_state(self, state: NeverInTraining) -> Finding | None:
        """Look for layers whose state shows that they were never called in training mode."""
        if state.steps < KERAS_STEPS:
            raise NotApplicable(f"needs at least {KERAS_STEPS} steps")
        one = len(state.layers) == 1
        return self.found(
            f"In {state.steps:,} steps, {_named(state.layers)} {'was' if one else 'were'} never called in "
            f"training mode: {'its' if one else 'their'} state has not changed since the model was created. So "
            "the training loop or train_step() calls the model without training=True: dropout is off, and batch "
            "norm does not learn the statistics that it needs for evaluation.",
            fix="model(x, training=True)  # inside the GradientTape; self(x, training=True) in train_step",
            evidence={"mode_dependent_layers": list(state.layers), "steps": state.steps},
        )

    def _validation(self, modes: TrainModeFacts, blocks: int) -> Finding:
        """Report an evaluation that calls optimizer.step()."""
        idle = modes.in_training == 0
        first = int(modes.steps[idle][0])
        return self.found(
            "The optimizer also updates the weights in evaluation mode: "
            f"{int(idle.sum())} of the {len(idle)} sampled steps, the first at step {first:,}, use batches from "
            f"another dataset. The model switched from training to evaluation mode at least {blocks} times, so "
            "the evaluation code probably calls backward() and step(). This trains the model on rows that are "
            "meant for evaluation.",
            fix=VALIDATION,
            evidence={
                "mode_dependent_layers": list(modes.layers),
                "steps_looked_at": len(idle),
                "steps_in_evaluation_mode": int(idle.sum()),
                "blocks": blocks,
            },
            step=first,
        )


def _in_turn(modes: TrainModeFacts) -> int:
    """Return how often steps in evaluation mode follow others, or 0 if both use the same dataset."""
    sources, idle = modes.sources, modes.in_training == 0
    if sources is None or not idle.any() or idle.all():
        return 0
    own, others = set(sources[idle].tolist()), set(sources[~idle].tolist())
    if len(own) != 1 or 0 in own | others or own & others:
        return 0
    back = int((idle[:-1] & ~idle[1:]).sum())
    begins = int((~idle[:-1] & idle[1:]).sum())
    return begins if begins >= BLOCKS and back >= BLOCKS - 1 else 0


def _named(layers: tuple[str, ...]) -> str:
    return layers_named(layers, most=NAMED)
