"""Facts about an exception over tensors whose shapes do not match."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from diagnostics.facts.frozen import frozen

Library = Literal["torch", "keras", "numpy"]
Shape = tuple[int | None, ...]
"""None in it: a size that is open, as the batch's is in a graph."""


@frozen
class LayerMisfit:
    """A layer was given a tensor of another size than it was built for.

    Attributes:
        wanted: what it was built for.
        got: what it got in its place.
        layer: its class: ``Linear``; None if not known.
        path: where the model holds it: ``model.classifier``; None if not known.
        setting: the argument that sets the expected size: ``in_features``.
        shape: of the tensor it got; None if not known.
        axis: the axis of `shape` along which `got` stands; None if not known.
        rows: of a tensor that was laid out as a table of rows of `got`, where its shape is not known.
        rebuilt: what would make it for another size, with ``{}`` where the number goes: ``nn.Linear({}, 10)``.
        library: ``torch`` or ``keras``: decides only the wording of a fix.
    """

    wanted: int
    got: int
    layer: str | None = None
    path: str | None = None
    setting: str | None = None
    shape: Shape | None = None
    axis: int | None = None
    rows: int | None = None
    rebuilt: str | None = None
    library: Literal["torch", "keras"] = "torch"


@frozen
class AxesMisfit:
    """A layer was given a tensor with more or fewer axes than it takes.

    Attributes:
        wanted: how many axes it takes, in words: ``3 or 4``.
        got: how many the tensor has.
        layer: its class: ``Conv2d``; None if not known.
        path: where the model holds it; None if not known.
        shape: of the tensor; None if not known.
        channels: what it wants along its axis of channels; None if not known.
        library: ``torch`` or ``keras``.
        is_one_example: whether its shape is that of one example of the batch that is expected.
    """

    wanted: str
    got: int
    layer: str | None = None
    path: str | None = None
    shape: Shape | None = None
    channels: int | None = None
    library: Literal["torch", "keras"] = "torch"
    is_one_example: bool = False


@frozen
class OperandsMisfit:
    """An operation on several tensors was given sizes that do not go together.

    Attributes:
        operation: what it does with them; an optimizer step, with its state and a gradient.
        one: a size of the first.
        other: the size of the second that should go with it.
        axis: the axis of the result along which they stand; of a concatenation, the axis along which it joins.
        shapes: of the operands, if the message tells them.
        tensors: shape by name, for the tensors that the line that failed names; empty if not known.
        library: ``torch``, ``keras`` or ``numpy``.
    """

    operation: Literal["element-wise", "expansion", "matrix product", "concatenation", "optimizer step"]
    one: int
    other: int
    axis: int | None = None
    shapes: tuple[Shape, ...] = ()
    tensors: Mapping[str, Shape] = field(default_factory=dict)
    library: Library = "torch"


@frozen
class ReshapeMisfit:
    """A tensor was to take a shape that holds another number of values.

    Attributes:
        wanted: the shape; at most one size in it is -1, to be worked out.
        size: how many values the tensor has.
        tensor: its name; None if not known.
        shape: its shape; None if not known.
        library: ``torch``, ``keras`` or ``numpy``.
    """

    wanted: tuple[int, ...]
    size: int
    tensor: str | None = None
    shape: Shape | None = None
    library: Library = "torch"


@frozen
class WeightsMisfit:
    """Saved weights were to be loaded into a model that was built with other sizes.

    Attributes:
        model: its class.
        weights: shape in the checkpoint and shape in the model, by the weight's name.
        pretrained: whether it was `from_pretrained` of transformers that loaded them.
    """

    model: str
    weights: Mapping[str, tuple[Shape, Shape]]
    pretrained: bool = False


ShapeSymptom = LayerMisfit | AxesMisfit | OperandsMisfit | ReshapeMisfit | WeightsMisfit
"""What is recognised of shapes that do not fit."""
