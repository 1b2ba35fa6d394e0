"""Facts about the origin of the first NaN or inf of a run, and the numbers that led there.

As in `facts.training`, None always means "not known", and a step is one step of the optimizer, counted from 0.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from diagnostics.facts.frozen import frozen

OriginKind = Literal["input", "forward", "loss", "gradient", "optimizer step", "weights"]
"""Where the first NaN or inf came from: the batch, a module, the loss, the backward pass, the update, or, with
what made them so unknown, the weights."""


@frozen
class ValueRange:
    """The numbers of one or several tensors.

    Attributes:
        lowest: smallest absolute value among the finite ones; None if none is finite.
        highest: largest absolute value among them; None likewise.
        nan: how many are NaN.
        inf: how many are positive infinity.
        minus_inf: how many are negative infinity, as a mask makes them.
    """

    lowest: float | None
    highest: float | None
    nan: int = 0
    inf: int = 0
    minus_inf: int = 0

    @property
    def finite(self) -> bool:
        """Whether none of them is NaN or infinite."""
        return not (self.nan or self.inf or self.minus_inf)

    @property
    def broken(self) -> bool:
        """Whether one is NaN or positive infinity, which no mask makes."""
        return bool(self.nan or self.inf)


@frozen
class FrameFacts:
    """One module's call in a replayed forward pass.

    Attributes:
        module: path in the model, ``encoder.layers.2.fc1``; empty for the model itself.
        kind: class name.
        dtype: of the output: ``float32``, ``float16``, …; None if no output is a tensor of floats.
        weights: of its own parameters; None if it has none.
        inputs: of its inputs that are floats; None if none is.
        outputs: of its outputs that are floats; None if none is.
    """

    module: str
    kind: str
    dtype: str | None
    weights: ValueRange | None
    inputs: ValueRange | None
    outputs: ValueRange | None


@frozen
class OverflowFacts:
    """A number that was infinite in half precision, and what it is in float32.

    Attributes:
        module: path of the module at which it showed.
        side: whether in the module's input, as that of a product between two modules does, or in its output.
        dtype: ``float16`` or ``bfloat16``.
        limit: the largest finite value of that dtype.
        highest: largest absolute value at that place, of the same pass run again in float32; finite.
    """

    module: str
    side: Literal["input", "output"]
    dtype: str
    limit: float
    highest: float


@frozen
class OriginFacts:
    """Where the first NaN or inf of the run came from.

    Attributes:
        step: the step whose loss or gradient was the first that was not finite; for kind ``optimizer step`` the
            step whose update left weights that are not finite.
        kind: ``input``: the batch held it. ``forward``: `module` made it from finite input. ``loss``: the model's
            output was finite and the loss was not. ``gradient``: loss and output were finite, the gradient was
            not. ``optimizer step``: the gradient was finite, and the weights after the step were not.
            ``weights``: they were not finite after this step at the latest, and more is not known. None if the
            step is all that is known.
        replayed: whether the pass of that very step was run again on a copy, with the weights, batch and random
            state it had. False: only the model as it was when this was noticed could be searched.
        noticed: the last step that had run when it was noticed.
        module: for ``forward`` the path of the module; for ``gradient`` that of the module in whose backward
            pass it began, or None if it came into the model from the loss. Empty: the model itself.
        module_kind: class name of that module.
        parameters: names of the parameters whose gradient (``gradient``) or value (``optimizer step``,
            ``weights``) was not finite, in the model's order.
        num_parameters: how many trainable parameters there are.
        frames: the last module calls up to the one that made it, in order of execution; the last is the origin.
            Empty unless `replayed`.
        loss: of that step; None if not known.
        inputs: names of the inputs that held NaN or inf, for kind ``input``.
        rows: examples of the batch, counted from 0, concerned by it: with such a value in their input, or in the
            output of the module. Empty if not known.
        batch_size: examples in that batch; None if not known.
        batch_fingerprint: of that batch; None if not known.
        learning_rate: the largest over parameter groups at that step.
        overflow: for ``forward``, what was infinite in half precision and is finite in float32; None if nothing
            was, or if that is not known.
        largest: for ``loss``, the largest absolute value among the outputs of all modules; None if not known.
        left_out: for ``gradient``, the steps in a row that were not made for it, as loss scalers do; 0 if made.
        reason: why it was not replayed, or why no origin was found although it was; for ``loss`` and ``forward``
            what the framework says where it refuses to run the step eagerly; empty otherwise.
    """

    described: ClassVar[str] = "a NaN or infinity to trace"

    step: int
    kind: OriginKind | None
    replayed: bool
    noticed: int
    module: str | None = None
    module_kind: str | None = None
    parameters: tuple[str, ...] = ()
    num_parameters: int = 0
    frames: tuple[FrameFacts, ...] = ()
    loss: float | None = None
    inputs: tuple[str, ...] = ()
    rows: tuple[int, ...] = ()
    batch_size: int | None = None
    batch_fingerprint: int | None = None
    learning_rate: float | None = None
    overflow: OverflowFacts | None = None
    largest: float | None = None
    left_out: int = 0
    reason: str = ""
